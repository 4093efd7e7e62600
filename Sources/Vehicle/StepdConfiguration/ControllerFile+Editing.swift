package import Domain
package import FileFormats
package import StepController

extension ControllerFile {
  /// Writes the pulses of a step's ends into the text of `stepd.toml`: in place of the present ones, else after the
  /// servo's channel. Comments, order and line ends stay as they are.
  ///
  /// - Throws: if the text is not such a file, or has no servo for the step.
  package static func setting(
    _ pulses: ServoPulses, of step: StepID, in text: [UInt8], path: String
  ) throws(ConfigurationError) -> [UInt8] {
    let before = try ControllerFile(TOMLDocument(parsing: text, path: path))
    var edited = try set(.openPulse, to: pulses.open, of: step, in: text, path)
    edited = try set(.closedPulse, to: pulses.closed, of: step, in: edited, path)
    // The test of success: when read again, the file has the old values and the new pulses.
    guard (try? ControllerFile(parsing: edited, path: path)) == before.with(pulses, of: step) else {
      throw ConfigurationError(
        path, "[servo.steps.\(step)] cannot be edited as it is written; give each key a line of its own")
    }
    return edited
  }

  private static func set(
    _ key: ServoStepKey, to pulse: Int, of step: StepID, in text: [UInt8], _ path: String
  ) throws(ConfigurationError) -> [UInt8] {
    let document = try TOMLDocument(parsing: text, path: path)
    let servo = try TOMLTable<Key>(document).requiredTable(.servo, ServoKey.self)
    guard let table = try servo.stepTables(.steps, ServoStepKey.self).first(where: { $0.step == step })?.table else {
      throw ConfigurationError(path, "there is no [servo.steps.\(step)] to write to")
    }
    var edited = text
    if let place = table.place(of: key) {
      edited.replaceSubrange(text.range(of: place), with: "\(pulse)".utf8)
    } else if let channel = table.place(of: .channel).map(text.range(of:)) {
      edited.insert("\(key.rawValue) = \(pulse)", behind: channel, isInline: table.isInline)
    }
    return edited
  }

  private func with(_ pulses: ServoPulses, of step: StepID) -> ControllerFile {
    var file = self
    switch servo {
    // A simulated servo has no pulses. The file may list some for another driver; they stay as they are.
    case .simulated: break
    case .pwm(var outputs):
      outputs.channels[step]?.pulses = pulses
      file.servo = .pwm(outputs)
    case .pca9685(var outputs):
      outputs.channels[step]?.pulses = pulses
      file.servo = .pca9685(outputs)
    }
    return file
  }
}
