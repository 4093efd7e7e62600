import TestSupport
import Configuration
import Glibc
import Domain
import Testing

@Suite("what a rider needs to command")
struct RiderAccessTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    try folder.write("rider.key")
    try folder.write("device.jwk")
  }

  private func access(_ text: String) throws -> RiderAccess {
    try VehicleFile(reading: folder.write("vehicle.toml", text)).riderAccess()
  }

  @Test("a rider's file has all of it")
  func complete() throws {
    let access = try access(Sample.vehicle)
    #expect(access.topic == TopicPrefix("arena2036/rolling_chassis"))
    #expect(access.broker == Broker(host: "broker.example", port: 8884, ca: "\(folder.path)/ca.crt"))
    #expect(access.rider.deviceKey == "\(folder.path)/device.jwk")
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

  @Test("a private key that is not there is named")
  func absent() throws {
    unlink("\(folder.path)/device.jwk")
    #expect(
      throws: ConfigurationError(
        "\(folder.path)/device.jwk", "cannot stat: No such file or directory", kind: .missing)
    ) { try access(Sample.vehicle) }
  }
}
