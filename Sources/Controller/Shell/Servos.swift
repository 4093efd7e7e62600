import Domain
import Encoding
import Glibc
package import StepController
import Synchronization
import SystemIO

/// A servo of paper: appends each motion to a file as a JSON object a line, when it begins.
package final class SimulatedServo: ServoDriver, Sendable {
  private let worker: Worker<ServoOrder>

  /// - Parameters:
  ///   - log: the file, created at the first motion.
  ///   - report: called on the servo's thread.
  package init(log: String, report: @escaping @Sendable (ServoReport) -> Void) throws {
    worker = try Worker { orders in
      for order in orders { report(ServoReport(order, Self.execute(order, log))) }
    }
  }

  package func execute(_ order: ServoOrder) { worker.post(order) }

  private static func execute(_ order: ServoOrder, _ log: String) -> ServoReport.Outcome {
    guard case .prepare(let from, let to) = order.action else { return .done }
    let line: JSON = [
      "time_s": .rounded(Double(WallClock.microseconds) / 1e6, places: 3), "step": .string(order.step.description),
      "from": .string(from.rawValue), "to": .string(to.rawValue),
    ]
    do throws(SystemError) {
      let file = try Descriptor.open(log, O_WRONLY | O_APPEND | O_CREAT, mode: 0o644)
      try file.write(line.bytes + [0x0A], log)
    } catch {
      return .failed(.failed(error.description))
    }
    // Paper cannot be thrown about, so a place that nobody knows may be any.
    return .ready(at: from == .unknown ? 0.5 : nil)
  }
}

/// Hobby servos on the kernel's PWM channels, through sysfs (Documentation/driver-api/pwm.rst). Each step has a thread.
///
/// A channel is exported and enabled only when its step first moves, so that starting the controller moves nothing.
/// It then stays enabled: the servo holds the step against a foot.
package final class PWMServo: ServoDriver, Sendable {
  private let workers: [StepID: Worker<ServoOrder>]
  private let report: @Sendable (ServoReport) -> Void

  /// - Parameter report: called on any thread.
  package init(_ outputs: PWMOutputs, report: @escaping @Sendable (ServoReport) -> Void) throws {
    var workers: [StepID: Worker<ServoOrder>] = [:]
    for (step, channel) in outputs.channels {
      let output = PWMOutput(outputs, channel)
      workers[step] = try Worker { orders in
        for order in orders { report(ServoReport(order, output.execute(order.action))) }
      }
    }
    self.workers = workers
    self.report = report
  }

  package func execute(_ order: ServoOrder) {
    guard let worker = workers[order.step] else {
      return report(ServoReport(order, .failed(.failed("no PWM channel is configured for \(order.step)"))))
    }
    worker.post(order)
  }
}

/// One PWM channel with a servo.
private final class PWMOutput: Sendable {
  /// How long udev may take to give an exported channel its permissions.
  private static let exportPatience = Duration.milliseconds(500)

  private let channel: PWMChannel
  private let chip: String
  private let folder: String
  /// Nanoseconds.
  private let period: Int
  private let isEnabled = Mutex(false)

  init(_ outputs: PWMOutputs, _ channel: PWMChannel) {
    self.channel = channel
    chip = "\(outputs.root)/pwmchip\(channel.chip)"
    folder = "\(chip)/pwm\(channel.channel)"
    period = 1_000_000_000 / outputs.frequency
  }

  func execute(_ action: ServoOrder.Action) -> ServoReport.Outcome {
    do throws(SystemError) {
      switch action {
      case .prepare: return .ready(at: try prepare())
      case .move(let place): try move(to: place)
      case .inch(let place): try inch(toward: place)
      case .release: if isEnabled.withLock(\.self) { try enable(false) }
      }
      return .done
    } catch {
      return .failed(.failed(error.description))
    }
  }

  /// - Returns: where the servo is held, by whoever enabled the channel; nil when it is not.
  private func prepare() throws(SystemError) -> Double? {
    if !Files.exists(folder) { try write("\(channel.channel)", to: "\(chip)/export") }
    let patience = ContinuousClock.now + Self.exportPatience
    while access("\(folder)/enable", W_OK) != 0, ContinuousClock.now < patience { usleep(5_000) }
    if try read("enable") == 1 {
      isEnabled.withLock { $0 = true }
      let pulse = try read("duty_cycle")
      if try read("period") == period, pulse > 0 {
        return (Double(pulse) / 1000 - Double(channel.closedPulse)) / Double(channel.openPulse - channel.closedPulse)
      }
      // Without pulses it holds nothing; and pulses of another frame may be no servo's.
      try enable(false)
    }
    // A duty cycle longer than the period is refused, so it is out of the way before the period is set. A servo that is
    // driven must never see this, which is why the channel is disabled here.
    try write("0", to: "\(folder)/duty_cycle")
    try write("\(period)", to: "\(folder)/period")
    return nil
  }

  private func move(to place: Double) throws(SystemError) {
    try write("\(pulse(at: place))", to: "\(folder)/duty_cycle")
    if !isEnabled.withLock(\.self) { try enable(true) }
  }

  /// One pulse: it comes at the beginning of the frame, and the channel is disabled before the frame is over.
  private func inch(toward place: Double) throws(SystemError) {
    try move(to: place)
    usleep(useconds_t(max(period / 2, pulse(at: place) + 200_000) / 1000))
    try enable(false)
  }

  private func enable(_ isOn: Bool) throws(SystemError) {
    try write(isOn ? "1" : "0", to: "\(folder)/enable")
    isEnabled.withLock { $0 = isOn }
  }

  /// Nanoseconds.
  private func pulse(at place: Double) -> Int {
    let pulse = Double(channel.closedPulse) + Double(channel.openPulse - channel.closedPulse) * place
    return Int((pulse * 1000).rounded())
  }

  private func write(_ text: String, to path: String) throws(SystemError) {
    try Descriptor.open(path, O_WRONLY | O_TRUNC).write(text.utf8, path)
  }

  /// 0 where there is no number.
  private func read(_ name: String) throws(SystemError) -> Int {
    let text = String(decoding: try Files.read("\(folder)/\(name)", limit: 64), as: UTF8.self)
    return Int(text.prefix { $0.isNumber }) ?? 0
  }
}
