import Bluetooth
import Domain
import Encoding
import Terminal
import TestSupport
import Testing

@testable import StepCommands

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
    let ended = shell.types("doctor", "--radio", "btsnoop:\(capture)")
    #expect(ended.ending == .status(.done))
    #expect(ended.errors == "")
    #expect(
      ended.lines == [
        "btsnoop:\(capture)",
        "  ok     listening   600 heard, 600 from 2 beacons, up to 100.0 readings/s",
        "usable: btsnoop:\(capture)",
      ])
    let object = try #require(try shell.types("doctor", "--radio", "btsnoop:\(capture)", "--json").objects.first)
    #expect(object["usable"] == true)
    #expect(object["radios"]?.array?.first?["beacons"] == 2)
  }

  @Test("few readings are noted")
  func few() throws {
    let capture = try shell.capture("heard", [(0, .left, -50)])
    let ended = shell.types("doctor", "--radio", "btsnoop:\(capture)")
    #expect(
      ended.lines[1]
        == "  note   listening   1 heard, 1 from 1 beacon, up to 0.3 readings/s: too few to locate you")
  }

  @Test("a radio that cannot be used is a finding, and its status is the command's")
  func unusable() throws {
    let missing = shell.types("doctor", "--radio", "btsnoop:\(shell.path("none"))")
    #expect(missing.ending == .status(.noInput))
    #expect(missing.lines[1].hasPrefix("  wrong  radio       cannot open "))
    #expect(missing.lines.last == "no radio is usable")
    #expect(missing.errors == "")
    let object = try #require(
      try shell.types("doctor", "--radio", "h4:unix:\(shell.path("none"))", "--json").objects.first)
    #expect(object["usable"] == false)
    #expect(object["radios"]?.array?.first?["findings"]?.array?.first?["state"] == "wrong")
    #expect(shell.types("doctor", "--radio", "h4:unix:\(shell.path("none"))").ending == .status(.unavailable))
  }

  @Test(
    "without Bluetooth it says what is missing, and what to type",
    .enabled(if: Adapter.all().isEmpty, "this machine has an adapter"))
  func noBluetooth() throws {
    let ended = shell.types("doctor")
    #expect(ended.ending == .status(.unavailable))
    #expect(ended.lines.first == "hci0")
    #expect(ended.lines[1].hasPrefix("  wrong  "))
    #expect(ended.lines[2].hasPrefix("         type:       sudo "))
    #expect(ended.lines.last == "no radio is usable")
  }

  @Test("a terminal gets colors and a line of progress, which goes away")
  func terminal() throws {
    var shell = shell
    shell.size = Screen.Size(rows: 24, columns: 80)
    let capture = try shell.capture("heard", [(0, .left, -50)])
    let spec = "btsnoop:\(capture)"
    let ended = shell.types("doctor", "--radio", spec)
    #expect(ended.lines.first == "\u{1B}[1m\(spec)\u{1B}[0m")
    #expect(ended.errors == "\r\(spec): listening\u{1B}[K\r\u{1B}[K")
    #expect(shell.types("doctor", "--radio", spec, "-q").errors == "")
    #expect(!shell.types("doctor", "--radio", spec, "--no-color").output.contains("\u{1B}"))
  }

  @Test("a signal ends it")
  func interruption() throws {
    var shell = shell
    shell.isInterrupted = true
    let capture = try shell.capture("heard", [(0, .left, -50)])
    let ended = shell.types("doctor", "--radio", "btsnoop:\(capture)")
    #expect(ended.ending != .status(.done))
  }
}
