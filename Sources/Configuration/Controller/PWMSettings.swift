package import Domain

/// Servos on the kernel's PWM channels (Linux, Documentation/driver-api/pwm.rst, sysfs interface).
package struct PWMSettings: Equatable, Sendable {
  /// The output that a step's servo is on, and the pulses that hold it at either end.
  package struct Output: Equatable, Sendable {
    /// `pwmchipN` and the channel on it.
    package var chip: Int
    package var channel: Int
    /// Microseconds.
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

  /// The folder of the `pwmchipN`.
  package var root: String
  /// Pulses a second.
  package var frequency: Int
  package var outputs: [StepID: Output]

  package init(
    root: String = Self.standardRoot, frequency: Int = Self.standardFrequency, outputs: [StepID: Output]
  ) {
    self.root = root
    self.frequency = frequency
    self.outputs = outputs
  }

  package static let standardRoot = "/sys/class/pwm"
  /// What hobby servos expect; digital ones take up to 333 Hz.
  package static let standardFrequency = 50

  private enum OutputKey: String, TOMLKey {
    case chip, channel
    case closedPulse = "closed_us"
    case openPulse = "open_us"
  }

  init(_ table: TOMLTable<ServoSettings.Key>) throws(ConfigurationError) {
    root = try table.optional(.root, table.path) ?? Self.standardRoot
    frequency = try table.optional(.frequency, .integer(in: 40...333)) ?? Self.standardFrequency
    outputs = [:]
    for (name, table) in try table.namedTables(.steps, OutputKey.self) {
      let id = try table.stepID(name)
      // An SG90 turns from 500 to 2,500 µs; what is far outside of that drives a servo against its stop.
      let pulse = TOMLForm.integer(in: 400...2600)
      let output = Output(
        chip: try table.required(.chip, .integer(in: 0...255)),
        channel: try table.required(.channel, .integer(in: 0...255)),
        closedPulse: try table.optional(.closedPulse, pulse) ?? Output.standardClosedPulse,
        openPulse: try table.optional(.openPulse, pulse) ?? Output.standardOpenPulse)
      guard output.closedPulse != output.openPulse else {
        throw table.error(.openPulse, "\(output.openPulse) is the same as closed_us")
      }
      for (other, taken) in outputs where (taken.chip, taken.channel) == (output.chip, output.channel) {
        throw table.error(.channel, "\(output.channel) of chip \(output.chip) is the servo of the step \"\(other)\"")
      }
      outputs[id] = output
    }
  }
}
