import Glibc
package import Domain
package import StepController
import SystemIO

/// Hobby servos on the kernel's PWM channels, through sysfs (Documentation/driver-api/pwm.rst).
///
/// A channel is exported and enabled only when its step first moves, so that starting the controller moves nothing.
/// It then stays enabled: the servo holds the step against a foot.
package struct PWMServo: ServoDriver {
  /// Where a step's servo is connected, and the pulses that it turns to.
  package struct Channel: Sendable, Equatable {
    package let chip: Int
    package let channel: Int
    /// Microseconds. An SG90 takes about 500 to 2400, in a frame of 20 ms.
    package let closedPulse: Int
    package let openPulse: Int

    package init(chip: Int, channel: Int, closedPulse: Int, openPulse: Int) {
      self.chip = chip
      self.channel = channel
      self.closedPulse = closedPulse
      self.openPulse = openPulse
    }
  }

  /// How long udev may take to give an exported channel its permissions.
  private static let exportPatience = Duration.milliseconds(500)

  private let root: String
  private let period: Int
  private let channels: [StepID: Channel]
  private var enabled: Set<StepID> = []

  /// - Parameters:
  ///   - root: `/sys/class/pwm`, or a folder like it.
  ///   - frequency: of the pulses, Hz.
  package init(root: String, frequency: Int, channels: [StepID: Channel]) {
    self.root = root
    period = 1_000_000_000 / frequency
    self.channels = channels
  }

  package mutating func begin(_ step: StepID, from: Position, to: Position) throws(ServoError) {
    guard let channel = channels[step] else { throw .failed("no PWM channel is configured for \(step)") }
    let chip = "\(root)/pwmchip\(channel.chip)"
    let folder = "\(chip)/pwm\(channel.channel)"
    if !Files.exists(folder) { try write(channel.channel, to: "\(chip)/export") }
    let patience = ContinuousClock.now + PWMServo.exportPatience
    while access("\(folder)/enable", W_OK) != 0, ContinuousClock.now < patience { usleep(5_000) }
    // A duty cycle longer than the period is refused, so it is out of the way before the period is set.
    if !enabled.contains(step) {
      try write(0, to: "\(folder)/duty_cycle")
      try write(period, to: "\(folder)/period")
    }
  }

  package mutating func move(_ step: StepID, to extension: Double) throws(ServoError) {
    guard let channel = channels[step] else { throw .failed("no PWM channel is configured for \(step)") }
    let folder = "\(root)/pwmchip\(channel.chip)/pwm\(channel.channel)"
    let pulse = Double(channel.closedPulse) + Double(channel.openPulse - channel.closedPulse) * `extension`
    try write(Int((pulse * 1000).rounded()), to: "\(folder)/duty_cycle")
    if enabled.insert(step).inserted { try write(1, to: "\(folder)/enable") }
  }

  package mutating func release(_ step: StepID) {
    guard let channel = channels[step], enabled.remove(step) != nil else { return }
    // Already on the way out of a fault: there is nobody left to tell.
    try? write(0, to: "\(root)/pwmchip\(channel.chip)/pwm\(channel.channel)/enable")
  }

  private func write(_ value: Int, to path: String) throws(ServoError) {
    do throws(SystemError) {
      let file = try Descriptor.open(path, O_WRONLY | O_TRUNC)
      try file.write(Array("\(value)".utf8), path)
    } catch {
      throw .failed(error.description)
    }
  }
}
