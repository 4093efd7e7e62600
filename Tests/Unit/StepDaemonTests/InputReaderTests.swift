import Domain
import Glibc
import StepController
import SystemIO
import TestSupport
import Testing

@testable import StepDaemon

@Suite("What an input counts as") struct DebounceTests {
  private let start = Instant.now

  private func at(_ milliseconds: Int) -> Instant { start + .milliseconds(milliseconds) }

  @Test("nothing is known until it was read; inactive counts at once, active when it has lasted")
  func asymmetric() {
    var input = Debounce(.milliseconds(20))
    #expect(input.isActive == nil)
    input.take(false, at: at(0))
    #expect(input.isActive == false && input.due == nil)
    input.take(true, at: at(10))
    #expect(input.isActive == false && input.due == at(30))
    input.settle(at: at(29))
    #expect(input.isActive == false)
    input.settle(at: at(30))
    #expect(input.isActive == true && input.due == nil)
    input.take(false, at: at(31))
    #expect(input.isActive == false)
  }

  @Test("a contact that bounces begins anew each time it opens")
  func bouncing() {
    var input = Debounce(.milliseconds(20))
    for time in stride(from: 0, to: 60, by: 10) {
      input.take(true, at: at(time))
      input.take(false, at: at(time + 5))
      #expect(input.isActive == false)
    }
    input.take(true, at: at(60))
    input.take(true, at: at(79))
    #expect(input.isActive == false && input.due == at(80))
    input.take(true, at: at(80))
    #expect(input.isActive == true)
  }

  @Test("a lost input is so at once, and is not active before it was for its time")
  func lost() {
    var input = Debounce(.zero)
    input.take(true, at: at(0))
    #expect(input.isActive == true)
    input.take(nil, at: at(1))
    #expect(input.isActive == nil)
    input = Debounce(.milliseconds(20))
    input.take(true, at: at(0))
    input.take(nil, at: at(10))
    input.settle(at: at(40))
    #expect(input.isActive == nil)
    input.take(true, at: at(50))
    #expect(input.isActive == nil && input.due == at(70))
  }

  @Test("at random: active only when the last reading is, and all of those within the delay were", arguments: 1...200)
  func random(seed: Int) {
    var random = SplitMix(UInt64(seed))
    var input = Debounce(.milliseconds(20))
    var readings: [(time: Int, level: Bool?)] = []
    var time = 0
    for _ in 0..<200 {
      time += Int(random.next() % 15)
      let level: Bool? = [true, true, true, false, nil][Int(random.next() % 5)]
      readings.append((time, level))
      input.take(level, at: at(time))
      let since = readings.lastIndex { $0.level != true }.map { $0 + 1 } ?? 0
      let isActive = since < readings.count && time - readings[since].time >= 20
      #expect((input.isActive == true) == isActive)
      if level != true { #expect(input.isActive == level) }
    }
  }
}

/// Something that an input is connected to.
private protocol Contact: AnyObject {
  var source: InputSource { get }
  func set(_ level: Bool) throws
  /// The input cannot be read any more.
  func vanish() throws
  /// It can be read again, and reads 0.
  func comeBack() throws
}

private final class FileContact: Contact {
  let folder = try! TemporaryFolder()
  var path: String { folder.path + "/input" }
  var source: InputSource { .file(path) }

  init() throws { try set(false) }
  func set(_ level: Bool) throws { try Files.replace(path, with: (level ? "1\n" : "0\n").utf8, mode: 0o644) }
  func vanish() { unlink(path) }
  func comeBack() throws { try set(false) }
}

/// A line of a chip that gpio-sim plays (Linux, Documentation/admin-guide/gpio/gpio-sim.rst).
///
/// Linux 6.1 gives a chip another number when it comes back after it went with a line in use, so it has a name, as udev
/// would give it one.
private final class SimulatedLine: Contact {
  private static let name = "/dev/step-gpio"
  private static let configuration = "/sys/kernel/config/gpio-sim/step"
  let source = InputSource.gpio(chip: name, line: 3)
  /// `gpiochip0`, or another number.
  private(set) var chip = ""

  init() throws {
    let (status, output) = shell(
      """
      mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
      mkdir -p '\(Self.configuration)/bank' && echo 8 >'\(Self.configuration)/bank/num_lines'
      echo step-lines >'\(Self.configuration)/bank/label'
      """)
    try #require(status == 0, "\(output)")
    try comeBack()
  }

  deinit {
    try? vanish()
    _ = shell("rmdir '\(Self.configuration)/bank' '\(Self.configuration)'")
  }

  private func configure(_ name: String, _ value: String) throws {
    try Descriptor.open("\(Self.configuration)/\(name)", O_WRONLY).write(value.utf8)
  }

  private func word(_ name: String) throws -> String {
    try TemporaryFolder.text("\(Self.configuration)/\(name)").filter { !$0.isNewline }
  }

  func comeBack() throws {
    try configure("live", "1")
    chip = try word("bank/chip_name")
    symlink(chip, Self.name)
  }

  func vanish() throws {
    try configure("live", "0")
    unlink(Self.name)
  }

  func set(_ level: Bool) throws { try pull(level ? "pull-up" : "pull-down") }

  func pull(_ direction: String) throws {
    let path = "/sys/devices/platform/\(try word("dev_name"))/\(chip)/sim_gpio3/pull"
    try Descriptor.open(path, O_WRONLY).write(direction.utf8)
  }
}

private struct InputContract {
  let contact: any Contact

  private func reader() throws -> InputReader {
    try InputReader([.enable: InputWiring(contact.source, debounce: 400)])
  }

  private func reports(_ reader: InputReader, within patience: Duration = .seconds(60)) throws -> Bool? {
    let event = try #require(next(reader.events, within: patience))
    #expect(event.report.sensor == .enable)
    #expect((event.loss == nil) == (event.report.isActive != nil))
    return event.report.isActive
  }

  private func saysNothing(_ reader: InputReader) { #expect(next(reader.events, within: .milliseconds(900)) == nil) }

  func check() throws {
    // What it is at the start.
    try contact.set(false)
    var reader = try reader()
    #expect(try reports(reader) == false)
    saysNothing(reader)

    // Active when that has lasted, inactive at once.
    let raised = Instant.now
    try contact.set(true)
    #expect(try reports(reader) == true)
    #expect(raised.duration(to: .now) >= .milliseconds(399))
    try contact.set(false)
    #expect(try reports(reader) == false)

    // Too short to count.
    try contact.set(true)
    try contact.set(false)
    saysNothing(reader)
    try contact.set(true)
    #expect(try reports(reader) == true)

    // Too short to be missed, where each change is an event.
    if case .gpio = contact.source {
      try contact.set(false)
      try contact.set(true)
      #expect(try reports(reader) == false)
      #expect(try reports(reader) == true)
    }

    // Lost, and back.
    try contact.vanish()
    #expect(try reports(reader) == nil)
    saysNothing(reader)
    try contact.comeBack()
    #expect(try reports(reader) == false)
    try contact.set(true)
    #expect(try reports(reader) == true)

    // Not there at the start.
    try contact.vanish()
    reader = try self.reader()
    #expect(try reports(reader) == nil)
    try contact.comeBack()
    #expect(try reports(reader) == false)

    // Who asks whether the thread lives is told.
    for _ in 0..<3 {
      #expect(reader.answers())
      usleep(5_000)
    }
  }
}

@Suite("Inputs, whatever they come from") struct InputContractTests {
  @Test("a file keeps the contract")
  func file() throws { try InputContract(contact: FileContact()).check() }

  @Test("what is debounced for a second before it is active is inactive at once")
  func fall() throws {
    let contact = try FileContact()
    // Where the one input falls, the other rises, which takes half a second.
    let reader = try InputReader([
      .enable: InputWiring(contact.source, debounce: 1_000),
      .standing: InputWiring(contact.source, isActiveLow: true, debounce: 500),
    ])
    func says(_ reports: SensorReport...) {
      for report in reports { #expect(next(reader.events, within: .seconds(60))?.report == report) }
    }
    says(SensorReport(.enable, isActive: false), SensorReport(.standing, isActive: true))
    try contact.set(true)
    says(SensorReport(.standing, isActive: false), SensorReport(.enable, isActive: true))
    try contact.set(false)
    says(SensorReport(.enable, isActive: false), SensorReport(.standing, isActive: true))
  }

  @Test(
    "a line of a real kernel keeps the contract, and is pulled to inactive",
    .enabled(if: Rig.hasKernel, "\(Rig.missing)"))
  func lines() {
    let (status, output) = Rig.run("KernelInputCases", "--scn none")
    #expect(status == 0 && output.contains("Test run with 5 tests"), "\(output)")
  }
}

@Suite("Inputs inside of a kernel", .serialized, .enabled(if: Rig.isHere, "runs in a kernel that another test starts"))
struct KernelInputCases {
  private let line = try! SimulatedLine()

  @Test func keepsTheContract() throws { try InputContract(contact: line).check() }

  @Test("a wire that is cut reads inactive, whichever level is active", arguments: [false, true])
  func cut(isActiveLow: Bool) throws {
    let reader = try InputReader([.enable: InputWiring(line.source, isActiveLow: isActiveLow, debounce: 0)])
    #expect(next(reader.events)?.report == SensorReport(.enable, isActive: false))
    // The kernel pulls the line, and nothing else does.
    try line.pull(isActiveLow ? "pull-down" : "pull-up")
    #expect(next(reader.events)?.report == SensorReport(.enable, isActive: true))
  }

  @Test("a chip that goes while its line is in use is lost at once")
  func unplugged() throws {
    let node = "/dev/\(line.chip)"
    let reader = try InputReader([.enable: InputWiring(.gpio(chip: node, line: 3))])
    #expect(next(reader.events)?.report == SensorReport(.enable, isActive: false))
    try line.vanish()
    // Nothing but the chip's going makes the reader look.
    #expect(
      next(reader.events)
        == InputEvent(
          report: SensorReport(.enable, isActive: nil), loss: "cannot open \(node): No such file or directory"))
  }

  @Test("a chip is found by its label, whatever its number, and comes back with another number")
  func labelled() throws {
    let wiring = InputWiring(.gpio(chip: "step-lines", line: 3), debounce: 0)
    #expect(try wiring.check() == "line 3 of step-lines (/dev/\(line.chip), 8 lines)")
    let reader = try InputReader([.enable: wiring])
    #expect(next(reader.events)?.report == SensorReport(.enable, isActive: false))
    try line.vanish()
    let lost = next(reader.events)
    #expect(lost?.report == SensorReport(.enable, isActive: nil))
    #expect(lost?.loss == "no GPIO chip has the label step-lines; there are none")
    try line.comeBack()
    #expect(next(reader.events)?.report == SensorReport(.enable, isActive: false))
  }

  @Test("a line that is not there, or that another program has, is lost and told")
  func taken() throws {
    let first = try InputReader([.enable: InputWiring(line.source)])
    #expect(next(first.events)?.loss == nil)
    let second = try InputReader([
      .enable: InputWiring(line.source), .standing: InputWiring(.gpio(chip: "/dev/step-gpio", line: 8)),
    ])
    let losses = Set([next(second.events), next(second.events)].map { $0?.loss })
    #expect(
      losses == [
        "cannot use line 3 of /dev/step-gpio: Device or resource busy", "/dev/step-gpio has no line 8, it has 8",
      ])
    #expect(throws: InputError.noLine(8, chip: "/dev/step-gpio", count: 8)) {
      try InputWiring(.gpio(chip: "/dev/step-gpio", line: 8)).check()
    }
    #expect(try InputWiring(line.source).check() == "line 3 of step-lines (/dev/step-gpio, 8 lines)")
  }
}

@Suite("Inputs from files") struct InputFileTests {
  private let folder = try! TemporaryFolder()
  private var path: String { folder.path + "/input" }

  private func reader(_ path: String? = nil, isActiveLow: Bool = false) throws -> InputReader {
    try InputReader([.standing: InputWiring(.file(path ?? self.path), isActiveLow: isActiveLow, debounce: 0)])
  }

  @Test("a file that is written in place is read as well, also by a program that keeps it open")
  func inPlace() throws {
    try folder.write("input", "0")
    let reader = try reader()
    #expect(next(reader.events)?.report.isActive == false)
    let file = try Descriptor.open(path, O_WRONLY)
    for level in [true, false, true] {
      #expect(pwrite(file.number, level ? "1" : "0", 1, 0) == 1)
      #expect(next(reader.events)?.report.isActive == level)
    }
  }

  @Test("with active_low, 0 is active")
  func activeLow() throws {
    try folder.write("input", "0")
    let reader = try reader(isActiveLow: true)
    #expect(next(reader.events)?.report.isActive == true)
    try folder.write("input", "1")
    #expect(next(reader.events)?.report.isActive == false)
  }

  @Test(
    "what is neither 0 nor 1 is lost, and says so",
    arguments: ["", "\n", "2", "01", "1 ", " 1", "1\n\n", "true", "1\0", "١"])
  func other(content: String) throws {
    try folder.write("input", content)
    let reader = try reader()
    let event = next(reader.events)
    #expect(event?.report.isActive == nil)
    #expect(["\(path) does not hold 0 or 1", "cannot read \(path): File too large"].contains(event?.loss))
    try folder.write("input", "1")
    #expect(next(reader.events)?.report.isActive == true)
  }

  @Test("a link, a pipe, a folder and a file of the kernel's are lost: what becomes of them is not told")
  func strange() throws {
    try folder.write("target", "1")
    symlink("target", folder.path + "/link")
    mkfifo(folder.path + "/pipe", 0o600)
    mkdir(folder.path + "/folder", 0o700)
    let losses = [
      "link": "cannot open \(folder.path)/link: Too many levels of symbolic links",
      "pipe": "\(folder.path)/pipe is not a regular file on a file system that reports changes",
      "folder": "\(folder.path)/folder is not a regular file on a file system that reports changes",
    ]
    for (name, loss) in losses {
      let event = next(try reader("\(folder.path)/\(name)").events)
      #expect(event?.loss == loss && event?.report.isActive == nil)
    }
    #expect(
      next(try reader("/proc/sys/kernel/randomize_va_space").events)?.loss
        == "/proc/sys/kernel/randomize_va_space is not a regular file on a file system that reports changes")
  }

  /// A reader of a file and of `limit`, which counts as active so many milliseconds after it says so. One thread reads
  /// both, so a busy machine changes nothing in what is told first.
  private func reader(_ path: String, limit: Int64) throws -> InputReader {
    try folder.write("limit", "0")
    return try InputReader([
      .standing: InputWiring(.file(path), debounce: 0),
      .enable: InputWiring(.file(folder.path + "/limit"), debounce: limit),
    ])
  }

  /// Expects that the file is told first, and then the limit.
  private func checkFirst(_ isActive: Bool, by reader: InputReader) throws {
    try folder.write("limit", "1")
    #expect(next(reader.events)?.report == SensorReport(.standing, isActive: isActive))
    #expect(next(reader.events)?.report == SensorReport(.enable, isActive: true))
    try folder.write("limit", "0")
    #expect(next(reader.events)?.report == SensorReport(.enable, isActive: false))
  }

  @Test("a folder that goes is noticed, and one that comes is tried within a second")
  func folders() throws {
    let path = folder.path + "/later/input"
    let reader = try reader(path, limit: 2_000)
    let losses = [next(reader.events)?.loss, next(reader.events)?.loss]
    #expect(losses.contains("cannot watch \(path): No such file or directory"))
    try folder.write("later/input", "1")
    try checkFirst(true, by: reader)
    #expect(rename(folder.path + "/later", folder.path + "/gone") == 0)
    #expect(next(reader.events)?.loss != nil)
  }

  @Test("a path that leads to another folder is followed: within a second at rest, and by each question in a motion")
  func otherFolder() throws {
    try folder.write("first/input", "1")
    try folder.write("second/input", "0")
    try folder.write("third/input", "1")
    let path = folder.path + "/present/input"
    func turn(to name: String) {
      symlink(name, folder.path + "/new")
      #expect(rename(folder.path + "/new", folder.path + "/present") == 0)
    }
    turn(to: "first")
    let resting = try reader(path, limit: 2_000)
    #expect([next(resting.events), next(resting.events)].contains { $0?.report.isActive == true })
    turn(to: "second")
    try checkFirst(false, by: resting)
    let asked = try reader(path, limit: 50)
    #expect([next(asked.events), next(asked.events)].allSatisfy { $0?.report.isActive == false })
    turn(to: "third")
    #expect(asked.answers())
    try checkFirst(true, by: asked)
    // What is watched is the new one.
    try folder.write("third/input", "0")
    try checkFirst(false, by: asked)
    #expect(rename(folder.path + "/third", folder.path + "/gone") == 0)
    #expect(next(asked.events)?.loss != nil)
  }
}
