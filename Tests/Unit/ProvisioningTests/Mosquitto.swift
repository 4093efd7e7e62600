import Glibc
import Provisioning
import SystemIO
import TestSupport
import Testing

/// A real broker that runs from a vehicle's folder, and its clients.
final class Mosquitto {
  static let isInstalled = ["mosquitto", "mosquitto_pub", "mosquitto_sub"].allSatisfy(Program.isInstalled)

  let folder: TemporaryFolder
  let vehicle: VehicleFolder
  let port: UInt16
  private let process: Program

  /// - Parameter vehicle: provisioned with that port.
  init(_ vehicle: VehicleFolder, port: UInt16, in folder: TemporaryFolder, environment: [String] = []) throws {
    self.folder = folder
    self.vehicle = vehicle
    self.port = port
    process = try Program(
      ["mosquitto", "-c", "\(vehicle.path)/mosquitto.conf"], in: folder, environment: environment)
    try #require(process.waits(for: " running\n"), "mosquitto does not run: \(process.printed)")
  }

  /// A broker of a new vehicle, with the rider `ann`.
  convenience init(in folder: TemporaryFolder, environment: [String] = []) throws {
    let port = try Self.unusedPort()
    let vehicle = try folder.vehicle(.sample(port: port))
    _ = try vehicle.provisionToken(.sample(), now: now, force: false)
    try self.init(vehicle, port: port, in: folder, environment: environment)
  }

  deinit { process.stop() }

  var id: Int32 { process.id }
  /// The broker's log.
  var log: String { process.printed }
  /// How many clients were let in since it started.
  var clients: Int { log.split(separator: "\n").filter { $0.contains("New client connected") }.count }

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

    static func broker(_ vehicle: VehicleFolder) -> Identity {
      let folder = "\(vehicle.path)/tls"
      return Identity(authority: "\(folder)/ca.pem", certificate: "\(folder)/broker.pem", key: "\(folder)/broker.key")
    }
  }

  var rider: Identity { .rider(vehicle) }
  var controller: Identity { .controller(vehicle) }

  private func connection(_ identity: Identity, host: String) -> [String] {
    ["-h", host, "-p", String(port), "-q", "1", "--cafile", identity.authority]
      + (identity.certificate.map { ["--cert", $0, "--key", identity.key] } ?? [])
  }

  @discardableResult
  func publish(
    _ payload: String, to topic: String, as identity: Identity, host: String = "localhost", _ options: String...
  ) throws -> (status: Int32, printed: String) {
    try Program(
      ["mosquitto_pub", "-t", topic, "-m", payload] + connection(identity, host: host) + options, in: folder
    ).finish()
  }

  /// A client that prints `topic payload` for each message, once it is subscribed to everything.
  func subscribe(as identity: Identity) throws -> Program {
    // By lines: what goes to a file is otherwise held back in blocks.
    let subscriber = try Program(
      ["stdbuf", "-oL", "mosquitto_sub", "-d", "-F", "> %t %p", "-t", "#", "-t", "$SYS/#"]
        + connection(identity, host: "localhost"), in: folder)
    try #require(subscriber.waits(for: "Subscribed"), "not subscribed: \(subscriber.printed)")
    return subscriber
  }

  /// A loopback port that nobody listens on, below those that the kernel gives to outgoing connections, one of which
  /// could take it.
  static func unusedPort() throws -> UInt16 {
    while true {
      let socket = Descriptor(
        adopting: try check("socket") { Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0) })
      let number = socket.number
      let port = UInt16.random(in: 20_000..<32_000)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = port.bigEndian
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      let isBound = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
      }
      if isBound { return port }
      guard errno == EADDRINUSE else { throw SystemError("bind") }
    }
  }
}

extension Program {
  /// The messages that a subscriber has printed.
  var messages: Set<String> {
    Set(printed.split(separator: "\n").filter { $0.hasPrefix("> ") }.map { String($0.dropFirst(2)) })
  }
}
