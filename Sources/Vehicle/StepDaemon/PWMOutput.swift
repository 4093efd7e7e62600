import Glibc
import StepController
import SystemIO

/// A PWM channel of the kernel, through sysfs (Documentation/driver-api/pwm.rst).
struct PWMOutput: PulseOutput {
  /// How long udev may take to give an exported channel its permissions.
  private static let exportPatience = Duration.milliseconds(500)

  /// Nanoseconds.
  let period: Int
  /// An enabled channel begins with a pulse.
  let knowsItsFrame = true
  private let number: Int
  private let chip: String
  private let folder: String

  init(_ outputs: PWMOutputs, _ channel: PWMChannel) {
    number = channel.channel
    chip = "\(outputs.root)/pwmchip\(channel.chip)"
    folder = "\(chip)/pwm\(channel.channel)"
    period = 1_000_000_000 / outputs.frequency
  }

  func prepare() throws -> Int? {
    if !Files.exists(folder) { try write("\(number)", to: "\(chip)/export") }
    let patience = Instant.now + Self.exportPatience
    while access("\(folder)/enable", W_OK) != 0, Instant.now < patience { usleep(5_000) }
    if try read("enable") == 1 {
      let pulse = try read("duty_cycle")
      if try read("period") == period, pulse > 0 { return pulse }
      // Without pulses the channel holds nothing; pulses of another frame may not be for a servo.
      try disable()
    }
    // The kernel refuses a duty cycle longer than the period, so the duty cycle is set to 0 before the period. A driven
    // servo must never get this 0, so the channel is disabled first.
    try set(0)
    try write("\(period)", to: "\(folder)/period")
    return nil
  }

  func nearest(to pulse: Int) -> Int { pulse }

  func set(_ pulse: Int) throws { try write("\(pulse)", to: "\(folder)/duty_cycle") }

  func enable() throws { try write("1", to: "\(folder)/enable") }

  func disable() throws { try write("0", to: "\(folder)/enable") }

  private func write(_ text: String, to path: String) throws(SystemError) {
    try Descriptor.open(path, O_WRONLY | O_TRUNC).write(text.utf8, path)
  }

  /// Returns 0 if the file has no number.
  private func read(_ name: String) throws(SystemError) -> Int {
    let text = String(decoding: try Files.read("\(folder)/\(name)", limit: 64), as: UTF8.self)
    return Int(text.prefix { $0.isNumber }) ?? 0
  }
}

extension PWMOutputs {
  /// Throws if the kernel lacks one of the chips. Without this check, the first rider would notice.
  func check() throws(SystemError) {
    for chip in Set(channels.values.map(\.chip)).sorted() {
      let folder = "\(root)/pwmchip\(chip)"
      guard Files.exists(folder) else { throw SystemError("open", folder, code: ENOENT) }
    }
  }
}
