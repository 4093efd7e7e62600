import Domain

/// The paths in a vehicle's folder, from the folder.
enum VehicleLayout {
  static let vehicle = "vehicle.toml"
  static let controller = "stepd.toml"
  static let broker = "mosquitto.conf"
  static let accessList = "mosquitto.acl"

  /// Certificates, and the private keys of broker and controller.
  static let tls = "tls"
  static let authorityCertificate = "tls/ca.pem"
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

  /// What certificates and tokens are signed with.
  static let `operator` = "operator"
  static let authorityKey = "operator/ca.key"
  static let tokenKey = "operator/token.jwk"
  static func masterKey(of tag: TagUID) -> String { "operator/tags/\(tag).key" }
  /// Until the tag has taken it.
  static func newMasterKey(of tag: TagUID) -> String { "operator/tags/\(tag).new" }

  static let riders = "riders"
  static func folder(of rider: RiderName) -> String { "\(riders)/\(rider)" }
  /// No rider's name begins with a point.
  static func staging(of rider: RiderName) -> String { "\(riders)/.\(rider).new" }

  static let staging = ".provisioning"
}

/// The names in a rider's folder.
enum RiderLayout {
  static let vehicle = "vehicle.toml"
  static let authorityCertificate = "ca.pem"
  static let certificate = "rider.pem"
  static let key = "rider.key"
  static let deviceKey = "device.jwk"
  static let token = "token.jwt"
}
