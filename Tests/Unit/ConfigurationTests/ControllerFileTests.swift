import Configuration
import Domain
import MQTT
import StepController
import Testing

@Suite("controller files")
struct ControllerFileTests {
  private func read(_ text: String, path: String = "stepd.toml") throws -> ControllerFile {
    try ControllerFile(parsing: Array(text.utf8), path: path)
  }

  private let sample = ControllerFile(
    path: "stepd.toml", broker: .init(identity: .init(certificate: "stepd.crt", key: "stepd.key")),
    keys: .init(encryption: "encryption.jwk", signing: "signing.jwk", operatorKey: Sample.verificationKey),
    policy: Policy(methods: [.beacon], zone: .immediate, proofAge: 5_000),
    profile: MotionProfile(travel: 2_000, limit: 6_500),
    servo: .pwm(
      PWMOutputs(channels: [
        Sample.left: PWMChannel(chip: 0, channel: 0),
        Sample.right: PWMChannel(chip: 0, channel: 1, closedPulse: 2500, openPulse: 500),
      ])))

  @Test("a whole file is read")
  func whole() throws {
    #expect(try read(Sample.controller) == sample)
  }

  @Test("what may be left out has its default, and paths lead from the file's folder")
  func defaults() throws {
    let file = try read(
      """
      vehicle = "../vehicle.toml"
      [broker]
      cert = "a"
      key = "b"
      [keys]
      encryption = "c"
      signing = "/d"
      operator = "\(Sample.key)"
      [servo]
      driver = "simulated"
      """, path: "car/stepd.toml")
    #expect(file.vehicle == "car/../vehicle.toml")
    #expect(file.journal == "car/journal.json")
    #expect(file.keys.encryption == "car/c" && file.keys.signing == "/d")
    #expect(file.policy == Policy(methods: [.beacon], acceptsStatic: true, zone: .near, proofAge: 10_000))
    #expect(file.servo == .simulated(log: "car/servo.jsonl"))
    #expect(file.profile == MotionProfile(travel: 1_500, limit: 5_000) && file.installed == .close)
  }

  @Test(
    "a mistake is named with its line, its key, what was found and what was expected",
    arguments: [
      ("vehicle = \"vehicle.toml\"", "", "stepd.toml: vehicle is missing"),
      ("key = \"stepd.key\"", "", "stepd.toml:4: [broker] key is missing"),
      ("[keys]", "[key]", "stepd.toml:8: key: unknown key, did you mean \"keys\"?"),
      (
        "operator = \"\(Sample.key)\"", "operator = \"x\"",
        "stepd.toml:11: [keys] operator: expected 32 bytes as base64url without padding (length 43), "
          + "found text of length 1"
      ),
      (
        "zone = \"immediate\"", "zone = \"far\"",
        "stepd.toml:14: [policy] zone: expected \"immediate\" or \"near\", found \"far\""
      ),
      (
        "proofs = [\"beacon\"]", "proofs = []",
        "stepd.toml:15: [policy] proofs: expected an array of \"beacon\", \"nfc\" or \"qr\", found an empty array"
      ),
      (
        "proofs = [\"beacon\"]", "proofs = [\"beacon\", \"becon\"]",
        "stepd.toml:15: [policy] proofs: expected an array of \"beacon\", \"nfc\" or \"qr\", found \"becon\" in it"
      ),
      (
        "proofs = [\"beacon\"]", "proofs = \"beacon\"",
        "stepd.toml:15: [policy] proofs: expected an array of \"beacon\", \"nfc\" or \"qr\", found \"beacon\""
      ),
      (
        "proof_age_s = 5", "proof_age_s = 60.5",
        "stepd.toml:16: [policy] proof_age_s: expected a number from 1 to 60, found 60.5"
      ),
      (
        "proof_age_s = 5", "proof_age_s = nan",
        "stepd.toml:16: [policy] proof_age_s: expected a number from 1 to 60, found nan"
      ),
      ("driver = \"pwm\"", "", "stepd.toml:18: [servo] driver is missing"),
      (
        "driver = \"pwm\"", "driver = \"PWM\"",
        "stepd.toml:19: [servo] driver: expected \"simulated\" or \"pwm\", found \"PWM\""
      ),
      (
        "travel_s = 2", "travel_s = 0.1",
        "stepd.toml:20: [servo] travel_s: expected a number from 0.2 to 20, found 0.1"
      ),
      ("travel_s = 2", "travel_s = 6.5", "stepd.toml:21: [servo] limit_s: 6.5 is not more than travel_s, 6.5"),
      (
        "limit_s = 6.5", "limit_s = inf",
        "stepd.toml:21: [servo] limit_s: expected a number from 0.2 to 60, found inf"
      ),
      (
        "frequency_hz = 50", "frequency_hz = 50.0",
        "stepd.toml:22: [servo] frequency_hz: expected an integer from 40 to 333, found 50"
      ),
      (
        "frequency_hz = 50", "installed = \"unknown\"",
        "stepd.toml:22: [servo] installed: expected \"open\" or \"close\", found \"unknown\""
      ),
      (
        "[servo.steps.left]", "[servo.steps.\"Left door\"]",
        "stepd.toml:24: [servo.steps.\"Left door\"] expected the id of a step, 1 to 32 of a-z, 0-9, \"-\" and \"_\", "
          + "found \"Left door\""
      ),
      (
        "[servo.steps.left]\nchip = 0", "[servo.steps.left]",
        "stepd.toml:24: [servo.steps.left] chip is missing"
      ),
      (
        "[servo.steps.left]\nchip = 0", "[servo.steps.left]\nchip = 256",
        "stepd.toml:25: [servo.steps.left] chip: expected an integer from 0 to 255, found 256"
      ),
      (
        "channel = 1", "channel = 0",
        "stepd.toml:30: [servo.steps.right] channel: 0 of chip 0 is the servo of the step \"left\""
      ),
      (
        "closed_us = 2500", "closed_us = 2601",
        "stepd.toml:31: [servo.steps.right] closed_us: expected an integer from 400 to 2600, found 2601"
      ),
      (
        "open_us = 500", "open_us = 2500",
        "stepd.toml:32: [servo.steps.right] open_us: 2500 is the same as closed_us"
      ),
      (
        "open_us = 500", "open_ms = 2500",
        "stepd.toml:32: [servo.steps.right] open_ms: unknown key, did you mean \"open_us\"?"
      ),
    ])
  func mistakes(line: String, replacement: String, expected: String) throws {
    try #require(Sample.controller.contains(line))
    #expect(
      complaint { _ = try read(Sample.controller.replacing(line, with: replacement, maxReplacements: 1)) } == expected)
  }

  @Test(
    "a section that must be there is named",
    arguments: [
      ("", "stepd.toml: [broker] is missing"),
      ("[broker]\ncert = \"a\"\nkey = \"b\"\n", "stepd.toml: [keys] is missing"),
    ])
  func sections(text: String, expected: String) {
    #expect(complaint { _ = try read("vehicle = \"vehicle.toml\"\n" + text) } == expected)
  }

  @Test("mistakes in what belongs to the other driver are found before it is chosen")
  func otherDriver() {
    let text = Sample.controller.replacing("\"pwm\"", with: "\"simulated\"").replacing("2500", with: "9")
    #expect(
      complaint { _ = try read(text) }
        == "stepd.toml:31: [servo.steps.right] closed_us: expected an integer from 400 to 2600, found 9")
  }

  @Test("what is rendered reads the same")
  func roundTrip() throws {
    #expect(try read(sample.render()) == sample)
    var file = sample
    file.servo = .simulated(log: "a \"b\".jsonl")
    file.profile = MotionProfile(travel: 300, limit: 700)
    file.installed = .open
    file.policy = Policy(methods: [.beacon], zone: .near, proofAge: 1_250)
    file.broker.host = "localhost"
    file.broker.port = 1
    file.broker.authority = "local/ca.crt"
    #expect(try read(file.render()) == file)
  }
}
