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
      channels: [left: PWMChannel(chip: 0, channel: 1, closedPulse: 1_000, openPulse: 2_000)])
  }
}

/// A driver under test, one order at a time.
private final class Driver {
  enum Kind: CaseIterable { case simulated, pwm, played }

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
    try Driver {
      switch kind {
      case .simulated: try SimulatedServo(log: folder.path + "/servo.jsonl", report: $0)
      case .pwm: try PulsedServos(pwm.outputs, report: $0)
      case .played: PlayedServo(report: $0)
      }
    }
  }

  @Test("each order has one report, which names it, in their order", arguments: Driver.Kind.allCases)
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

  @Test("serves again after it was let go, and inches where nobody knows the place", arguments: Driver.Kind.allCases)
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
    let driver = try Driver { try SimulatedServo(log: folder.path + "/servo.jsonl", report: $0) }
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
    #expect(abs(time - Date().timeIntervalSince1970) < 5)
  }

  @Test("tells why its log cannot be written")
  func missing() throws {
    let log = folder.path + "/none/servo.jsonl"
    let driver = try Driver { try SimulatedServo(log: log, report: $0) }
    #expect(
      driver.outcome(.prepare(from: .close, to: .open))
        == .failed(.failed("cannot open \(log): No such file or directory")))
  }
}

@Suite("PWM") struct PWMServoTests {
  @Test("nothing before the first motion, then a 50 Hz frame and the pulses of the configuration")
  func pulses() throws {
    let pwm = try PWMFolder()
    let driver = try Driver { try PulsedServos(pwm.outputs, report: $0) }
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
    let driver = try Driver { try PulsedServos(pwm.outputs, report: $0) }
    #expect(driver.outcome(.prepare(from: .unknown, to: .close)) == .ready(at: place))
    #expect(try pwm.values == [1, 20_000_000, duty])
    #expect(driver.outcome(.release) == .done)
    #expect(try pwm.values[0] == 0)
  }

  @Test("a channel that is enabled without pulses, or with another frame, holds no servo of ours")
  func strange() throws {
    for (period, duty) in [(20_000_000, 0), (1_000_000, 500_000)] {
      let pwm = try PWMFolder(enable: 1, period: period, duty: duty)
      let driver = try Driver { try PulsedServos(pwm.outputs, report: $0) }
      #expect(driver.outcome(.prepare(from: .unknown, to: .close)) == .ready(at: nil))
      #expect(try pwm.values == [0, 20_000_000, 0])
    }
  }

  @Test("a single pulse: the channel is disabled again before the frame is over")
  func inch() throws {
    let pwm = try PWMFolder()
    let driver = try Driver { try PulsedServos(pwm.outputs, report: $0) }
    _ = driver.outcome(.prepare(from: .unknown, to: .open))
    let began = ContinuousClock.now
    #expect(driver.outcome(.inch(toward: 1)) == .done)
    #expect(began.duration(to: .now) >= .milliseconds(10))
    #expect(try pwm.values == [0, 20_000_000, 2_000_000])
  }

  @Test("a channel that is not there, or not ours to write, says which")
  func missing() throws {
    let pwm = try PWMFolder()
    var outputs = pwm.outputs
    outputs.channels[left]?.chip = 3
    let driver = try Driver { [outputs] in try PulsedServos(outputs, report: $0) }
    let path = "\(pwm.folder.path)/pwmchip3/export"
    #expect(
      driver.outcome(.prepare(from: .close, to: .open))
        == .failed(.failed("cannot open \(path): No such file or directory")))
    #expect(
      driver.outcome(.prepare(from: .close, to: .open), right)
        == .failed(.failed("no output is configured for right")))
  }

  @Test("a channel that cannot be disabled is told")
  func stuck() throws {
    let pwm = try PWMFolder()
    let driver = try Driver { try PulsedServos(pwm.outputs, report: $0) }
    _ = driver.outcome(.prepare(from: .close, to: .open))
    _ = driver.outcome(.move(to: 0))
    unlink(pwm.channel + "/enable")
    #expect(
      driver.outcome(.release)
        == .failed(.failed("cannot open \(pwm.channel)/enable: No such file or directory")))
  }
}
