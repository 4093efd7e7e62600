package import Domain

/// What turns the steps' servos.
package enum ServoHardware: Equatable, Sendable {
  /// No hardware: each motion is appended to the file at `log`.
  case simulated(log: String)
  case pwm(PWMOutputs)
  case pca9685(PCA9685Outputs)
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

/// Servos on a PCA9685, the usual servo board, on an I²C bus (NXP, PCA9685 data sheet, revision 4).
package struct PCA9685Outputs: Equatable, Sendable {
  /// The bus's character device, such as `/dev/i2c-1`.
  package var bus: String
  /// Seven bits.
  package var address: Int
  /// Pulses a second, of all channels.
  package var frequency: Int
  package var channels: [StepID: PCA9685Channel]

  package init(
    bus: String = Self.standardBus, address: Int = Self.standardAddress,
    frequency: Int = PWMOutputs.standardFrequency, channels: [StepID: PCA9685Channel]
  ) {
    self.bus = bus
    self.address = address
    self.frequency = frequency
    self.channels = channels
  }

  package static let standardBus = "/dev/i2c-1"
  /// With none of the board's bridges soldered.
  package static let standardAddress = 0x40
}

/// Where a step's servo is connected on a PCA9685, and the pulses that hold it at either end.
package struct PCA9685Channel: Equatable, Sendable {
  /// 0 to 15.
  package var channel: Int
  /// Microseconds.
  package var closedPulse: Int
  package var openPulse: Int

  package init(
    channel: Int, closedPulse: Int = PWMChannel.standardClosedPulse, openPulse: Int = PWMChannel.standardOpenPulse
  ) {
    self.channel = channel
    self.closedPulse = closedPulse
    self.openPulse = openPulse
  }
}
