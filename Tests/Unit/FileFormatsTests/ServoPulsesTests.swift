import Domain
import FileFormats
import StepController
import StepdConfiguration
import Testing

@Suite("pulses in stepd.toml")
struct ServoPulsesTests {
  private static let head = """
    vehicle = "vehicle.toml"  # ours
    [broker]
    cert = "a.pem"
    key = "a.key"
    [keys]
    encryption = "e.jwk"
    signing = "s.jwk"
    operator = "\(Sample.key)"

    """

  private static func servo(_ left: String, driver: String = "pwm") -> String {
    head + "[servo]\ndriver = \"\(driver)\"\n[servo.steps.left]\n\(left)\n"
  }

  private func setting(_ closed: Int, _ open: Int, in text: String, of step: String = "left") throws -> String {
    String(
      decoding: try ControllerFile.setting(
        ServoPulses(closed: closed, open: open), of: StepID(step)!, in: Array(text.utf8), path: "stepd.toml"),
      as: UTF8.self)
  }

  @Test("take the place of those that are there, and every other byte stays")
  func replaced() throws {
    let text = Self.servo("chip = 0\n\tclosed_us = 1_000 # was 900\nchannel = 1\r\nopen_us=0x7D0")
    let expected = Self.servo("chip = 0\n\tclosed_us = 612 # was 900\nchannel = 1\r\nopen_us=2391")
    #expect(try setting(612, 2391, in: text) == expected)
    // The other way round, and where each is what the other was.
    #expect(try setting(2000, 1000, in: text).contains("closed_us = 2000 # was 900"))
  }

  @Test("are added behind the channel, in the way that the table is written")
  func added() throws {
    let text = Self.servo("chip = 0\r\n  channel = 1 # the yellow one\r\n# closed_us = 5")
    #expect(
      try setting(700, 2300, in: text)
        == Self.servo(
          "chip = 0\r\n  channel = 1 # the yellow one\r\n  closed_us = 700\r\n  open_us = 2300\r\n# closed_us = 5"))
    let inline = Self.head + "[servo]\ndriver = \"pca9685\"\nsteps.left = { channel = 3 } # here\n"
    #expect(
      try setting(700, 2300, in: inline)
        == inline.replacing("{ channel = 3 }", with: "{ channel = 3, closed_us = 700, open_us = 2300 }"))
  }

  @Test("are written for the day when the servo is no more simulated")
  func simulated() throws {
    let text = Self.servo("chip = 0\nchannel = 1", driver: "simulated")
    #expect(try setting(700, 2300, in: text).contains("closed_us = 700\nopen_us = 2300"))
  }

  @Test("are not written where there is no servo for the step, or the file is wrong")
  func refused() {
    let text = Self.servo("chip = 0\nchannel = 1")
    #expect(throws: ConfigurationError("stepd.toml", "there is no [servo.steps.right] to write to")) {
      try setting(700, 2300, in: text, of: "right")
    }
    #expect(throws: ConfigurationError.self) { try setting(700, 2300, in: text + "[") }
    #expect(throws: ConfigurationError.self) { try setting(700, 700, in: text) }
    #expect(throws: ConfigurationError.self) { try setting(300, 700, in: text) }
  }
}
