import Domain
import FileFormats
import StepController

extension ControllerFile {
  enum ServoKey: String, TOMLKey {
    case driver, log, root, bus, address, steps, installed
    case travel = "travel_s"
    case limit = "limit_s"
    case frequency = "frequency_hz"
  }

  enum ServoStepKey: String, TOMLKey {
    case chip, channel
    case closedPulse = "closed_us"
    case openPulse = "open_us"
  }
}

extension MotionProfile {
  init(_ table: TOMLTable<ControllerFile.ServoKey>) throws(ConfigurationError) {
    let standard = ControllerFile.standardProfile
    self.init(
      travel: try table.optional(.travel, .milliseconds(seconds: 0.2...20)) ?? standard.travel,
      limit: try table.optional(.limit, .milliseconds(seconds: 0.2...60)) ?? standard.limit)
    guard limit > travel else {
      throw table.error(.limit, "\(TOMLText.seconds(limit)) is not more than travel_s, \(TOMLText.seconds(travel))")
    }
  }
}

extension ServoHardware {
  private enum Driver: String, CaseIterable {
    case simulated, pwm, pca9685
  }

  /// The other drivers' keys are read too, so that mistakes in them show before somebody chooses that driver.
  init(_ table: TOMLTable<ControllerFile.ServoKey>) throws(ConfigurationError) {
    let driver = try table.required(.driver, .word(Driver.allCases))
    let log = try table.optional(.log, table.path) ?? table.document.resolve(ControllerFile.standardServoLog)
    let root = try table.optional(.root, table.path) ?? PWMOutputs.standardRoot
    let bus = try table.optional(.bus, table.path) ?? PCA9685Outputs.standardBus
    let address = try table.optional(.address, .deviceAddress) ?? PCA9685Outputs.standardAddress
    let frequency = try table.optional(.frequency, .integer(in: 40...333)) ?? PWMOutputs.standardFrequency
    var servos = WiredServos(takesChip: driver != .pca9685, outputs: driver == .pca9685 ? 16 : 256)
    for (step, table) in try table.stepTables(.steps, ControllerFile.ServoStepKey.self) { try servos.add(step, table) }
    self =
      switch driver {
      case .simulated: .simulated(log: log)
      case .pwm: .pwm(PWMOutputs(root: root, frequency: frequency, channels: servos.channels))
      case .pca9685:
        .pca9685(
          PCA9685Outputs(
            bus: bus, address: address, frequency: frequency,
            channels: servos.channels.mapValues { PCA9685Channel(channel: $0.channel, pulses: $0.pulses) }))
      }
  }
}

/// `[servo.steps]`.
private struct WiredServos {
  /// Whether there may be several chips.
  let takesChip: Bool
  /// The number of outputs of a chip.
  let outputs: Int
  private(set) var channels: [StepID: PWMChannel] = [:]

  init(takesChip: Bool, outputs: Int) { (self.takesChip, self.outputs) = (takesChip, outputs) }

  mutating func add(_ step: StepID, _ table: TOMLTable<ControllerFile.ServoStepKey>) throws(ConfigurationError) {
    // An SG90 turns from 500 to 2,500 µs. A pulse far outside that range drives a servo against its stop.
    let pulse = TOMLForm.integer(in: 400...2600)
    if !takesChip, table.has(.chip) {
      throw table.error(.chip, "a PCA9685 is one chip: give bus and address in [servo]")
    }
    var channel = PWMChannel(
      chip: takesChip ? try table.required(.chip, .pwmChip) : .number(0),
      channel: try table.required(.channel, .integer(in: 0...outputs - 1)))
    if let closed = try table.optional(.closedPulse, pulse) { channel.pulses.closed = closed }
    if let open = try table.optional(.openPulse, pulse) { channel.pulses.open = open }
    guard channel.pulses.closed != channel.pulses.open else {
      throw table.error(.openPulse, "\(channel.pulses.open) is the same as closed_us")
    }
    for (other, taken) in channels where (taken.chip, taken.channel) == (channel.chip, channel.channel) {
      let chip = takesChip ? " of \(channel.chip)" : ""
      throw table.error(.channel, "\(channel.channel)\(chip) is the servo of the step \"\(other)\"")
    }
    channels[step] = channel
  }
}

extension TOMLForm<PWMChip> {
  /// `0` or `"1f00098000.pwm"`.
  fileprivate static var pwmChip: TOMLForm {
    TOMLForm(expectation: "an integer from 0 to 255, or the name of a device as \"1f00098000.pwm\"") { value in
      if let number = TOMLForm<Int>.integer(in: 0...255).read(value) { return .number(number) }
      guard let name = TOMLForm<String>.text.read(value), name.utf8.count <= 64, !name.contains("/"),
        !name.hasPrefix("."), !name.hasPrefix("pwmchip")
      else { return nil }
      return .device(name)
    }
  }
}

extension TOMLForm<Int> {
  /// The address of a device on an I²C bus: seven bits, without the reserved addresses.
  fileprivate static var deviceAddress: TOMLForm {
    TOMLForm(
      expectation: "an integer from 0x40 to 0x77, and not 0x70, to which all boards listen",
      read: { integer(in: 0x40...0x77).read($0).flatMap { $0 == 0x70 ? nil : $0 } },
      describe: { if case .integer(let value) = $0 { "0x\(String(value, radix: 16))" } else { $0.description } })
  }
}
