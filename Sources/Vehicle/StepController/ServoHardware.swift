package import Domain

/// The hardware that turns the steps' servos.
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
  /// Pulses per second.
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
  /// The usual rate of hobby servos; digital servos take up to 333 Hz.
  package static let standardFrequency = 50
}

/// A PWM chip of this computer.
package enum PWMChip: Hashable, Sendable, CustomStringConvertible {
  /// N of `pwmchipN`. The kernel counts chips as it finds them, so the same chip has other numbers on other computers,
  /// and with other kernels.
  case number(Int)
  /// The name of the chip's device, which no kernel changes, because it has the address of the hardware:
  /// `1f00098000.pwm`.
  case device(String)

  package var description: String {
    switch self {
    case .number(let number): "pwmchip\(number)"
    case .device(let name): name
    }
  }
}

/// Where a step's servo is connected to the kernel's PWM.
package struct PWMChannel: Equatable, Sendable {
  package var chip: PWMChip
  package var channel: Int
  package var pulses: ServoPulses

  package init(chip: PWMChip, channel: Int, pulses: ServoPulses = ServoPulses()) {
    (self.chip, self.channel, self.pulses) = (chip, channel, pulses)
  }
}

/// Servos on a PCA9685, the usual servo board, on an I²C bus (NXP, PCA9685 data sheet, revision 4).
package struct PCA9685Outputs: Equatable, Sendable {
  /// The bus's character device, such as `/dev/i2c-1`.
  package var bus: String
  /// Seven bits.
  package var address: Int
  /// Pulses per second, for all channels.
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
  /// The address with none of the board's bridges soldered.
  package static let standardAddress = 0x40
}

/// Where a step's servo is connected to a PCA9685.
package struct PCA9685Channel: Equatable, Sendable {
  /// 0 to 15.
  package var channel: Int
  package var pulses: ServoPulses

  package init(channel: Int, pulses: ServoPulses = ServoPulses()) {
    (self.channel, self.pulses) = (channel, pulses)
  }
}

/// The pulses that hold a step at its ends, in microseconds. An SG90 takes about 500 to 2400, in a frame of 20 ms.
package struct ServoPulses: Equatable, Sendable {
  package var closed: Int
  package var open: Int

  package init(closed: Int = 1000, open: Int = 2000) { (self.closed, self.open) = (closed, open) }
}
