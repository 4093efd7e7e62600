package import Domain

/// What turns the steps' servos.
package enum ServoHardware: Equatable, Sendable {
  /// No hardware: each motion is appended to the file at `log`.
  case simulated(log: String)
  case pwm(PWMOutputs)
}

/// Servos on the kernel's PWM channels (Linux, Documentation/driver-api/pwm.rst, sysfs interface).
package struct PWMOutputs: Equatable, Sendable {
  /// The folder of the `pwmchipN`: `/sys/class/pwm`, or a folder like it.
  package var root: String
  /// Pulses a second.
  package var frequency: Int
  package var channels: [StepID: PWMChannel]

  package init(
    root: String = Self.standardRoot, frequency: Int = Self.standardFrequency, channels: [StepID: PWMChannel]
  ) {
    self.root = root
    self.frequency = frequency
    self.channels = channels
  }

  package static let standardRoot = "/sys/class/pwm"
  /// What hobby servos expect; digital ones take up to 333 Hz.
  package static let standardFrequency = 50
}

/// Where a step's servo is connected, and the pulses that hold it at either end.
package struct PWMChannel: Equatable, Sendable {
  /// `pwmchipN`, and the channel on it.
  package var chip: Int
  package var channel: Int
  /// Microseconds. An SG90 takes about 500 to 2400, in a frame of 20 ms.
  package var closedPulse: Int
  package var openPulse: Int

  package init(
    chip: Int, channel: Int, closedPulse: Int = Self.standardClosedPulse, openPulse: Int = Self.standardOpenPulse
  ) {
    self.chip = chip
    self.channel = channel
    self.closedPulse = closedPulse
    self.openPulse = openPulse
  }

  package static let standardClosedPulse = 1000
  package static let standardOpenPulse = 2000
}
