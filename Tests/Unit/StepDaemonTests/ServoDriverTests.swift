import Domain
import Encoding
import Foundation
import StepController
import SystemIO
import TestSupport
import Testing

@testable import StepDaemon

/// What the kernel shows of a PWM chip with one exported channel (Documentation/driver-api/pwm.rst).
struct PWMFolder {
  let folder = try! TemporaryFolder()
  var channel: String { folder.path + "/pwmchip0/pwm1" }

  init(enable: Int = 0, period: Int = 0, duty: Int = 0) throws {
    for (name, value) in [("enable", enable), ("period", period), ("duty_cycle", duty)] {
      try folder.write("pwmchip0/pwm1/\(name)", "\(value)\n", mode: 0o600)
    }
    for name in ["export", "unexport"] { try folder.write("pwmchip0/\(name)", "", mode: 0o200) }
  }

  /// Of `enable`, `period` and `duty_cycle`.
  var values: [Int] {
    get throws {
      try ["enable", "period", "duty_cycle"].map {
        Int(try TemporaryFolder.text("\(channel)/\($0)").trimmingCharacters(in: .whitespacesAndNewlines)) ?? -1
      }
    }
  }

  var outputs: PWMOutputs {
    PWMOutputs(
      root: folder.path, frequency: 50,
      channels: [left: PWMChannel(chip: .number(0), channel: 1, pulses: ServoPulses(closed: 1_000, open: 2_000))])
  }
}

/// A driver under test, one order at a time.
private final class Driver {
  enum Kind: CaseIterable {
    case simulated, pwm, played
    /// On the kernel's stand-in for an I²C device.
    case pca9685

    static let here = Rig.isHere ? [Kind.pca9685] : allCases.filter { $0 != .pca9685 }
  }

  let servo: any ServoDriver
  let reports: Mailbox<ServoReport>
  private var number = 0

  init(_ make: (@escaping @Sendable (ServoReport) -> Void) throws -> any ServoDriver) throws {
    let reports = try Mailbox<ServoReport>()
    self.reports = reports
    servo = try make { reports.post($0) }
  }

  @discardableResult
  func execute(_ action: ServoOrder.Action, _ step: StepID = left) -> ServoOrder {
    number += 1
    let order = ServoOrder(step: step, number: number, action: action)
    servo.execute(order)
    return order
  }

  func outcome(_ action: ServoOrder.Action, _ step: StepID = left) -> ServoReport.Outcome? {
    execute(action, step)
    return next(reports)?.outcome
  }
}

@Suite("Servo drivers, real and played") struct ServoDriverTests {
  private let folder = try! TemporaryFolder()

  private func driver(_ kind: Driver.Kind, _ pwm: PWMFolder) throws -> Driver {
    // The board is the only one: the threads of the test before let go of it when they end.
    for _ in 0..<500 where kind == .pca9685 {
      if let driver = try? newDriver(kind, pwm) { return driver }
      usleep(10_000)
    }
    return try newDriver(kind, pwm)
  }

  private func newDriver(_ kind: Driver.Kind, _ pwm: PWMFolder) throws -> Driver {
    try Driver {
      switch kind {
      case .simulated: try SimulatedServo(log: folder.path + "/servo.jsonl", configuration: "stepd.toml", report: $0)
      case .pwm: try PulsedServos(pwm.outputs, configuration: "stepd.toml", report: $0)
      case .played: PlayedServo(report: $0)
      case .pca9685: try PulsedServos(Board().outputs, configuration: "stepd.toml", report: $0)
      }
    }
  }

  @Test("each order has one report, which names it, in their order", arguments: Driver.Kind.here)
  fileprivate func reports(kind: Driver.Kind) throws {
    let pwm = try PWMFolder()
    let driver = try driver(kind, pwm)
    let actions: [ServoOrder.Action] =
      [.prepare(from: .close, to: .open)] + (0..<50).map { .move(to: Double($0) / 50) } + [.release]
    let orders = actions.map { driver.execute($0) }
    for order in orders {
      let isFirst = order == orders[0]
      #expect(next(driver.reports) == ServoReport(order, isFirst ? .ready(at: nil) : .done))
    }
    #expect(driver.reports.take() == nil)
  }

  @Test("serves again after it was let go, and inches where nobody knows the place", arguments: Driver.Kind.here)
  fileprivate func again(kind: Driver.Kind) throws {
    let pwm = try PWMFolder()
    let driver = try driver(kind, pwm)
    for _ in 0..<2 {
      guard case .ready? = driver.outcome(.prepare(from: .unknown, to: .open)) else {
        Issue.record("not ready")
        return
      }
      #expect(driver.outcome(.inch(toward: 1)) == .done)
      #expect(driver.outcome(.move(to: 1)) == .done)
      #expect(driver.outcome(.release) == .done)
      #expect(driver.outcome(.release) == .done)
    }
  }
}

@Suite("The simulated servo") struct SimulatedServoTests {
  private let folder = try! TemporaryFolder()

  @Test("appends one object a line when a motion begins")
  func simulated() throws {
    let driver = try Driver {
      try SimulatedServo(log: folder.path + "/servo.jsonl", configuration: "stepd.toml", report: $0)
    }
    #expect(driver.outcome(.prepare(from: .close, to: .open)) == .ready(at: nil))
    #expect(driver.outcome(.prepare(from: .unknown, to: .close), right) == .ready(at: 0.5))
    let lines = try TemporaryFolder.text(folder.path + "/servo.jsonl").split(separator: "\n")
    #expect(lines.count == 2)
    let first = try JSON(parsing: Array(lines[0].utf8))
    #expect(first["step"] == "left")
    #expect(first["from"] == "close")
    #expect(first["to"] == "open")
    guard case .number(let time)? = first["time_s"] else {
      Issue.record("no time")
      return
    }
    #expect(abs(time - Date().timeIntervalSince1970) < 60)
  }

  @Test("tells why its log cannot be written")
  func missing() throws {
    let log = folder.path + "/none/servo.jsonl"
    let driver = try Driver { try SimulatedServo(log: log, configuration: "stepd.toml", report: $0) }
    #expect(
      driver.outcome(.prepare(from: .close, to: .open))
        == .failed(.failed("cannot open \(log): No such file or directory")))
  }
}

@Suite("PWM") struct PWMServoTests {
  @Test("a pulse is written once, however often the step is told to hold it")
  func once() throws {
    let pwm = try PWMFolder()
    let driver = try Driver { try PulsedServos(pwm.outputs, configuration: "stepd.toml", report: $0) }
    _ = driver.outcome(.prepare(from: .close, to: .open))
    #expect(driver.outcome(.move(to: 0.5)) == .done)
    // What stepd does not write stays as somebody else wrote it.
    for name in ["duty_cycle", "enable"] { try pwm.folder.write("pwmchip0/pwm1/\(name)", "7\n") }
    for _ in 0..<100 { #expect(driver.outcome(.move(to: 0.5)) == .done) }
    #expect(try pwm.values == [7, 20_000_000, 7])
    #expect(driver.outcome(.move(to: 0.6)) == .done)
    #expect(try pwm.values == [7, 20_000_000, 1_600_000])
  }

  @Test("nothing before the first motion, then a 50 Hz frame and the pulses of the configuration")
  func pulses() throws {
    let pwm = try PWMFolder()
    let driver = try Driver { try PulsedServos(pwm.outputs, configuration: "stepd.toml", report: $0) }
    #expect(try pwm.values == [0, 0, 0])
    #expect(driver.outcome(.prepare(from: .close, to: .open)) == .ready(at: nil))
    #expect(try pwm.values == [0, 20_000_000, 0])
    #expect(driver.outcome(.move(to: 0)) == .done)
    #expect(try pwm.values == [1, 20_000_000, 1_000_000])
    #expect(driver.outcome(.move(to: 0.25)) == .done)
    #expect(try pwm.values == [1, 20_000_000, 1_250_000])
    #expect(driver.outcome(.move(to: 1)) == .done)
    #expect(try pwm.values == [1, 20_000_000, 2_000_000])
    #expect(driver.outcome(.release) == .done)
    #expect(try pwm.values == [0, 20_000_000, 2_000_000])
  }

  @Test(
    "a channel that is enabled is not touched before the motion, and says where its servo is", arguments: [0.04, 1])
  func readBack(place: Double) throws {
    let duty = 1_000_000 + Int(place * 1_000_000)
    let pwm = try PWMFolder(enable: 1, period: 20_000_000, duty: duty)
    let driver = try Driver { try PulsedServos(pwm.outputs, configuration: "stepd.toml", report: $0) }
    #expect(driver.outcome(.prepare(from: .unknown, to: .close)) == .ready(at: place))
    #expect(try pwm.values == [1, 20_000_000, duty])
    #expect(driver.outcome(.release) == .done)
    #expect(try pwm.values[0] == 0)
  }

  @Test("a channel that is enabled without pulses, or with another frame, holds no servo of ours")
  func strange() throws {
    for (period, duty) in [(20_000_000, 0), (1_000_000, 500_000)] {
      let pwm = try PWMFolder(enable: 1, period: period, duty: duty)
      let driver = try Driver { try PulsedServos(pwm.outputs, configuration: "stepd.toml", report: $0) }
      #expect(driver.outcome(.prepare(from: .unknown, to: .close)) == .ready(at: nil))
      #expect(try pwm.values == [0, 20_000_000, 0])
    }
  }

  @Test("a single pulse: the channel is disabled again before the frame is over")
  func inch() throws {
    let pwm = try PWMFolder()
    let driver = try Driver { try PulsedServos(pwm.outputs, configuration: "stepd.toml", report: $0) }
    _ = driver.outcome(.prepare(from: .unknown, to: .open))
    let began = Instant.now
    #expect(driver.outcome(.inch(toward: 1)) == .done)
    #expect(began.duration(to: .now) >= .milliseconds(10))
    #expect(try pwm.values == [0, 20_000_000, 2_000_000])
  }

  @Test("a channel that is not there, or not ours to write, says which")
  func missing() throws {
    let pwm = try PWMFolder()
    var outputs = pwm.outputs
    outputs.channels[left]?.chip = .number(3)
    let driver = try Driver { [outputs] in try PulsedServos(outputs, configuration: "stepd.toml", report: $0) }
    let path = "\(pwm.folder.path)/pwmchip3/export"
    #expect(
      driver.outcome(.prepare(from: .close, to: .open))
        == .failed(.failed("cannot open \(path): No such file or directory")))
    #expect(
      driver.outcome(.prepare(from: .close, to: .open), right)
        == .failed(.failed("no output is configured for right")))
  }

  @Test("a chip is found by its device, whatever its number, and what is there is told where it is not")
  func chips() throws {
    let pwm = try PWMFolder()
    for (chip, device, channels) in [(0, "1f0009c000.pwm", 4), (2, "1f00098000.pwm", 2), (10, "1f0009c000.pwm", 4)] {
      try pwm.folder.write("devices/\(device)/here")
      try pwm.folder.write("pwmchip\(chip)/npwm", "\(channels)\n")
      symlink("../devices/\(device)", "\(pwm.folder.path)/pwmchip\(chip)/device")
    }
    var outputs = pwm.outputs
    #expect(
      try outputs.check() == ["the servo of the step left is at channel 1 of 1f0009c000.pwm (pwmchip0, 4 channels)"])
    outputs.channels[left]?.chip = .device("1f00098000.pwm")
    #expect(try outputs.folder(of: .device("1f00098000.pwm")) == "\(pwm.folder.path)/pwmchip2")
    #expect(
      try outputs.check() == ["the servo of the step left is at channel 1 of 1f00098000.pwm (pwmchip2, 2 channels)"])
    // Two names of one chip hide no channel that two steps have.
    var shared = outputs
    shared.channels[right] = PWMChannel(chip: .number(2), channel: 1, pulses: ServoPulses(closed: 1_000, open: 2_000))
    #expect(throws: PWMError.shared(1, chip: "1f00098000.pwm (pwmchip2, 2 channels)", [left, right])) {
      try shared.check()
    }
    shared.channels[right]?.channel = 0
    #expect(try shared.check().count == 2)
    outputs.channels[left]?.channel = 2
    #expect(throws: PWMError.noChannel(2, chip: "1f00098000.pwm (pwmchip2, 2 channels)", count: 2)) {
      try outputs.check()
    }
    let chips = [
      "1f0009c000.pwm (pwmchip0, 4 channels)", "1f00098000.pwm (pwmchip2, 2 channels)",
      "1f0009c000.pwm (pwmchip10, 4 channels)",
    ]
    for (name, count) in [("fe20c000.pwm", 0), ("1f0009c000.pwm", 2)] {
      let error = PWMError.noChip(name, count: count, root: pwm.folder.path, chips)
      #expect(throws: error) { try outputs.folder(of: .device(name)) }
      #expect(error.exitStatus == .noInput)
    }
    #expect(
      PWMError.noChip("fe20c000.pwm", count: 0, root: "/sys/class/pwm", []).description
        == "/sys/class/pwm has no chip of the device fe20c000.pwm; it has none")
    // The chip comes with another number, and the servo is driven there.
    outputs.channels[left]?.channel = 1
    let driver = try Driver { [outputs] in try PulsedServos(outputs, configuration: "stepd.toml", report: $0) }
    for name in ["enable", "period", "duty_cycle"] { try pwm.folder.write("pwmchip2/pwm1/\(name)", "0\n") }
    try pwm.folder.write("pwmchip2/export", "")
    rename("\(pwm.folder.path)/pwmchip2", "\(pwm.folder.path)/pwmchip3")
    #expect(driver.outcome(.prepare(from: .close, to: .open)) == .ready(at: nil))
    #expect(driver.outcome(.move(to: 1)) == .done)
    #expect(try TemporaryFolder.text("\(pwm.folder.path)/pwmchip3/pwm1/duty_cycle") == "2000000")
    #expect(try pwm.values == [0, 0, 0])
  }

  @Test("a channel that cannot be disabled is told")
  func stuck() throws {
    let pwm = try PWMFolder()
    let driver = try Driver { try PulsedServos(pwm.outputs, configuration: "stepd.toml", report: $0) }
    _ = driver.outcome(.prepare(from: .close, to: .open))
    _ = driver.outcome(.move(to: 0))
    unlink(pwm.channel + "/enable")
    #expect(
      driver.outcome(.release)
        == .failed(.failed("cannot open \(pwm.channel)/enable: No such file or directory")))
  }
}

/// The registers that i2c-stub plays (Linux, Documentation/i2c/i2c-stub.rst), seen by i2c-tools.
private struct Board {
  /// 50 Hz: 25 MHz / (4096 · 50), less one.
  static let prescale = 0x79

  let outputs = PCA9685Outputs(
    bus: "/dev/i2c-0",
    channels: [
      left: PCA9685Channel(channel: 1, pulses: ServoPulses(closed: 1_000, open: 2_000)),
      right: PCA9685Channel(channel: 15, pulses: ServoPulses(closed: 2_000, open: 1_000)),
    ])

  /// After power-up (data sheet, tables 4 to 8).
  func powerUp() {
    let outputs = String(repeating: "0 0 0 0x10 ", count: 8)
    set("0x00 0x11", "0x01 0x04", "0xFE 0x1E", "0x06 \(outputs) i", "0x26 \(outputs) i")
  }

  func set(_ register: Int, _ value: Int) { set("\(register) \(value)") }

  func set(output: Int, _ values: [Int]) {
    set("\(6 + 4 * output) \(values.map(String.init).joined(separator: " ")) i")
  }

  private func set(_ words: String...) {
    let (status, output) = shell(words.map { "i2cset -y 0 0x40 \($0) 2>&1" }.joined(separator: " && "))
    #expect(status == 0, "\(output)")
  }

  func value(_ register: Int) -> Int { values(register, 1)[0] }

  func values(output: Int) -> [Int] { values(6 + 4 * output, 4) }

  private func values(_ register: Int, _ count: Int) -> [Int] {
    let words = shell("i2cget -y 0 0x40 \(register) i \(count) 2>&1").output.split(whereSeparator: \.isWhitespace)
    return words.count == count
      ? words.map { Int($0.dropFirst(2), radix: 16) ?? -1 } : Array(repeating: -1, count: count)
  }
}

@Suite("PCA9685") struct PCA9685Tests {
  @Test(
    "on the kernel's stand-in for an I²C device it keeps the contract of servos, and does as the data sheet says",
    .enabled(if: Rig.hasKernel, "\(Rig.missing)"))
  func inKernel() {
    let (status, output) = Rig.run(
      "StepDaemonTests\\.(ServoDriverTests|KernelPCA9685Cases)", "--scn none --kernel i2c-stub.chip_addr=0x40")
    #expect(status == 0 && output.contains("Test run with 9 tests"), "\(output)")
  }
}

@Suite(
  "A PCA9685 inside of a kernel", .serialized, .enabled(if: Rig.isHere, "runs in a kernel that another test starts"))
struct KernelPCA9685Cases {
  private let board = Board()

  init() { board.powerUp() }

  private func driver() throws -> Driver {
    try Driver { try PulsedServos(board.outputs, configuration: "stepd.toml", report: $0) }
  }

  @Test(
    "nothing before the first motion, then the frame and the pulses of the configuration, and nothing when released")
  func pulses() throws {
    let driver = try driver()
    #expect(board.value(0x00) == 0x11)
    #expect(driver.outcome(.prepare(from: .close, to: .open)) == .ready(at: nil))
    #expect(board.value(0x00) == 0x20 && board.value(0x01) == 0x04 && board.value(0xFE) == Board.prescale)
    #expect(board.values(output: 1) == [0, 0, 0, 0x10])
    // 1000 µs, 1500 µs and 2000 µs, in units of 4.88 µs: 205, 307 and 410.
    for (place, low, high) in [(0.0, 0xCD, 0), (0.5, 0x33, 1), (1, 0x9A, 1)] {
      #expect(driver.outcome(.move(to: place)) == .done)
      #expect(board.values(output: 1) == [0, 0, low, high])
    }
    #expect(driver.outcome(.release) == .done)
    #expect(board.values(output: 1) == [0, 0, 0, 0x10])
    #expect(board.values(output: 15) == [0, 0, 0, 0x10])
  }

  @Test(
    "where a servo is held is read back, and nothing is written before it moves", arguments: [(205, 0.0), (307, 0.5)])
  func readBack(units: Int, place: Double) throws {
    board.set(0x00, 0x20)
    board.set(0xFE, Board.prescale)
    board.set(output: 1, [0, 0, units & 0xFF, units >> 8])
    guard case .ready(let found?)? = try driver().outcome(.prepare(from: .unknown, to: .close)) else {
      Issue.record("it does not say where")
      return
    }
    #expect(abs(found - place) < 0.003)
    #expect(board.values(output: 1) == [0, 0, units & 0xFF, units >> 8])
  }

  @Test(
    "a frame, or pulses, that are not ours hold no servo of ours, and are off before anything is driven",
    arguments: [
      (0x20, 0x1E, [0, 0, 205, 0]), (0x30, 0x79, [0, 0, 205, 0]), (0x20, 0x79, [5, 0, 205, 0]),
      (0x20, 0x79, [0, 0x10, 205, 0]),
    ])
  func strange(mode: Int, prescale: Int, values: [Int]) throws {
    board.set(0x00, mode)
    board.set(0xFE, prescale)
    board.set(output: 1, values)
    #expect(try driver().outcome(.prepare(from: .unknown, to: .close)) == .ready(at: nil))
    #expect(board.values(output: 1) == [0, 0, 0, 0x10])
    #expect(board.value(0x00) == 0x20 && board.value(0xFE) == Board.prescale)
  }

  @Test("a pulse is written once; a single one is over after a frame")
  func once() throws {
    let driver = try driver()
    _ = driver.outcome(.prepare(from: .close, to: .open))
    #expect(driver.outcome(.move(to: 0.5)) == .done)
    board.set(output: 1, [1, 2, 3, 4])
    #expect(driver.outcome(.move(to: 0.5)) == .done)
    // Less than a unit of the chip's.
    #expect(driver.outcome(.move(to: 0.5005)) == .done)
    #expect(board.values(output: 1) == [1, 2, 3, 4])
    let began = Instant.now
    #expect(driver.outcome(.inch(toward: 1)) == .done)
    #expect(began.duration(to: .now) >= .milliseconds(21))
    #expect(board.values(output: 1) == [0, 0, 0, 0x10])
  }

  @Test("a chip that loses its power in a motion is a fault, and no silence")
  func powerCut() throws {
    let driver = try driver()
    _ = driver.outcome(.prepare(from: .close, to: .open))
    #expect(driver.outcome(.move(to: 0.1)) == .done)
    board.powerUp()
    #expect(driver.outcome(.move(to: 0.2)) == .failed(.failed("/dev/i2c-0 0x40 has lost its settings")))
    #expect(driver.outcome(.release) == .done)
    #expect(driver.outcome(.prepare(from: .unknown, to: .open)) == .ready(at: nil))
  }

  @Test("steps share the chip: each has its own output, and setting one up leaves the other's alone")
  func shared() throws {
    let driver = try driver()
    _ = driver.outcome(.prepare(from: .close, to: .open))
    #expect(driver.outcome(.move(to: 1)) == .done)
    #expect(driver.outcome(.prepare(from: .close, to: .open), right) == .ready(at: nil))
    #expect(driver.outcome(.move(to: 1), right) == .done)
    #expect(board.values(output: 1) == [0, 0, 0x9A, 1])
    #expect(board.values(output: 15) == [0, 0, 0xCD, 0])
  }

  @Test("no bus, and nobody at the address, are said")
  func missing() throws {
    var outputs = board.outputs
    outputs.bus = "/dev/i2c-7"
    #expect(throws: SystemError("open", "/dev/i2c-7", code: ENOENT)) { try outputs.check() }
    outputs = board.outputs
    outputs.address = 0x41
    #expect(throws: SystemError("read", "/dev/i2c-0 0x41", code: ENODEV)) { try outputs.check() }
    _ = try board.outputs.check()
  }
}
