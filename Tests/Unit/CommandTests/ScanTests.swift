import Bluetooth
import Domain
import Encoding
import Glibc
import Ranging
import SystemIO
import Terminal
import TestSupport
import Testing

@Suite("stepctl scan")
struct ScanTests {
  private let shell: Shell

  init() throws { shell = try Shell() }

  private func scans(_ capture: String, _ more: String...) -> Shell.Ended {
    shell.types(["scan", "--radio", "btsnoop:\(capture)"] + more)
  }

  @Test("prints a line for each frame of a capture, of 80 columns at most")
  func lines() throws {
    let ended = scans(Repository.fixture("captures/raspberry-pi.btsnoop"))
    #expect(ended.ending == .status(.done))
    #expect(ended.errors == "")
    #expect(ended.lines.count == 113)
    #expect(ended.lines.allSatisfy { $0.count <= 80 })
    let line = try #require(ended.lines.first)
    let form = /\d\d:\d\d:\d\d\.\d{3}  [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12} +\d+ +\d+ +-\d+ dBm +-\d+/
    #expect(line.wholeMatch(of: form) != nil, "\(line)")
  }

  @Test("prints the same as JSON")
  func json() throws {
    let capture = try shell.capture("heard", [(0, .left, -50), (0.1, .right, nil)])
    let ended = scans(capture, "--json")
    #expect(ended.ending == .status(.done))
    let objects = try ended.objects
    #expect(objects.count == 2)
    #expect(objects[0]["major"] == .integer(1))
    #expect(objects[0]["uuid"] == .string(Shell.vehicle.description))
    #expect(objects[0]["rssi_dbm"] == .integer(-50))
    #expect(objects[0]["measured_power_dbm"] == .integer(-59))
    #expect(objects[1]["major"] == .integer(2))
    #expect(objects[1]["rssi_dbm"] == .null)
    #expect(objects[0].object?.map(\.name) == objects[1].object?.map(\.name))
    #expect(scans(capture).lines[1].hasSuffix("2      1   no RSSI   -59"))
  }

  @Test("ends after a time on the radio's clock")
  func timeout() throws {
    let capture = try shell.capture("heard", [(0, .left, -50), (1, .left, -50), (3, .left, -50)])
    #expect(scans(capture).lines.count == 3)
    #expect(scans(capture, "--timeout", "2").lines.count == 2)
    let wrong = scans(capture, "--timeout", "0")
    #expect(wrong.ending == .status(.usage))
    #expect(wrong.errors == "stepctl: error: --timeout: expected 0.1 s to 1 h, as 10, 10s or 2m, found \"0\"\n")
  }

  @Test("saves what it prints, into a new file only")
  func saving() throws {
    let capture = try shell.capture("heard", [(0, .left, -50), (0.1, .right, -70)])
    let saved = shell.path("saved.btsnoop")
    let first = scans(capture, "--save", saved, "--json")
    #expect(first.ending == .status(.done))
    #expect(scans(saved, "--json").output == first.output)
    let second = scans(capture, "--save", saved)
    #expect(second.ending == .status(.inputOutput))
    #expect(second.errors == "stepctl: error: cannot save to \(saved): File exists\n")
    #expect(scans(capture, "--save", "-").ending == .status(.usage))
  }

  @Test("says what is wrong with a radio, and ends with its status")
  func radios() throws {
    let none = scans(shell.path("none"))
    #expect(none.ending == .status(.noInput))
    #expect(none.errors == "stepctl: error: cannot open \(shell.path("none")): No such file or directory\n")
    let text = try shell.folder.write("text", "no capture at all, but long enough to be one")
    #expect(scans(text).ending == .status(.badData))
    let typed = shell.types("scan", "--radio", "rubbish")
    #expect(typed.ending == .status(.usage))
    #expect(typed.errors.hasPrefix("stepctl: error: --radio: \"rubbish\" is not a radio: "))
    var shell = shell
    shell.environment["STEPCTL_RADIO"] = "rubbish"
    let set = shell.types("scan")
    #expect(set.ending == .status(.configuration))
    #expect(set.errors.hasPrefix("stepctl: error: STEPCTL_RADIO: \"rubbish\" is not a radio: "))
  }

  @Test("what was heard before a capture is damaged is printed")
  func damaged() throws {
    let capture = try shell.capture("heard", [(0, .left, -50), (0.1, .right, -70)])
    let bytes = try Files.read(capture)
    try Files.replace(shell.path("torn"), with: bytes.dropLast(3), mode: 0o600)
    let ended = scans(shell.path("torn"))
    #expect(ended.ending == .status(.badData))
    #expect(ended.lines.count == 1)
    #expect(ended.errors.hasPrefix("stepctl: error: \(shell.path("torn")) is damaged at byte "))
  }

  @Test("a terminal gets a table of a capture")
  func terminal() throws {
    var shell = shell
    shell.size = Screen.Size(rows: 24, columns: 80)
    shell.environment["TERM"] = "xterm"
    let capture = try shell.capture("heard", [(0, .left, -50)])
    let ended = shell.types("scan", "--radio", "btsnoop:\(capture)")
    #expect(ended.ending == .status(.done))
    #expect(ended.output.contains("\u{1B}[?1049h") && ended.output.contains("1 beacon"))
  }

  @Test("a signal ends it as the signal would")
  func interruption() throws {
    var shell = shell
    shell.isInterrupted = true
    let pipe = shell.path("pipe")
    try #require(mkfifo(pipe, 0o600) == 0)
    let descriptor = try Descriptor.open(pipe, O_RDWR)
    let ended = shell.types("scan", "--radio", "btsnoop:\(pipe)")
    #expect(ended.ending == .signal(SIGINT))
    #expect(ended.errors == "")
    _ = consume descriptor
  }
}
