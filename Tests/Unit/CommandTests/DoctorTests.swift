import Bluetooth
import Domain
import Encoding
import Glibc
import Terminal
import TestSupport
import Testing

@testable import CommandParts

@Suite("stepctl doctor")
struct DoctorTests {
  private let shell: Shell

  init() throws { shell = try Shell() }

  @Test("a capture can be listened to, and what it holds is counted")
  func capture() throws {
    let frames = (0..<300).flatMap { tick -> [(Double, Side, Int8?)] in
      [(Double(tick) / 100, .left, -50), (Double(tick) / 100, .right, -70)]
    }
    let capture = try shell.capture("heard", frames)
    let ended = shell.types("doctor", "radio", "--radio", "btsnoop:\(capture)")
    #expect(ended.ending == .status(.done))
    #expect(ended.errors == "")
    #expect(
      ended.lines == [
        "btsnoop:\(capture)",
        "  ok       listening   600 heard, 600 from 2 beacons, up to 100.0 readings/s",
        "all is well",
      ])
    let object = try #require(
      try shell.types("doctor", "radio", "--radio", "btsnoop:\(capture)", "--json").objects.first)
    #expect(object["usable"] == true)
    #expect(object["radios"]?.array?.first?["beacons"] == 2)
  }

  @Test(
    "each missing file of a rider has a command that brings it back",
    arguments: [
      ("device.jwk", "stepctl enroll --output request"), ("rider.key", "stepctl enroll --output request"),
      ("token.jwt", "stepctl config import FILE"), ("ca.pem", "stepctl config import FILE"),
      ("rider.pem", "stepctl config import FILE"),
    ])
  func missing(_ name: String, _ remedy: String) throws {
    #expect(shell.types("provision", "vehicle", shell.path("car")).ending == .status(.done))
    #expect(shell.types("provision", "token", shell.path("car"), "--rider", "anna").ending == .status(.done))
    let folder = shell.path("car/riders/anna")
    #expect(unlink("\(folder)/\(name)") == 0)
    let ended = shell.types("doctor", "vehicle", "--vehicle", "\(folder)/vehicle.toml")
    #expect(ended.lines.contains { $0.hasPrefix("  broken   ") && $0.contains(name) }, "\(ended.output)")
    #expect(ended.lines.contains("           type:       \(remedy)"), "\(ended.output)")
  }

  @Test("few readings are noted")
  func few() throws {
    let capture = try shell.capture("heard", [(0, .left, -50)])
    let ended = shell.types("doctor", "radio", "--radio", "btsnoop:\(capture)")
    #expect(
      ended.lines[1]
        == "  warning  listening   1 heard, 1 from 1 beacon, up to 0.3 readings/s: too few to locate you")
    #expect(ended.lines.last == "works; one warning (listening)")
  }

  @Test("a radio that cannot be used is a finding, and its status is the command's")
  func unusable() throws {
    let missing = shell.types("doctor", "radio", "--radio", "btsnoop:\(shell.path("none"))")
    #expect(missing.ending == .status(.noInput))
    #expect(missing.lines[1].hasPrefix("  broken   radio       cannot open "))
    #expect(missing.lines.last == "broken: btsnoop:\(shell.path("none"))")
    #expect(missing.errors == "")
    let object = try #require(
      try shell.types("doctor", "radio", "--radio", "h4:unix:\(shell.path("none"))", "--json").objects.first)
    #expect(object["usable"] == false)
    #expect(object["radios"]?.array?.first?["findings"]?.array?.first?["state"] == "broken")
    #expect(shell.types("doctor", "radio", "--radio", "h4:unix:\(shell.path("none"))").ending == .status(.unavailable))
  }

  @Test(
    "without Bluetooth it says what is missing, and what to type",
    .enabled(if: Adapter.all().isEmpty, "this machine has an adapter"))
  func noBluetooth() throws {
    let ended = shell.types("doctor", "radio")
    #expect(ended.ending == .status(.unavailable))
    #expect(ended.lines.first == "hci0")
    #expect(ended.lines[1].hasPrefix("  broken   "))
    #expect(ended.lines[2].hasPrefix("           type:       sudo "))
    #expect(ended.lines.last == "broken: hci0")
  }

  @Test("a terminal gets colors and a line of progress, which goes away")
  func terminal() throws {
    var shell = shell
    shell.size = Screen.Size(rows: 24, columns: 80)
    shell.environment["TERM"] = "xterm"
    let capture = try shell.capture("heard", [(0, .left, -50)])
    let spec = "btsnoop:\(capture)"
    let ended = shell.types("doctor", "radio", "--radio", spec)
    #expect(ended.lines.first == "\u{1B}[1m\(spec)\u{1B}[0m")
    #expect(ended.errors == "\r\(spec): listening\u{1B}[K\r\u{1B}[K\r\u{1B}[K")
    #expect(shell.types("doctor", "radio", "--radio", spec, "-q").errors == "")
    #expect(!shell.types("doctor", "radio", "--radio", spec, "--no-color").output.contains("\u{1B}"))
    // One that cannot move its cursor gets neither.
    shell.environment["TERM"] = "dumb"
    let plain = shell.types("doctor", "radio", "--radio", spec)
    #expect(!(plain.output + plain.errors).contains("\u{1B}"))
  }

  @Test("without a vehicle it says how to get one, and goes on")
  func noVehicle() throws {
    let ended = shell.types("doctor", "vehicle", "reader")
    #expect(ended.ending == .status(.done))
    #expect(ended.lines.contains("  warning  file        no vehicle is known"))
    #expect(ended.lines.contains("           type:       stepctl config import FILE"))
    #expect(
      ["works; one warning (file)", "works; 2 warnings (clock, file)"].contains(ended.lines.last), "\(ended.output)")
    // Nobody can look at a broker that no file names.
    #expect(shell.types("doctor", "broker").lines.first == "vehicle")
  }

  @Test("a vehicle's file that is wrong, and a token that is missing, are found")
  func vehicleFile() throws {
    let wrong = shell.types("doctor", "vehicle", "--vehicle", try shell.folder.write("wrong.toml", "name = 1\n"))
    #expect(wrong.ending == .status(.configuration))
    #expect(wrong.lines.last == "broken: vehicle")
    let bare = shell.types("doctor", "vehicle", "--vehicle", try shell.vehicleFile())
    #expect(bare.ending == .status(.done))
    #expect(bare.lines.contains("  warning  token       none: without one nothing moves"))
  }

  @Test("what is named and not there is broken")
  func reader() throws {
    let ended = shell.types("doctor", "reader", "--nfc", "pn532_uart:\(shell.path("none"))")
    #expect(ended.ending == .status(.unavailable))
    #expect(ended.lines.last == "broken: reader")
    let object = try #require(
      try shell.types("doctor", "reader", "--nfc", "pn532_uart:\(shell.path("none"))", "--json").objects.first)
    #expect(object["state"] == "broken" && object["exit"] == 69)
  }

  @Test("a signal ends it")
  func interruption() throws {
    var shell = shell
    shell.isInterrupted = true
    let capture = try shell.capture("heard", [(0, .left, -50)])
    let ended = shell.types("doctor", "radio", "--radio", "btsnoop:\(capture)")
    #expect(ended.ending != .status(.done))
  }
}
