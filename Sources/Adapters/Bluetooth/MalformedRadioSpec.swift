/// A text that names no radio.
package struct MalformedRadioSpec: Error, Equatable, CustomStringConvertible {
  package let text: String
  /// What is wrong with it, or what it should have been.
  package let reason: String

  package init(text: String, reason: String) {
    self.text = text
    self.reason = reason
  }

  package var description: String { "`\(text)` is not a radio: \(reason)" }
}
