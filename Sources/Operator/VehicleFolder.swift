import Certificates
import Domain
import FileFormats
import Glibc
import StepdConfiguration
import SystemIO

/// The folder of a vehicle: its broker and its controller run from it, and its riders get theirs out of it.
///
///     vehicle.toml                     the vehicle, for everyone
///     stepd.toml                       the controller
///     keys/                            the controller's keys of the protocol
///     tls/                             certificates, and the keys of broker and controller
///     operator/                        the operator's own files, or a link to these; need not be on the vehicle
///     riders/NAME/                     all that one rider needs
///
/// The vehicle of an operator of one is in the operator's own folder, beside the broker's files (`OperatorPlace`).
package struct VehicleFolder: Sendable {
  package let path: String

  /// - Parameter path: as shown in errors; the folder need not exist yet.
  package init(_ path: String) {
    var path = path
    while path.hasSuffix("/"), path != "/" { path.removeLast() }
    self.path = path.isEmpty ? "." : path
  }

  /// A path from this folder, in the caller's form.
  package func path(_ name: String) -> String { "\(path)/\(name)" }

  /// The name of the folder.
  package var name: String { Files.name(of: path) }

  /// What becomes worthless when the vehicle is replaced.
  package struct Loss: Sendable {
    /// The vehicle's name; nil if its file cannot be read.
    package let name: String?
    /// The tokens that have not ended; nil if they are unknown.
    package let tokens: (riders: [String], count: Int)?
    /// Nil if it is unknown.
    package let tags: Int?
  }

  /// - Returns: nil if the folder has no part of a vehicle.
  /// - Throws: `operatorExists`.
  package func loss(now: Int64) throws -> Loss? {
    try checkNoOperator()
    // If a run was interrupted after it had moved the vehicle's file away, the loss was already confirmed.
    guard Files.exists(path(VehiclePaths.vehicle)) || !parts.isEmpty && !Files.exists(path(VehiclePaths.staging)) else {
      return nil
    }
    let vehicle = try? readVehicleFile().vehicle
    var tokens = (try? place.ledger())?.current(at: now)
    if let vehicle {
      tokens = tokens?.filter { $0.vehicle == vehicle.uuid }
    } else if place.path != path {
      // Without its UUID, the vehicle's tokens cannot be told from those of the operator's other vehicles.
      tokens = nil
    }
    return Loss(
      name: vehicle?.name, tokens: tokens.map { (Set($0.map(\.rider)).sorted(), $0.count) },
      tags: try? tagKeys().tags.count)
  }

  /// Throws if a new vehicle here would take the place of an operator who has other vehicles.
  func checkNoOperator() throws(ProvisioningError) {
    if Files.exists(path(VehiclePaths.vehicles)) { throw .operatorExists(path) }
  }

  /// Throws if a run in this folder was interrupted, so that its files may not belong together. Throws also if the
  /// folder is an operator's and has no vehicle itself.
  func checkFinished() throws {
    if try has(VehiclePaths.staging) { throw ProvisioningError.unfinished(path(VehiclePaths.staging)) }
    if try has(VehiclePaths.vehicles), try !has(VehiclePaths.vehicle) {
      throw ProvisioningError.severalVehicles(path, try place.vehicles().map(\.path))
    }
  }

  /// Whether something has this name here. Throws if this user may not look, so that nothing else is blamed.
  private func has(_ name: String) throws(SystemError) -> Bool {
    if access(path(name), F_OK) == 0 { return true }
    if errno == EACCES { throw SystemError("open", path(name), code: EACCES) }
    return false
  }

  func readVehicleFile() throws -> VehicleFile {
    try VehicleFile(reading: path(VehiclePaths.vehicle))
  }

  func readCertificate(_ name: String) throws -> Certificate {
    let path = path(name)
    let pem = try Files.readRegular(path)
    return try about(path) { try Certificate(pem: pem) }
  }

  func readPrivateKey(_ name: String) throws -> PrivateKey {
    let path = path(name)
    try KeyFile.checkPrivate(path)
    let pem = try Files.readRegular(path)
    return try about(path) { try PrivateKey(pem: pem) }
  }

  /// The operator who grants access to the vehicle: whoever's files `operator` has, or is a link to.
  package var place: OperatorPlace {
    let link = Files.target(ofLink: path(VehiclePaths.operator))
    return OperatorPlace(link.map { Files.parent(of: Files.resolve($0, in: path)) } ?? path)
  }

  /// The issuer of the vehicle's certificates.
  func readAuthority() throws -> CertificateAuthority {
    let certificate = try readCertificate(VehiclePaths.authorityCertificate)
    let key = try readPrivateKey(VehiclePaths.authorityKey)
    let file = path(VehiclePaths.authorityCertificate)
    do { return try CertificateAuthority(certificate: certificate, key: key, at: file) } catch {
      throw ContentError.openSSL(path(VehiclePaths.authorityKey), error)
    }
  }
}

extension VehicleFile {
  /// A part that vehicle.toml had at first, but that somebody may have removed.
  func present<Part>(_ part: Part?, _ name: String) throws(ConfigurationError) -> Part {
    guard let part else { throw ConfigurationError(path, "\(name) is missing") }
    return part
  }
}

/// The paths in a vehicle's folder, from the folder.
enum VehiclePaths {
  static let vehicle = "vehicle.toml"
  static let controller = "stepd.toml"
  static let broker = "mosquitto.conf"
  static let accessList = "mosquitto.acl"
  /// For systemd and for nftables: limits that keep strangers from exhausting the broker.
  static let brokerLimits = "mosquitto-limits.conf"
  static let firewall = "mosquitto.nft"
  /// Where the broker is.
  static let brokerAddress = "broker.json"
  /// What the broker keeps across a restart.
  static let data = "data"

  /// Certificates, and the private keys of broker and controller.
  static let tls = "tls"
  static let authorityCertificate = "tls/ca.pem"
  static let revocationList = "tls/crl.pem"
  /// What mosquitto's plugin has to know of removed vehicles.
  static let formerVehicles = "mosquitto.removed"
  static let brokerCertificate = "tls/broker.pem"
  static let brokerKey = "tls/broker.key"
  static let controllerCertificate = "tls/controller.pem"
  static let controllerKey = "tls/controller.key"

  /// The controller's keys of the protocol.
  static let keys = "keys"
  static let encryptionKey = "keys/encryption.jwk"
  static let signingKey = "keys/signing.jwk"
  static let tagKeys = "keys/tags.json"
  static func beaconSecret(of step: StepID) -> String { "keys/\(step).beacon" }

  /// Clients that may only see the steps' status.
  static let watchers = "watchers"

  /// The keys that sign certificates and tokens.
  static let `operator` = "operator"
  static let authorityKey = "operator/ca.key"
  static let tokenKey = "operator/token.jwk"
  static let nextKey = "operator/next.jwk"
  static let previousKey = "operator/previous.jwk"
  static let announced = "operator/next.seq"
  static let ledger = "operator/ledger.json"
  /// The operator's vehicles that have folders of their own.
  static let vehicles = "vehicles"
  static let handover = "operator/handover"
  /// The operator's identity at the broker.
  static let operatorCertificate = "operator/client.pem"
  static let operatorKey = "operator/client.key"
  /// The key to which vehicles' events are encrypted, and the events themselves.
  static let eventKey = "operator/events.jwk"
  /// The previous key, while the operator's keys change.
  static let previousEventKey = "operator/events.old.jwk"
  static let events = "operator/events"
  static func masterKey(of tag: TagUID) -> String { "operator/tags/\(tag).key" }
  /// The same key, until the tag has accepted it.
  static func newMasterKey(of tag: TagUID) -> String { "operator/tags/\(tag).new" }

  static let riders = RiderPaths.folder
  static func folder(of rider: RiderName) -> String { "\(riders)/\(rider)" }
  /// No rider's name begins with a dot.
  static func staging(of rider: RiderName) -> String { "\(riders)/.\(rider).new" }

  static let staging = ".provisioning"
}
