import Domain
import StepProtocol
import Tags

/// The name of a step on a tag: a text, or a dynamic tag's URI.
struct StepName {
  let label: StepLabel
  /// What the tag holds.
  let content: String

  /// Nil for a record that names no step.
  init?(_ record: NDEFRecord) {
    if let text = try? NDEFText(record)?.text, let label = try? StepLabel(parsing: text) {
      self.label = label
      content = text
    } else if let uri = try? NDEFURI(record)?.uri, let tag = try? DynamicTag(parsing: uri) {
      label = StepLabel(vehicle: tag.vehicle, step: tag.step)
      content = uri
    } else {
      return nil
    }
  }
}

extension StepLabel {
  /// `the right step of 5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90`
  var words: String {
    switch step {
    case .id(let id): "the \(id) step of \(vehicle)"
    case .number(let number): "step \(number) of \(vehicle)"
    }
  }
}
