import StepDomain
import StrictJSON
import Terminal

/// What has become of a tag.
struct TagRecord {
  enum Outcome: String {
    case written
    /// It held that already.
    case unchanged
    /// Nothing was to be written.
    case planned
  }

  let uid: TagUID
  let step: StepID
  /// Nil for a chip that is not known.
  let chip: String?
  let content: String
  /// How many pages were or would be written, of a Type 4 tag how many bytes.
  let changes: Int
  let outcome: Outcome
  let isLocked: Bool
  /// Whether it is new in the vehicle file.
  let isRegistered: Bool

  /// For people.
  var lines: [String] {
    let tag = "\(uid) (\(chip ?? "unknown chip"))"
    let first =
      switch outcome {
      case .written: "wrote the \(step) step's name to \(tag)"
      case .unchanged: "\(tag) has the \(step) step's name already"
      case .planned:
        changes == 0 ? "\(tag) has the \(step) step's name already" : "would write \(changes) pages to \(tag)"
      }
    var lines = [first]
    if outcome == .planned { lines.append(content) }
    if isLocked { lines.append("it is read-only now") }
    if isRegistered { lines.append("it is listed in the vehicle file now") }
    return lines
  }

  var json: JSON {
    [
      "uid": .string(uid.description), "step": .string(step.description), "outcome": .string(outcome.rawValue),
      "chip": chip.map { .string($0) } ?? .null, "content": .string(content), "changes": .integer(Int64(changes)),
      "locked": .bool(isLocked), "registered": .bool(isRegistered),
    ]
  }
}
