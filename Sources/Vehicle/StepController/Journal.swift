package import Domain
import Encoding
package import StepProtocol

/// What outlasts a run of the controller: the steps' positions, the last motions, and the used tag readings.
///
/// It is on the medium before anything moves, as one JSON object that is replaced as a whole.
package struct Journal: Sendable, Equatable {
  /// What is known about a step.
  package struct Entry: Sendable, Equatable {
    package var position: Position
    /// A motion that began and was not seen to end.
    package var motion: Command.Move.Target?
    /// Why the last motion did not end where it should.
    package var fault: Fault?
    /// The last challenge that moved the step.
    package var challenge: [UInt8]?

    package init(
      position: Position, motion: Command.Move.Target? = nil, fault: Fault? = nil, challenge: [UInt8]? = nil
    ) {
      self.position = position
      self.motion = motion
      self.fault = fault
      self.challenge = challenge
    }

    /// For a step whose journal was lost: its position is unknown.
    package static let lost = Entry(position: .unknown, fault: .interrupted)
  }

  package var entries: [StepID: Entry]
  /// The last accepted counter of each dynamic tag.
  package var counters: [TagUID: UInt32]
  /// The operator's newest notice.
  package var notice: KeptNotice?

  package init(entries: [StepID: Entry] = [:], counters: [TagUID: UInt32] = [:]) {
    self.entries = entries
    self.counters = counters
  }

  /// The bytes are not a journal. The content is never guessed.
  package struct Damage: Error, Equatable {
    package let reason: String
  }

  /// A step id contains no space, so no step has this name.
  private static let countersName = "tag counters"

  package init(parsing bytes: [UInt8]) throws(Damage) {
    let value: JSON
    do throws(JSON.SyntaxError) { value = try JSON(parsing: bytes) } catch { throw Damage(reason: error.description) }
    guard let members = value.object else { throw Damage(reason: "not an object") }
    self.init()
    for member in members {
      if member.name == Journal.countersName {
        guard let counters = Journal.counters(member.value) else {
          throw Damage(reason: "the tag counters cannot be read")
        }
        self.counters = counters
      } else if member.name == KeptNotice.name {
        guard let notice = KeptNotice(member.value) else {
          throw Damage(reason: "the operator's notice cannot be read")
        }
        self.notice = notice
      } else {
        guard let id = StepID(member.name), let entry = Entry(member.value) else {
          throw Damage(reason: "the entry of \(member.name.prefix(32)) cannot be read")
        }
        entries[id] = entry
      }
    }
  }

  private static func counters(_ value: JSON) -> [TagUID: UInt32]? {
    guard let members = value.object else { return nil }
    var counters: [TagUID: UInt32] = [:]
    for member in members {
      guard let uid = TagUID(member.name), let counter = member.value.integer.flatMap({ UInt32(exactly: $0) }),
        counters.updateValue(counter, forKey: uid) == nil
      else { return nil }
    }
    return counters
  }

  package var bytes: [UInt8] {
    var members: [JSON.Member] = entries.sorted { $0.key.description < $1.key.description }
      .map { .init($0.key.description, $0.value.json) }
    if !counters.isEmpty {
      let counters: [JSON.Member] = counters.sorted { $0.key.description < $1.key.description }
        .map { .init($0.key.description, .integer(Int64($0.value))) }
      members.append(.init(Journal.countersName, .object(counters)))
    }
    if let notice { members.append(.init(KeptNotice.name, notice.json)) }
    return JSON.object(members).bytes + [0x0A]
  }
}

extension Journal.Entry {
  fileprivate init?(_ value: JSON) {
    guard let position = value["position"]?.string.flatMap(Position.init(rawValue:)) else { return nil }
    self.position = position
    motion = value["motion"]?.string.flatMap(Command.Move.Target.init(rawValue:))
    fault = value["fault"]?.string.flatMap(Fault.init(rawValue:))
    challenge = value["challenge"]?.string.flatMap { Base64URL.decode($0) }
    // A member that is present but unreadable must not count as absent.
    guard (motion == nil) == (value["motion"] == nil), (fault == nil) == (value["fault"] == nil),
      (challenge == nil) == (value["challenge"] == nil)
    else { return nil }
  }

  fileprivate var json: JSON {
    var members: [JSON.Member] = [.init("position", .string(position.rawValue))]
    if let motion { members.append(.init("motion", .string(motion.rawValue))) }
    if let fault { members.append(.init("fault", .string(fault.rawValue))) }
    if let challenge { members.append(.init("challenge", .string(Base64URL.encode(challenge)))) }
    return .object(members)
  }
}

/// The number of a journal to be written; later journals have greater numbers.
package typealias CommitTicket = Int

/// Writes journals to a medium.
///
/// `commit` returns at once. Each ticket gets one report, in the order of the tickets: `committed` when that journal,
/// or a later one, is on the medium (synced). A later journal repeats everything in an earlier one about the steps that
/// still wait for it, so a store may skip the journals in between.
package protocol JournalStore {
  func commit(_ journal: Journal, _ ticket: CommitTicket)
}

package enum JournalReport: Sendable, Equatable {
  case committed(CommitTicket)
  /// It may or may not be on the medium. The reason is for the log.
  case failed(CommitTicket, String)
}
