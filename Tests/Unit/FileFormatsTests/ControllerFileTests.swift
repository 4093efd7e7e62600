import Bluetooth
import Domain
import MQTT
import Operator
import StepController
import StepdConfiguration
import Testing

@Suite("controller files")
struct ControllerFileTests {
  private func read(_ text: String, path: String = "stepd.toml") throws -> ControllerFile {
    try ControllerFile(parsing: Array(text.utf8), path: path)
  }

  private let sample = {
    var file = ControllerFile(
      path: "stepd.toml", vehicle: "vehicle.toml",
      broker: .init(identity: .init(certificate: "stepd.crt", key: "stepd.key")),
      keys: .init(encryption: "encryption.jwk", signing: "signing.jwk", operatorKey: Sample.verificationKey),
      policy: Policy(methods: [.beacon], zone: .immediate, proofAge: 5_000), beacons: [:], tagKeys: nil,
      servo: .pwm(
        PWMOutputs(channels: [
          Sample.left: PWMChannel(chip: .number(0), channel: 0),
          Sample.right: PWMChannel(chip: .number(0), channel: 1, pulses: ServoPulses(closed: 2500, open: 500)),
        ])), trafficGuard: nil)
    file.profile = MotionProfile(travel: 2_000, limit: 6_500)
    return file
  }()

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
        "stepd.toml:15: [policy] proofs: expected an array of \"beacon\", \"nfc\", \"qr\" or \"heard\", found an empty array"
      ),
      (
        "proofs = [\"beacon\"]", "proofs = [\"beacon\", \"becon\"]",
        "stepd.toml:15: [policy] proofs: expected an array of \"beacon\", \"nfc\", \"qr\" or \"heard\", found \"becon\" in it"
      ),
      (
        "proofs = [\"beacon\"]", "proofs = \"beacon\"",
        "stepd.toml:15: [policy] proofs: expected an array of \"beacon\", \"nfc\", \"qr\" or \"heard\", found \"beacon\""
      ),
      (
        "proof_age_s = 5", "proof_age_s = 60.5",
        "stepd.toml:16: [policy] proof_age_s: expected a number from 1 to 60, found 60.5"
      ),
      (
        "proof_age_s = 5", "link_dbm = -70",
        "stepd.toml:16: [policy] link_dbm: the strength of a link alone proves nothing: it takes both = true"
      ),
      (
        "proof_age_s = 5", "reserve_s = 600.1",
        "stepd.toml:16: [policy] reserve_s: expected a number from 0 to 600, found 600.1"
      ),
      (
        "proof_age_s = 5", "proof_age_s = nan",
        "stepd.toml:16: [policy] proof_age_s: expected a number from 1 to 60, found nan"
      ),
      ("driver = \"pwm\"", "", "stepd.toml:18: [servo] driver is missing"),
      (
        "driver = \"pwm\"", "driver = \"PWM\"",
        "stepd.toml:19: [servo] driver: expected \"simulated\", \"pwm\" or \"pca9685\", found \"PWM\""
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
        "stepd.toml:25: [servo.steps.left] chip: expected an integer from 0 to 255, or the name of a device as \"1f00098000.pwm\", found 256"
      ),
      (
        "channel = 1", "channel = 0",
        "stepd.toml:30: [servo.steps.right] channel: 0 of pwmchip0 is the servo of the step \"left\""
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

  private static let wired = """
    [inputs]
    enable = "gpio:/dev/gpiochip0:7"
    [inputs.steps.left]
    clear = { source = "gpio:/dev/gpiochip0:3", active_low = true, debounce_ms = 0 }
    end_open = "file:/run/vehicle/open"
    end_closed = { source = "file:closed" }
    [interlock]
    standing = "gpio:/dev/gpiochip1:3"
    moving = "retract"
    lost = "standing"
    [watchdog]
    timeout_s = 5
    [place]
    gpsd = "localhost"
    [metrics]
    file = "stepd.prom"

    """
  private static let wiredLine = Sample.controller.split(separator: "\n", omittingEmptySubsequences: false).count

  @Test("inputs, the interlock and the watchdog are read")
  func inputs() throws {
    let file = try read(Sample.controller + Self.wired, path: "car/stepd.toml")
    #expect(
      file.inputs
        == Inputs(
          wirings: [
            .enable: InputWiring(.gpio(chip: "/dev/gpiochip0", line: 7)),
            .clear(Sample.left): InputWiring(
              .gpio(chip: "/dev/gpiochip0", line: 3), isActiveLow: true, debounce: 0),
            .endOpen(Sample.left): InputWiring(.file("/run/vehicle/open")),
            .endClosed(Sample.left): InputWiring(.file("car/closed")),
            .standing: InputWiring(.gpio(chip: "/dev/gpiochip1", line: 3)),
          ], interlock: Interlock(onMoving: .retract, countsLostAsMoving: false)))
    #expect(file.watchdog == ControllerFile.Watchdog(device: "/dev/watchdog", timeout: 5))
    #expect(file.metrics == "car/stepd.prom")
    #expect(file.placeReceiver == HostPort(host: "localhost", port: 2947))
    let plain = try read(Sample.controller)
    #expect(plain.inputs == Inputs() && plain.watchdog == nil && plain.metrics == nil && plain.placeReceiver == nil)
    let standard = try read(Sample.controller + "[interlock]\nstanding = \"file:a\"\n[watchdog]\n")
    #expect(standard.inputs.interlock == Interlock(onMoving: .warn, countsLostAsMoving: true))
    #expect(standard.inputs.wirings[.standing]?.debounce == 20)
    #expect(standard.watchdog == ControllerFile.Watchdog(device: "/dev/watchdog", timeout: 10))
  }

  @Test("the vehicle's speed tells whether it stands, and nothing else")
  func speed() throws {
    func standing(_ value: String) throws -> InputWiring? {
      try read(Sample.controller + "[interlock]\nstanding = \(value)\n").inputs.wirings[.standing]
    }
    let address = OBDAddress.serial(path: "/dev/ttyUSB0", speed: 38_400)
    #expect(try standing("\"obd:/dev/ttyUSB0\"") == InputWiring(.speed(address), debounce: 1000))
    #expect(
      try standing("{ source = \"obd:tcp:[::1]:35000\", debounce_ms = 0 }")
        == InputWiring(.speed(.network(HostPort(host: "::1", port: 35_000))), debounce: 0))
    let expected =
      #"expected "gpio:LABEL:LINE", "gpio:/dev/CHIP:LINE", "file:PATH", "obd:/dev/TTY" or "obd:tcp:HOST:PORT""#
    #expect(complaint { _ = try standing("\"obd:ttyUSB0\"") }?.contains(expected) == true)
    let levels = complaint { _ = try standing("{ source = \"obd:/dev/ttyUSB0\", active_low = true }") }
    #expect(levels?.hasSuffix("active_low: a speed has no level: leave this out") == true)
    let enable = complaint { _ = try read(Sample.controller + "[inputs]\nenable = \"obd:/dev/ttyUSB0\"\n") }
    #expect(enable?.hasSuffix(#""gpio:/dev/CHIP:LINE" or "file:PATH", found "obd:/dev/ttyUSB0""#) == true)
  }

  @Test(
    "a mistake in an input is named",
    arguments: [
      (
        "gpiochip0:7\"", "gpiochip0\"", 1,
        "[inputs] enable: expected \"gpio:LABEL:LINE\", \"gpio:/dev/CHIP:LINE\" or \"file:PATH\", found \"gpio:/dev/gpiochip0\""
      ),
      (
        "gpiochip0:7\"", "gpiochip0:-1\"", 1,
        "[inputs] enable: expected \"gpio:LABEL:LINE\", \"gpio:/dev/CHIP:LINE\" or \"file:PATH\", found \"gpio:/dev/gpiochip0:-1\""
      ),
      (
        "gpiochip0:7\"", "gpiochip0:07\"", 1,
        "[inputs] enable: expected \"gpio:LABEL:LINE\", \"gpio:/dev/CHIP:LINE\" or \"file:PATH\", found \"gpio:/dev/gpiochip0:07\""
      ),
      (
        "gpio:/dev/gpiochip0:7\"", "gpio:gpiochip0:7\"", 1,
        "[inputs] enable: expected \"gpio:LABEL:LINE\", \"gpio:/dev/CHIP:LINE\" or \"file:PATH\", found \"gpio:gpiochip0:7\""
      ),
      (
        "gpio:/dev/gpiochip0:7\"", "i2c:/dev/i2c-1:7\"", 1,
        "[inputs] enable: expected \"gpio:LABEL:LINE\", \"gpio:/dev/CHIP:LINE\" or \"file:PATH\", found \"i2c:/dev/i2c-1:7\""
      ),
      (
        "\"gpio:/dev/gpiochip0:7\"", "7", 1,
        "[inputs] enable: expected \"gpio:LABEL:LINE\", \"gpio:/dev/CHIP:LINE\" or \"file:PATH\", found 7"
      ),
      (
        "file:closed", "file:", 5,
        "[inputs.steps.left.end_closed] source: expected \"gpio:LABEL:LINE\", \"gpio:/dev/CHIP:LINE\" or \"file:PATH\", found \"file:\""
      ),
      ("{ source = \"file:closed\" }", "{ active_low = true }", 5, "[inputs.steps.left.end_closed] source is missing"),
      (
        "{ source = \"file:closed\" }", "{ source = \"file:closed\", bias = \"up\" }", 5,
        "[inputs.steps.left.end_closed] bias: unknown key, expected source, active_low or debounce_ms"
      ),
      (
        "debounce_ms = 0", "debounce_ms = 5001", 3,
        "[inputs.steps.left.clear] debounce_ms: expected an integer from 0 to 5000, found 5001"
      ),
      ("gpiochip0:3", "gpiochip0:7", 3, "[inputs.steps.left] clear: gpio:/dev/gpiochip0:7 is [inputs] enable already"),
      (
        "gpiochip1:3", "gpiochip0:3", 7,
        "[interlock] standing: gpio:/dev/gpiochip0:3 is [inputs.steps.left] clear already"
      ),
      ("end_open", "open", 4, "[inputs.steps.left] open: unknown key, expected clear, end_open or end_closed"),
      (
        "[inputs.steps.left]", "[inputs.steps.\"a b\"]", 2,
        "[inputs.steps.\"a b\"] expected the id of a step, 1 to 32 of a-z, 0-9, \"-\" and \"_\", found \"a b\""
      ),
      ("standing = \"gpio:/dev/gpiochip1:3\"\n", "", 6, "[interlock] standing is missing"),
      ("\"retract\"", "\"close\"", 8, "[interlock] moving: expected \"warn\" or \"retract\", found \"close\""),
      (
        "\"standing\"\n[", "\"stands\"\n[", 9, "[interlock] lost: expected \"moving\" or \"standing\", found \"stands\""
      ),
      ("timeout_s = 5", "timeout_s = 1", 11, "[watchdog] timeout_s: expected an integer from 2 to 60, found 1"),
    ])
  func inputMistakes(part: String, replacement: String, line: Int, expected: String) throws {
    try #require(Self.wired.contains(part))
    let text = Sample.controller + Self.wired.replacing(part, with: replacement, maxReplacements: 1)
    let found = try #require(complaint { _ = try read(text) })
    #expect(found == "stepd.toml:\(Self.wiredLine + line): \(expected)")
  }

  @Test("a PWM chip has a number, or the name of its device, and a GPIO chip a path, or a label")
  func labels() throws {
    let text =
      Sample.controller.replacing("chip = 0", with: "chip = \"1f00098000.pwm\"")
      + Self.wired
      .replacing("/dev/gpiochip0", with: "pinctrl-rp1")
    let file = try read(text)
    guard case .pwm(let outputs) = file.servo else {
      Issue.record("not PWM")
      return
    }
    #expect(outputs.channels[Sample.left]?.chip == .device("1f00098000.pwm"))
    #expect(file.inputs.wirings[.enable]?.source == .gpio(chip: "pinctrl-rp1", line: 7))
    #expect(try read(file.render()).servo == file.servo)
    for wrong in [
      "\"pwmchip0\"", "\"../x\"", "\".\"", "\"\"", "\"\(String(repeating: "a", count: 65))\"", "-1", "true",
    ] {
      let complaint = complaint {
        _ = try read(
          Sample.controller.replacing("[servo.steps.left]\nchip = 0", with: "[servo.steps.left]\nchip = \(wrong)"))
      }
      #expect(complaint?.contains("[servo.steps.left] chip: expected an integer from 0 to 255, or the name") == true)
    }
  }

  private static let board = """
    driver = "pca9685"
    bus = "/dev/i2c-3"
    address = 0x41
    """

  @Test("a PCA9685 is read, and its mistakes are named")
  func pca9685() throws {
    let text = Sample.controller.replacing("driver = \"pwm\"", with: Self.board).replacing("chip = 0\n", with: "")
    let channels = [
      Sample.left: PCA9685Channel(channel: 0),
      Sample.right: PCA9685Channel(channel: 1, pulses: ServoPulses(closed: 2500, open: 500)),
    ]
    #expect(
      try read(text).servo
        == .pca9685(PCA9685Outputs(bus: "/dev/i2c-3", address: 0x41, frequency: 50, channels: channels)))
    for (part, replacement, expected) in [
      (
        "0x41", "0x70",
        "21: [servo] address: expected an integer from 0x40 to 0x77, and not 0x70, to which all boards listen, found 0x70"
      ),
      (
        "0x41", "0x3f",
        "21: [servo] address: expected an integer from 0x40 to 0x77, and not 0x70, to which all boards listen, found 0x3f"
      ),
      ("channel = 1", "channel = 16", "30: [servo.steps.right] channel: expected an integer from 0 to 15, found 16"),
      ("channel = 1", "channel = 0", "30: [servo.steps.right] channel: 0 is the servo of the step \"left\""),
      (
        "channel = 1", "chip = 0\nchannel = 1",
        "30: [servo.steps.right] chip: a PCA9685 is one chip: give bus and address in [servo]"
      ),
    ] {
      let found = complaint { _ = try read(text.replacing(part, with: replacement, maxReplacements: 1)) }
      #expect(found == "stepd.toml:\(expected)")
    }
  }

  @Test("what takes a restart is named by its table, and tags and policy are not")
  func changes() throws {
    let file = try read(Sample.controller)
    #expect(file.changesForRestart(to: file) == [])
    var other = file
    other.policy = Policy(methods: [.nfc], zone: .near, proofAge: 1_250)
    other.tagKeys = "keys/other.json"
    #expect(file.changesForRestart(to: other) == [])
    #expect(
      file.changesForRestart(to: try read(Sample.controller + Self.wired))
        == ["[inputs]", "[interlock]", "[watchdog]", "[metrics]", "[place]"])
    // Whatever else the file has is one of them.
    for change: (inout ControllerFile) -> Void in [
      { $0.vehicle = "x" }, { $0.journal = "x" }, { $0.broker.port = 1 }, { $0.keys.signing = "x" },
      { $0.beaconPeriod = 9 }, { $0.beacons[Sample.left] = .init(secret: "x") },
      { $0.ears[Sample.left] = .init(radio: .hci(1)) }, { $0.profile = MotionProfile(travel: 300, limit: 700) },
      { $0.servo = .simulated(log: "x") }, { $0.installed = .open },
    ] {
      var other = file
      change(&other)
      #expect(file.changesForRestart(to: other).count == 1)
    }
  }

  @Test("what is rendered reads the same")
  func roundTrip() throws {
    #expect(try read(sample.render()) == sample)
    var file = sample
    file.servo = .simulated(log: "a \"b\".jsonl")
    file.profile = MotionProfile(travel: 300, limit: 700)
    file.installed = .open
    file.policy = Policy(methods: [.beacon], zone: .near, proofAge: 1_250)
    #expect(try read(file.render()) == file)
    file.servo = .pca9685(
      PCA9685Outputs(
        address: 0x55, channels: [Sample.left: PCA9685Channel(channel: 15, pulses: ServoPulses(closed: 600))]))
    #expect(try read(file.render()) == file)
  }
}
