import Access
import Domain
import Encoding
import NFC
import Operator
import StepProtocol

/// The result of writing a tag.
struct TagReport {
  enum Outcome: String {
    case written
    /// The tag already held this content.
    case unchanged
    /// Nothing was meant to be written.
    case planned
  }

  let uid: TagUID
  let step: StepID
  /// Nil for an unknown chip.
  let chip: String?
  let content: String
  /// The name of another step or vehicle that this write replaced.
  var former: StepName?
  /// How many units were or would be written.
  let changes: Int
  let unit: TagWriter.Unit
  /// What else the tag held and was or would be given up.
  var losses: [TagWriter.Loss] = []
  let isRehearsal: Bool
  var isLocked = false
  /// Whether the vehicle file now lists it for the first time.
  var isRegistered = false
  /// Why the vehicle's folder could not be changed although the tag was written.
  var failure: (any Error)?
  /// The settings of a dynamic tag's file.
  var settings: [UInt8]?

  var outcome: Outcome { isRehearsal ? .planned : changes == 0 ? .unchanged : .written }

  /// Whether the controller must read its files again before it knows the tag.
  var needsReload: Bool { isRegistered || settings != nil && outcome == .written }

  /// Text for people.
  var lines: [String] {
    let tag = "\(uid) (\(chip ?? "unknown chip"))"
    var lines: [String]
    switch (settings, changes) {
    case (nil, 0): lines = ["\(tag) already has the \(step) step's name"]
    case (_?, 0): lines = ["\(tag) is already set up for the \(step) step"]
    case (nil, _):
      lines = [isRehearsal ? "would write \(changes) \(unit) to \(tag)" : "wrote the \(step) step's name to \(tag)"]
    case (_?, _): lines = ["\(isRehearsal ? "would set up" : "set up") \(tag) for the \(step) step"]
    }
    if isRehearsal {
      lines.append(content)
      if let settings { lines.append("ChangeFileSettings 02 \(hexadecimal(settings))") }
    }
    if let former = formerName { lines.append(former) }
    if let lossText { lines.append(lossText) }
    if isLocked { lines.append("it is read-only now") }
    if isRegistered { lines.append("it is listed in the vehicle file now") }
    return lines
  }

  /// Text for people: `it named the right step of 5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90 before`
  var formerName: String? {
    former.map { isRehearsal ? "it names \($0)" : "it named \($0) before" }
  }

  /// Text for people: `gave up 2 other records`
  var lossText: String? { lossList.map { isRehearsal ? "would give up \($0)" : "gave up \($0)" } }

  private var lossList: String? {
    losses.isEmpty ? nil : losses.map(\.description).joined(separator: ", ")
  }

  var json: JSON {
    [
      "uid": .string(uid.description), "step": .string(step.description), "outcome": .string(outcome.rawValue),
      "chip": chip.map { .string($0) } ?? .null, "content": .string(content),
      "former": former.map { .string($0.content) } ?? .null,
      "given_up": lossList.map { .string($0) } ?? .null, "changes": .integer(Int64(changes)),
      "locked": .bool(isLocked), "registered": .bool(isRegistered),
      "settings": settings.map { .string(hexadecimal($0)) } ?? .null,
    ]
  }
}
