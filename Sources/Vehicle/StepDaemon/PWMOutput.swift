import Domain
import Glibc
import StepController
import Synchronization
import SystemIO

/// A PWM channel of the kernel, through sysfs (Documentation/driver-api/pwm.rst).
final class PWMOutput: PulseOutput {
  /// How long udev may take to give an exported channel its permissions.
  private static let exportTimeout = Duration.milliseconds(500)

  /// Nanoseconds.
  let period: Int
  /// An enabled channel begins with a pulse.
  let knowsItsFrame = true
  private let outputs: PWMOutputs
  private let channel: PWMChannel
  private let lock: OutputLock
  /// The channel's folder when it was set up last.
  private let folder = Mutex("")

  /// - Parameter configuration: the path of this program's configuration, which other programs are told.
  /// - Throws: `DriverError` if another program drives the channel.
  init(_ outputs: PWMOutputs, _ channel: PWMChannel, configuration: String) throws {
    (self.outputs, self.channel) = (outputs, channel)
    period = 1_000_000_000 / outputs.frequency
    lock = OutputLock(
      O_WRONLY, bytes: channel.channel..<channel.channel + 1, output: "channel \(channel.channel) of \(channel.chip)",
      configuration: configuration)
    // Without its chip there is nothing to lock yet.
    if let chip = try? outputs.folder(of: channel.chip) { try lock.takeIfPossible("\(chip)/export") }
  }

  func prepare() throws -> Int? {
    let chip = try outputs.folder(of: channel.chip)
    try lock.take("\(chip)/export")
    let folder = "\(chip)/pwm\(channel.channel)"
    self.folder.withLock { $0 = folder }
    if !Files.exists(folder) { try Self.write("\(channel.channel)", to: "\(chip)/export") }
    let deadline = Instant.now + Self.exportTimeout
    while access("\(folder)/enable", W_OK) != 0, Instant.now < deadline { usleep(5_000) }
    if try read("enable") == 1 {
      let pulse = try read("duty_cycle")
      if try read("period") == period, pulse > 0 { return pulse }
      // Without pulses the channel holds nothing; pulses of another frame may not be for a servo.
      try disable()
    }
    // The kernel refuses a duty cycle longer than the period, so the duty cycle is set to 0 before the period. A driven
    // servo must never get this 0, so the channel is disabled first.
    try set(0)
    try write(period, to: "period")
    return nil
  }

  func nearest(to pulse: Int) -> Int { pulse }

  func set(_ pulse: Int) throws { try write(pulse, to: "duty_cycle") }

  func enable() throws { try write(1, to: "enable") }

  func disable() throws { try write(0, to: "enable") }

  private func path(_ name: String) -> String { folder.withLock { "\($0)/\(name)" } }

  private func write(_ value: Int, to name: String) throws(SystemError) { try Self.write("\(value)", to: path(name)) }

  private static func write(_ text: String, to path: String) throws(SystemError) {
    try Descriptor.open(path, O_WRONLY | O_TRUNC).write(text.utf8, path)
  }

  private func read(_ name: String) throws(SystemError) -> Int { try Files.number(path(name)) }
}

extension Files {
  /// The number in a file of sysfs; 0 if it has none.
  fileprivate static func number(_ path: String) throws(SystemError) -> Int {
    Int(String(decoding: try read(path, limit: 64), as: UTF8.self).prefix { $0.isNumber }) ?? 0
  }
}

/// Why a PWM channel cannot be used, where no errno says it.
enum PWMError: Failure, Equatable {
  /// No chip, or several, of the device with this name, in the folder with the chips. What it has.
  case noChip(String, count: Int, root: String, [String])
  case noChannel(Int, chip: String, count: Int)
  /// The file names one channel in two ways, as by its chip's number and by its chip's device.
  case shared(Int, chip: String, [StepID])

  var exitStatus: ExitStatus { if case .shared = self { .configuration } else { .noInput } }

  var description: String {
    switch self {
    case .noChip(let name, let count, let root, let chips):
      "\(root) has \(count == 0 ? "no chip" : "\(count) chips") of the device \(name); it has "
        + (chips.isEmpty ? "none" : chips.joined(separator: ", "))
    case .noChannel(let channel, let chip, let count): "\(chip) has no channel \(channel), it has \(count)"
    case .shared(let channel, let chip, let steps):
      "the servos of the steps \(steps.map(\.description).joined(separator: " and ")) are both at channel \(channel) of \(chip)"
    }
  }
}

extension PWMOutputs {
  private struct Chip {
    let number: Int
    let folder: String
    /// The name of its device: that of the folder to which `device` leads.
    let device: String?
    /// Nil if it does not say.
    let channels: Int?

    init?(_ name: String, in root: String) {
      guard name.hasPrefix("pwmchip"), let number = Int(name.dropFirst("pwmchip".count)) else { return nil }
      self.number = number
      folder = "\(root)/\(name)"
      device = realpath("\(folder)/device", nil).map { resolved in
        defer { free(resolved) }
        return Files.name(of: String(cString: resolved))
      }
      channels = try? Files.number("\(folder)/npwm")
    }

    /// `1f00098000.pwm (pwmchip0, 4 channels)`
    var description: String {
      let about = ["pwmchip\(number)"] + (channels.map { ["\($0) channels"] } ?? [])
      return "\(device ?? "no device") (\(about.joined(separator: ", ")))"
    }
  }

  private func chips() throws(SystemError) -> [Chip] {
    try Files.names(in: root).compactMap { Chip($0, in: root) }.sorted { $0.number < $1.number }
  }

  /// A chip's folder. That of a number is not looked for.
  ///
  /// - Throws: `PWMError`, or `SystemError`.
  func folder(of chip: PWMChip) throws -> String {
    switch chip {
    case .number(let number): return "\(root)/pwmchip\(number)"
    case .device(let name):
      let all = try chips()
      let found = all.filter { $0.device == name }
      guard found.count == 1 else {
        throw PWMError.noChip(name, count: found.count, root: root, all.map(\.description))
      }
      return found[0].folder
    }
  }

  /// Throws if the kernel lacks one of the chips or channels. Without this check, the first rider would notice.
  ///
  /// - Returns: what each step's servo is connected to.
  func check() throws -> [String] {
    var taken: [String: StepID] = [:]
    return try channels.sorted { $0.key.description < $1.key.description }.map { step, channel in
      let folder = try folder(of: channel.chip)
      guard Files.exists(folder), let chip = Chip(Files.name(of: folder), in: root) else {
        throw SystemError("open", folder, code: ENOENT)
      }
      if let count = chip.channels, channel.channel >= count {
        throw PWMError.noChannel(channel.channel, chip: chip.description, count: count)
      }
      if let other = taken.updateValue(step, forKey: "\(chip.number)/\(channel.channel)") {
        throw PWMError.shared(channel.channel, chip: chip.description, [other, step])
      }
      return "the servo of the step \(step) is at channel \(channel.channel) of \(chip.description)"
    }
  }
}
