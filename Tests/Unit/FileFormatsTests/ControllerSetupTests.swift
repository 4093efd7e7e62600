import Domain
import Encoding
import FileFormats
import MQTT
import StepController
import StepProtocol
import StepdConfiguration
import TestSupport
import Testing

@Suite("what a controller works from")
struct ControllerSetupTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    try folder.write("vehicle.toml", Sample.vehicle)
    try folder.write("stepd.key")
    try folder.write("encryption.jwk", DecryptionKey().jwk.text)
    try folder.write("signing.jwk", SigningKey().jwk.text)
  }

  private var identity: Broker.Identity {
    .init(certificate: "\(folder.path)/stepd.crt", key: "\(folder.path)/stepd.key")
  }

  private func read(_ text: String = Sample.controller) throws -> ControllerSetup {
    try ControllerSetup(reading: folder.write("stepd.toml", text))
  }

  @Test("the broker is the vehicle file's, the certificate the controller's")
  func broker() throws {
    let setup = try read()
    #expect(setup.vehicle == (try Sample.parsedVehicle()))
    #expect(
      setup.broker
        == Broker("broker.example", 8884, authority: "\(folder.path)/ca.crt", identity))
  }

  @Test("host, port and ca of the controller's file win")
  func overrides() throws {
    let setup = try read(
      Sample.controller.replacing("[broker]\n", with: "[broker]\nhost = \"localhost\"\nport = 1883\nca = \"/ca\"\n"))
    #expect(setup.broker == Broker("localhost", 1883, authority: "/ca", identity))
  }

  @Test("a vehicle file without a broker will do when the controller's has one")
  func withoutBroker() throws {
    let file = VehicleFile(path: "", vehicle: try Sample.parsedVehicle(), topic: TopicPrefix("car"))
    try folder.write("vehicle.toml", file.render())
    #expect(
      complaint { _ = try read() } == "\(folder.path)/vehicle.toml: [broker] is missing: the controller needs it")
    let setup = try read(
      Sample.controller.replacing("[broker]\n", with: "[broker]\nhost = \"localhost\"\nca = \"/ca\"\n"))
    #expect(setup.broker == Broker("localhost", 8883, authority: "/ca", identity))
  }

  @Test("each step has a servo, and each servo a step")
  func servos() throws {
    #expect(
      complaint {
        _ = try read(Sample.controller.replacing("steps.right", with: "steps.middle"))
      } == "\(folder.path)/stepd.toml:18: [servo.steps.right] is missing: the vehicle has that step")
    #expect(
      complaint {
        _ = try read(Sample.controller + "[servo.steps.rear]\nchip = 1\nchannel = 0\n")
      } == "\(folder.path)/stepd.toml:33: [servo.steps.rear]: \(folder.path)/vehicle.toml has no such step")
  }

  @Test("inputs of a step that the vehicle does not have are named")
  func unknownInputs() {
    #expect(
      complaint { _ = try read(Sample.controller + "[inputs.steps.rear]\nclear = \"file:a\"\n") }
        == "\(folder.path)/stepd.toml:33: [inputs.steps.rear]: \(folder.path)/vehicle.toml has no such step")
  }

  @Test("a simulated servo asks for no outputs")
  func simulated() throws {
    let servo = try #require(Sample.controller.firstRange(of: "[servo]"))
    let text = Sample.controller[..<servo.lowerBound]
    #expect(
      try read(text + "[servo]\ndriver = \"simulated\"\n").file.servo
        == .simulated(log: "\(folder.path)/servo.jsonl"))
  }

  @Test("a private key that others can read is refused", arguments: ["stepd.key", "encryption.jwk", "signing.jwk"])
  func exposed(name: String) throws {
    let path = try folder.write(name, mode: 0o644)
    #expect(
      throws: ConfigurationError(path, "can be read by others: chmod 600 \(path)", kind: .permission)
    ) { try read() }
  }

  @Test("a vehicle file that is not there is named")
  func absent() throws {
    #expect(
      complaint { _ = try read(Sample.controller.replacing("\"vehicle.toml\"", with: "\"car.toml\"")) }
        == "cannot open \(folder.path)/car.toml: No such file or directory")
  }
}
