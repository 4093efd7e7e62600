import Domain
import Encoding
import FileFormats
import Glibc
import MQTT
import Rider
import StepProtocol
import SystemIO
import TestSupport
import Testing

@Suite("what a rider needs to command")
struct RiderAccessTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    let device = SigningKey()
    try folder.write("rider.key")
    try folder.write("device.jwk", device.jwk.text)
    try folder.write("token.jwt", Self.token(for: device) + "\n")
  }

  private static func token(for device: SigningKey) -> String {
    Token(
      issuer: "operator", subject: "Ada", vehicle: Sample.uuid, steps: [Sample.left], notBefore: 0, expires: 1,
      device: device.verificationKey
    ).signed(by: SigningKey())
  }

  private func access(_ text: String) throws -> RiderAccess {
    try VehicleFile(reading: folder.write("vehicle.toml", text)).riderAccess()
  }

  @Test("a rider's file has all of it")
  func complete() throws {
    let access = try access(Sample.vehicle)
    #expect(access.topic == TopicPrefix("arena2036/rolling_chassis"))
    let identity = Broker.Identity(certificate: "\(folder.path)/rider.crt", key: "\(folder.path)/rider.key")
    #expect(access.broker == Broker("broker.example", 8884, authority: "\(folder.path)/ca.crt", identity))
    #expect(access.encryptionKey == Sample.encryptionKey && access.statementKey == Sample.verificationKey)
    #expect(access.device.verificationKey == access.token.device && access.token.subject == "Ada")
  }

  @Test("a token that is none, or another device's, is refused")
  func token() throws {
    let path = try folder.write("token.jwt", "x.y.z\n")
    #expect(complaint { _ = try access(Sample.vehicle) }?.hasPrefix("\(path): not a token: ") == true)
    try folder.write("token.jwt", "not a token\n")
    #expect(throws: ConfigurationError(path, "not a token: expected a compact JWT")) { try access(Sample.vehicle) }
    try folder.write("token.jwt", Self.token(for: SigningKey()))
    let message = "the token is bound to another device key than \(folder.path)/device.jwk: "
    #expect(throws: ConfigurationError(path, message + "take both as the operator made them")) {
      try access(Sample.vehicle)
    }
  }

  @Test(
    "a part that is missing is named",
    arguments: [
      ("topic = \"arena2036/rolling_chassis\"\n", "topic is missing: commands need it; a rider's vehicle file has it"),
      (
        "cert = \"rider.crt\"\nkey = \"rider.key\"\n",
        "[broker] cert is missing: commands need it; a rider's vehicle file has it"
      ),
      (
        "[rider]\nname = \"Ada\"\ndevice_key = \"device.jwk\"\ntoken = \"token.jwt\"\n",
        "[rider] is missing: commands need it; a rider's vehicle file has it"
      ),
      (
        "[controller]\nencryption_key = \"\(Sample.key)\"\nsigning_key = \"\(Sample.key)\"\n",
        "[controller] is missing: commands need it; a rider's vehicle file has it"
      ),
    ])
  func incomplete(part: String, expected: String) throws {
    try #require(Sample.vehicle.contains(part))
    #expect(
      complaint { _ = try access(Sample.vehicle.replacing(part, with: "")) }
        == "\(folder.path)/vehicle.toml: \(expected)")
  }

  @Test(
    "a private key that others can read is refused", arguments: ["rider.key", "device.jwk"], [0o640, 0o604, 0o610])
  func exposed(name: String, mode: mode_t) throws {
    let path = try folder.write(name, mode: mode)
    #expect(
      throws: ConfigurationError(path, "can be read by others: chmod 600 \(path)", kind: .permission)
    ) { try access(Sample.vehicle) }
  }

  @Test("a private key that is not there is named, with what to do", arguments: ["rider.key", "device.jwk"])
  func absent(_ name: String) throws {
    unlink("\(folder.path)/\(name)")
    let error = StoreError.lostKey("\(folder.path)/\(name)")
    #expect(throws: error) { try access(Sample.vehicle) }
    #expect(error.description == "cannot open \(folder.path)/\(name): No such file or directory")
    #expect(error.hint?.hasSuffix("enroll again (`stepctl enroll --output request`), and tell your operator") == true)
    #expect(error.exitStatus == .noInput)
  }
}
