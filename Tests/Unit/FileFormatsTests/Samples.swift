import Domain
import Encoding
import MQTT
import StepProtocol

/// Files as the manual shows them, and what they say.
enum Sample {
  static let uuid = UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!
  static let left = StepID("left")!
  static let right = StepID("right")!
  /// The base point of Curve25519 (RFC 7748 4.1), which serves as a public key of either kind.
  static let keyBytes = [9] + [UInt8](repeating: 0, count: 31)
  static let key = Base64URL.encode(keyBytes)
  static let verificationKey = try! VerificationKey(keyBytes)
  static let encryptionKey = try! EncryptionKey(keyBytes)

  static let vehicle = """
    name = "Rolling Chassis"
    uuid = "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"
    topic = "arena2036/rolling_chassis"

    [broker]
    host = "broker.example"
    port = 8884
    ca = "ca.crt"
    cert = "rider.crt"
    key = "rider.key"

    [controller]
    encryption_key = "\(key)"
    signing_key = "\(key)"

    [[steps]]
    id = "left"
    side = "left"
    major = 1

    [[steps]]
    id = "right"
    side = "right"
    major = 2

    [rider]
    name = "Ada"
    device_key = "device.jwk"
    token = "token.jwt"

    """

  static let controller = """
    vehicle = "vehicle.toml"
    journal = "journal.json"

    [broker]
    cert = "stepd.crt"
    key = "stepd.key"

    [keys]
    encryption = "encryption.jwk"
    signing = "signing.jwk"
    operator = "\(key)"

    [policy]
    zone = "immediate"
    proofs = ["beacon"]
    proof_age_s = 5

    [servo]
    driver = "pwm"
    travel_s = 2
    limit_s = 6.5
    frequency_hz = 50

    [servo.steps.left]
    chip = 0
    channel = 0

    [servo.steps.right]
    chip = 0
    channel = 1
    closed_us = 2500
    open_us = 500

    """

  static func parsedVehicle() throws -> Vehicle {
    try Vehicle(
      name: "Rolling Chassis", uuid: uuid,
      steps: [Step(id: left, side: .left, major: 1), Step(id: right, side: .right, major: 2)])
  }
}

extension Broker {
  init(_ host: String, _ port: UInt16, authority: String, _ identity: Identity?) {
    self.init(host: host, port: port, tls: TLS(authority: authority, identity: identity))
  }
}

/// What an operation's error says; nil when there was none.
func complaint(_ operation: () throws -> Void) -> String? {
  do {
    try operation()
    return nil
  } catch {
    return "\(error)"
  }
}
