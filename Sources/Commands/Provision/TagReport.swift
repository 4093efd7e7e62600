import Domain
import Encoding
import NFC
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
  /// The name of another step, or of another vehicle's, that gives way.
  var former: StepName?
  /// How many units were or would be written.
  let changes: Int
  let unit: TagWriter.Unit
  let isRehearsal: Bool
  var isLocked = false
  /// Whether it is new in the vehicle file.
  var isRegistered = false
  /// Why what the vehicle's folder has to say of the tag could not be written, though the tag was.
  var failure: (any Error)?
  /// Of a dynamic tag: those of its file.
  var settings: [UInt8]?

  var outcome: Outcome { isRehearsal ? .planned : changes == 0 ? .unchanged : .written }

  /// Whether the controller knows something of it from its next start on only.
  var needsRestart: Bool { isRegistered || settings != nil && outcome == .written }

  /// For people.
  var lines: [String] {
    let tag = "\(uid) (\(chip ?? "unknown chip"))"
    var lines: [String]
    switch (settings, changes) {
    case (nil, 0): lines = ["\(tag) has the \(step) step's name already"]
    case (_?, 0): lines = ["\(tag) is set up for the \(step) step already"]
    case (nil, _):
      lines = [isRehearsal ? "would write \(changes) \(unit) to \(tag)" : "wrote the \(step) step's name to \(tag)"]
    case (_?, _): lines = ["\(isRehearsal ? "would set up" : "set up") \(tag) for the \(step) step"]
    }
    if isRehearsal {
      lines.append(content)
      if let settings { lines.append("ChangeFileSettings 02 \(hexadecimal(settings))") }
    }
    if let former = formerName { lines.append(former) }
    if isLocked { lines.append("it is read-only now") }
    if isRegistered { lines.append("it is listed in the vehicle file now") }
    return lines
  }

  /// For people: `it named the right step of 5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90 before`
  var formerName: String? {
    former.map { isRehearsal ? "it names \($0.label.words)" : "it named \($0.label.words) before" }
  }

  var json: JSON {
    [
      "uid": .string(uid.description), "step": .string(step.description), "outcome": .string(outcome.rawValue),
      "chip": chip.map { .string($0) } ?? .null, "content": .string(content),
      "former": former.map { .string($0.content) } ?? .null, "changes": .integer(Int64(changes)),
      "locked": .bool(isLocked), "registered": .bool(isRegistered),
      "settings": settings.map { .string(hexadecimal($0)) } ?? .null,
    ]
  }
}
