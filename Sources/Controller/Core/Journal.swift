import Glibc
package import Domain
package import StepProtocol
import Encoding
package import SystemIO

/// Where the steps stand, what was last begun and which readings of tags were used, on disk before anything moves.
///
/// One small file, replaced as a whole and synced: after a crash it is the old one or the new one. While a program
/// has the journal open no other can (flock on a file beside it).
package struct Journal: ~Copyable {
  /// What is written of a step.
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
  }

  package enum Failure: Error, Equatable, CustomStringConvertible {
    case unavailable(SystemError)
    case inUse(String)
    case damaged(String, String)

    package var description: String {
      switch self {
      case .unavailable(let error): error.description
      case .inUse(let path): "\(path) is in use by another stepd"
      case .damaged(let path, let reason):
        "\(path) is damaged: \(reason); look where the steps stand, then move the file away"
      }
    }
  }

  private let path: String
  private let lock: Descriptor
  package private(set) var entries: [StepID: Entry]
  /// The last reading of each dynamic tag that was accepted.
  package private(set) var counters: [TagUID: UInt32]

  private init(path: String, lock: consuming Descriptor, _ content: Content) {
    self.path = path
    self.lock = lock
    entries = content.entries
    counters = content.counters
  }

  /// What the file says.
  private struct Content {
    var entries: [StepID: Entry] = [:]
    var counters: [TagUID: UInt32] = [:]

    /// No step's id has a space in it, so this is none.
    static let countersName = "tag counters"
  }

  /// Opens the journal, or begins one.
  ///
  /// - Parameter installed: where the steps stand when there is no journal yet.
  package static func open(_ path: String, steps: [StepID], installed: Position) throws(Failure) -> Journal {
    let lock = try unlessUnavailable { () throws(SystemError) in
      try Descriptor.open(path + ".lock", O_RDWR | O_CREAT, mode: 0o600)
    }
    guard flock(lock.number, LOCK_EX | LOCK_NB) == 0 else { throw .inUse(path) }
    var content = try read(path) ?? Content()
    for id in steps where content.entries[id] == nil { content.entries[id] = Entry(position: installed) }
    return Journal(path: path, lock: lock, content)
  }

  /// Throws when there is a journal that cannot be read.
  package static func check(_ path: String) throws(Failure) {
    _ = try read(path)
  }

  /// - Returns: nil when there is none. One that cannot be opened or read is not taken for that.
  private static func read(_ path: String) throws(Failure) -> Content? {
    let bytes: [UInt8]
    do throws(SystemError) { bytes = try Files.read(path, limit: 65536) } catch {
      if error.code == ENOENT { return nil }
      throw .unavailable(error)
    }
    let value: JSON
    do throws(JSON.SyntaxError) { value = try JSON(parsing: bytes) } catch {
      throw .damaged(path, error.description)
    }
    guard let members = value.object else { throw .damaged(path, "not an object") }
    var content = Content()
    for member in members {
      if member.name == Content.countersName {
        guard let counters = counters(member.value) else { throw .damaged(path, "the tag counters cannot be read") }
        content.counters = counters
      } else {
        guard let id = StepID(member.name), let entry = Entry(member.value) else {
          throw .damaged(path, "the entry of \(member.name.prefix(32)) cannot be read")
        }
        content.entries[id] = entry
      }
    }
    return content
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

  private static func unlessUnavailable<Result: ~Copyable>(
    _ call: () throws(SystemError) -> Result
  ) throws(Failure) -> Result {
    do throws(SystemError) { return try call() } catch { throw .unavailable(error) }
  }

  /// Replaces a step's entry, and returns when it is on the medium.
  package mutating func record(_ entry: Entry, for step: StepID) throws(SystemError) {
    var next = entries
    next[step] = entry
    try write(next, counters)
    entries = next
  }

  /// Notes that a dynamic tag's reading was accepted, and returns when that is on the medium.
  package mutating func record(_ reading: DynamicTag.Reading) throws(SystemError) {
    var next = counters
    next[reading.uid] = reading.counter
    try write(entries, next)
    counters = next
  }

  private func write(_ entries: [StepID: Entry], _ counters: [TagUID: UInt32]) throws(SystemError) {
    var members: [JSON.Member] = entries.sorted { $0.key.description < $1.key.description }
      .map { .init($0.key.description, $0.value.json) }
    if !counters.isEmpty {
      let counters: [JSON.Member] = counters.sorted { $0.key.description < $1.key.description }
        .map { .init($0.key.description, .integer(Int64($0.value))) }
      members.append(.init(Content.countersName, .object(counters)))
    }
    try Files.replace(path, with: JSON.object(members).bytes + [0x0A], mode: 0o600)
  }
}

extension Journal.Entry {
  fileprivate init?(_ value: JSON) {
    guard let position = value["position"]?.string.flatMap(Position.init(rawValue:)) else { return nil }
    self.position = position
    motion = value["motion"]?.string.flatMap(Command.Move.Target.init(rawValue:))
    fault = value["fault"]?.string.flatMap(Fault.init(rawValue:))
    challenge = value["challenge"]?.string.flatMap { Base64URL.decode($0) }
    // A member that is there but cannot be read must not be taken for one that is not there.
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
