import Certificates
import Glibc
import Operator
import SystemIO
import TestSupport

/// A real broker that runs from a vehicle's folder, and its clients.
struct VehicleBroker {
  let vehicle: VehicleFolder
  let mosquitto: Mosquitto

  /// - Parameter vehicle: provisioned with that port.
  init(_ vehicle: VehicleFolder, port: UInt16, environment: [String: String] = [:]) throws {
    self.vehicle = vehicle
    // Started by root, it becomes a user who has to reach the folder.
    chmod(Files.parent(of: vehicle.path), 0o755)
    mosquitto = try Mosquitto(configuration: "\(vehicle.path)/mosquitto.conf", port: port, environment: environment)
  }

  /// A broker of a new vehicle, with the rider `ann`.
  init(in folder: TemporaryFolder, environment: [String: String] = [:]) throws {
    let port = try Port.unused()
    let vehicle = try folder.vehicle(at: .local(port))
    _ = try vehicle.provisionToken(.sample(), now: now, force: false)
    try self.init(vehicle, port: port, environment: environment)
  }

  /// Who a client claims to be: the paths of what it does so with.
  struct Identity {
    var authority: String
    /// Nil for somebody who has none.
    var certificate: String?
    let key: String

    static func rider(_ vehicle: VehicleFolder, _ name: String = "ann") -> Identity {
      let folder = "\(vehicle.path)/riders/\(name)"
      return Identity(authority: "\(folder)/ca.pem", certificate: "\(folder)/rider.pem", key: "\(folder)/rider.key")
    }

    static func controller(_ vehicle: VehicleFolder) -> Identity {
      let folder = "\(vehicle.path)/tls"
      return Identity(
        authority: "\(folder)/ca.pem", certificate: "\(folder)/controller.pem", key: "\(folder)/controller.key")
    }

    static func `operator`(_ vehicle: VehicleFolder) -> Identity {
      let folder = "\(vehicle.path)/operator"
      return Identity(
        authority: "\(vehicle.path)/tls/ca.pem", certificate: "\(folder)/client.pem", key: "\(folder)/client.key")
    }

    static func broker(_ vehicle: VehicleFolder) -> Identity {
      let folder = "\(vehicle.path)/tls"
      return Identity(authority: "\(folder)/ca.pem", certificate: "\(folder)/broker.pem", key: "\(folder)/broker.key")
    }

    /// Of mosquitto's clients.
    fileprivate var options: [String] {
      ["--cafile", authority] + (certificate.map { ["--cert", $0, "--key", key] } ?? [])
    }
  }

  var rider: Identity { .rider(vehicle) }
  var controller: Identity { .controller(vehicle) }
  var `operator`: Identity { .operator(vehicle) }

  @discardableResult
  func publish(
    _ payload: String, to topic: String, as identity: Identity, host: String = "localhost", _ options: String...
  ) throws -> Subprocess.Outcome {
    try mosquitto.publish(["-t", topic, "-m", payload] + identity.options + options, host: host)
  }

  func subscribe(as identity: Identity) throws -> Subprocess {
    try mosquitto.subscribe(identity.options, host: "localhost")
  }
}

extension VehicleFolder {
  /// Puts a certificate of the same authority, for the same key, in the place of one: it has ended. No operator makes
  /// such a certificate.
  func endCertificate(_ name: String, _ commonName: String, for use: CertificateUse) throws {
    let authority = try Certificate(pem: Files.read(path("tls/ca.pem")))
    let key = try PrivateKey(pem: Files.read(path("operator/ca.key")))
    let old = try Certificate(pem: Files.read(path(name)))
    let ended = try Certificate(
      CertificateContent(commonName: commonName, use: use), to: old.lentKey(), validity: now - 2 * day...now - day,
      signer: key, issuer: authority)
    try Files.replace(path(name), with: ended.pem(), mode: 0o644)
  }
}
