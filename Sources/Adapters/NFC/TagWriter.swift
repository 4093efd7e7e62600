import Domain
package import Tags

/// Writes to one tag and to no other, however often it is taken away and put back meanwhile.
///
/// Every attempt begins by reading what the tag really holds and ends by reading it again: what was written already is
/// not written a second time, and nothing counts as done that was not read back.
package struct TagWriter {
  /// How far it has come.
  package enum Progress: Equatable, Sendable {
    /// How many pages, bytes, or parts of a setup are written, of those that the present attempt has to write. It is
    /// said before the first is written.
    case written(Int, of: Int)
    /// The tag is gone; it has this much time to come back.
    case waiting(Duration)
  }

  let field: any TagField
  package let target: NFCTarget
  /// How long the tag may be away.
  private let patience: Duration
  let progress: (Progress) -> Void

  /// How many attempts in a row may come to nothing.
  private static let mostFailures = 5

  /// - Parameter target: the tag that was selected just now.
  package init(
    _ field: any TagField, _ target: NFCTarget, patience: Duration, progress: @escaping (Progress) -> Void = { _ in }
  ) {
    self.field = field
    self.target = target
    self.patience = patience
    self.progress = progress
  }

  /// What was written, or would be written.
  package struct Report: Equatable, Sendable {
    /// The chip's name; nil where it is not known.
    package let chip: String?
    /// How many units were written; 0 where the tag held the message already.
    package let changes: Int
    package let unit: Unit
  }

  /// What changes are counted in: of a Type 2 tag, of a Type 4 tag, and of a dynamic one's setup.
  package enum Unit: Sendable {
    case pages, bytes, parts
  }

  /// Writes a message, and reads it back.
  ///
  /// - Parameters:
  ///   - replacingAll: whether other data behind the old message is given up.
  ///   - isRehearsal: whether nothing is written: it finds out what would be, and whether that is possible.
  ///   - compose: makes the message from the one that the tag holds; nil where it holds none, or a malformed one.
  /// - Throws: `NDEFError.readOnly`, `tooSmall` and so on, before anything is written.
  package func write(
    replacingAll: Bool, isRehearsal: Bool = false, _ compose: (NDEFMessage?) -> NDEFMessage
  ) throws -> Report {
    // Composed once: a tag that was torn off is empty, and only this knows what it held before.
    var message: NDEFMessage?
    var chip: String?
    let type = try TagType(of: target)
    let changes: Int
    switch type {
    case .type2:
      changes = try carryOut(isRehearsal: isRehearsal) { memory, known in
        let old: [UInt8]?
        switch Self.message(in: memory) {
        case .read(let pages): return .read(pages: pages)
        case .done(let found): old = found
        }
        let new = message ?? compose(old.flatMap { try? NDEFMessage(parsing: $0) })
        message = new
        chip = known?.name
        do {
          return try Type2Plan.write(new, to: memory, chip: known, replacingAll: replacingAll).map { $0.parts }
        } catch  where old == new.bytes {
          // A tag that holds the message need not be one that can be written.
          return .done([])
        }
      }
    case .type4:
      changes = try writeType4(isRehearsal: isRehearsal) { old in
        let new = message ?? compose(old)
        message = new
        return new
      }
    }
    return Report(chip: chip, changes: changes, unit: type == .type2 ? .pages : .bytes)
  }

  /// Finds out whether the tag can be locked, before it is written.
  package func checkLockable() throws {
    do {
      try lock(isRehearsal: true)
    } catch NDEFError.notFormatted, NDEFError.notNDEF, NDEFError.unsupportedVersion {
      // Writing mends the container, or says itself that it cannot.
    }
  }

  /// Makes the tag read-only for ever.
  package func lock() throws { try lock(isRehearsal: false) }

  private func lock(isRehearsal: Bool) throws {
    guard try TagType(of: target) == .type2 else {
      throw NFCError.unsupported("this is a Type 4 tag: stepctl can lock tags of Type 2 only")
    }
    _ = try carryOut(isRehearsal: isRehearsal) { memory, chip in
      try Type2Plan.lock(memory, chip: chip).map { $0.parts }
    }
  }

  // MARK: -

  /// The bytes of the message that is there; nil where there is none.
  private static func message(in memory: Type2Memory) -> Type2Step<[UInt8]?> {
    do { return try Type2Layout.read(memory).map { $0.message } } catch { return .done(nil) }
  }

  /// - Returns: how many pages were written, or in a rehearsal would be.
  private func carryOut(
    isRehearsal: Bool = false,
    _ planning: (Type2Memory, Type2Chip?) throws -> Type2Step<[ArraySlice<Type2Plan.Write>]>
  ) throws -> Int {
    var written = 0
    var fewest = Int.max
    // The page that was last refused, or ignored what was written to it.
    var refused: Int?
    return try persevere { failures in
      var session = try Type2Session(field, target, isToBeWritten: true)
      while true {
        let parts = try session.finish(planning)
        let count = parts.joined().count
        if isRehearsal { return count }
        guard let first = parts.first?.first else { return written }
        if count < fewest {
          fewest = count
          failures = 0
        }
        guard failures < Self.mostFailures else { throw NFCError.refused(page: refused ?? first.page) }
        var ignored: Int?
        for part in parts where ignored == nil {
          for (index, write) in zip(part.indices, part) {
            progress(.written(index, of: count))
            do {
              try session.write(write.bytes, to: write.page)
            } catch NFCError.noAnswer {
              refused = write.page
              throw NFCError.noAnswer
            }
            written += 1
          }
          ignored = try session.ignored(part)
        }
        if ignored == nil { progress(.written(count, of: count)) }
        refused = ignored
        failures += 1
      }
    }
  }

  private func writeType4(
    isRehearsal: Bool, _ compose: (NDEFMessage?) -> NDEFMessage
  ) throws -> Int {
    var written = 0
    // A tag of another kind need not answer when it is asked what only an NTAG 424 DNA knows.
    var questions = 3
    return try persevere { failures in
      let session = Type4Session(field)
      while true {
        let contents = try session.read()
        let message = compose(try? NDEFMessage(parsing: contents.message))
        if contents.message == message.bytes { return written }
        if questions > 0 {
          questions -= 1
          if try NTAG424Tag(session).makesDynamicMessages() { throw NFCError.dynamicMessages }
          questions = 0
          continue
        }
        _ = try Type4Writing(message, to: contents)
        if isRehearsal { return message.bytes.count }
        guard failures < Self.mostFailures else {
          // An empty message is better than a wrong one.
          try session.empty(contents)
          throw NFCError.ignored
        }
        progress(.written(0, of: message.bytes.count))
        try session.write(message, to: contents)
        written += message.bytes.count
        failures += 1
      }
    }
  }

  /// Does something with the tag, and does it again when the tag did not answer.
  ///
  /// - Parameter body: is given how many attempts came to nothing since the last one that got further, and sets that to
  ///   0 when it gets further.
  func persevere<Value>(_ body: (inout Int) throws -> Value) throws -> Value {
    var failures = 0
    while true {
      do {
        return try body(&failures)
      } catch NFCError.noAnswer {
        failures += 1
        if try !waitForReturn() { failures = 0 }
        guard failures <= 2 * Self.mostFailures else { throw NFCError.noAnswer }
      }
    }
  }

  /// Selects the tag again.
  ///
  /// - Returns: whether it had not left.
  private func waitForReturn() throws -> Bool {
    let deadline = ContinuousClock.now + patience
    var stayed = true
    while true {
      if let found = try field.select() {
        guard found.uid == target.uid else { throw NFCError.otherTag(expected: target.uid, found: found.uid) }
        return stayed
      }
      stayed = false
      let left = ContinuousClock.now.duration(to: deadline)
      guard left > .zero else { throw NFCError.tagGone(target.uid) }
      progress(.waiting(left))
      try field.rest()
    }
  }
}

extension Type2Step {
  fileprivate func map<Other>(_ transform: (Value) -> Other) -> Type2Step<Other> {
    switch self {
    case .read(let pages): .read(pages: pages)
    case .done(let value): .done(transform(value))
    }
  }
}
