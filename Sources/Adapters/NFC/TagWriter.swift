package import Tags
import Domain

/// Writes to one tag, however often that is taken away and put back meanwhile, and to no other.
///
/// Every attempt begins with what the tag really holds and ends with reading it again: what was written already is not
/// written a second time, and done is only what was read back.
package struct TagWriter {
  /// How far it has come.
  package enum Progress: Equatable, Sendable {
    /// So many pages, bytes, or parts of a setup, of those that the present attempt has to write. The first of them is
    /// not written before this was said.
    case written(Int, of: Int)
    /// The tag is gone; it has this much time to come back.
    case waiting(Duration)
  }

  let reader: NFCReader
  package let target: NFCTarget
  /// How long the tag may be away.
  private let patience: Duration
  let progress: (Progress) -> Void

  /// So many attempts, one after the other, may come to nothing.
  private static let mostFailures = 5

  /// - Parameter target: the tag that was selected just now.
  package init(
    _ reader: NFCReader, _ target: NFCTarget, patience: Duration, progress: @escaping (Progress) -> Void = { _ in }
  ) {
    self.reader = reader
    self.target = target
    self.patience = patience
    self.progress = progress
  }

  /// What was written, or would be.
  package struct Report: Equatable, Sendable {
    /// The chip's name; nil for one that is not known.
    package let chip: String?
    /// How many units were written; 0 where it held the message already.
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
  ///   - replacingAll: also what else the tag holds behind its message.
  ///   - isRehearsal: whether it only finds out what would be written, and whether that is possible.
  ///   - compose: makes the message, from the one that the tag holds; nil where it holds none, or a malformed one.
  /// - Throws: `content` with `readOnly`, `tooSmall` and so on, before anything is written.
  package func write(
    replacingAll: Bool, isRehearsal: Bool = false, _ compose: (NDEFMessage?) -> NDEFMessage
  ) throws(NFCError) -> Report {
    // Composed once: a tag that is torn off is empty, and what it held before is in here only.
    var message: NDEFMessage?
    var chip: String?
    let type = try TagType(of: target)
    let changes: Int
    switch type {
    case .type2:
      changes = try carryOut(isRehearsal: isRehearsal) { memory, known throws(NDEFError) in
        let old: [UInt8]?
        switch Self.message(in: memory) {
        case .read(let pages): return .read(pages: pages)
        case .done(let found): old = found
        }
        let new = message ?? compose(old.flatMap { try? NDEFMessage(parsing: $0) })
        message = new
        chip = known?.name
        do throws(NDEFError) {
          return try Type2Plan.write(new, to: memory, chip: known, replacingAll: replacingAll)
            .map { $0.writes }
        } catch {
          // A tag that holds the message need not be one that can be written.
          guard old == new.bytes else { throw error }
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

  /// - Throws: why the tag can never be locked, which is to be known before it is written.
  package func checkLockable() throws(NFCError) {
    do throws(NFCError) {
      try lock(isRehearsal: true)
    } catch {
      switch error {
      // Writing mends the container, or says itself that it cannot.
      case .content(.notFormatted), .content(.notNDEF), .content(.unsupportedVersion): return
      default: throw error
      }
    }
  }

  /// Makes the tag read-only for ever.
  package func lock() throws(NFCError) { try lock(isRehearsal: false) }

  private func lock(isRehearsal: Bool) throws(NFCError) {
    guard try TagType(of: target) == .type2 else {
      throw .unsupported("this is a Type 4 tag: stepctl can lock tags of Type 2 only")
    }
    _ = try carryOut(isRehearsal: isRehearsal) { memory, chip throws(NDEFError) in
      try Type2Plan.lock(memory, chip: chip).map { $0.writes }
    }
  }

  // MARK: -

  /// The bytes of the message that is there; nil where there is none.
  private static func message(in memory: Type2Memory) -> Type2Step<[UInt8]?> {
    do throws(NDEFError) { return try Type2Layout.read(memory).map { $0.message } } catch { return .done(nil) }
  }

  /// - Returns: how many pages were written, or in a rehearsal would be.
  private func carryOut(
    isRehearsal: Bool = false,
    _ planning: (Type2Memory, Type2Chip?) throws(NDEFError) -> Type2Step<[Type2Plan.Write]>
  ) throws(NFCError) -> Int {
    var written = 0
    var page = 0
    var fewest = Int.max
    return try persevere { failures throws(NFCError) in
      var session = try Type2Session(reader, target, isToBeWritten: true)
      while true {
        let writes = try session.finish(planning)
        if isRehearsal { return writes.count }
        guard !writes.isEmpty else { return written }
        if writes.count < fewest {
          fewest = writes.count
          failures = 0
        }
        guard failures < Self.mostFailures else { throw .refused(page: page) }
        for (index, write) in writes.enumerated() {
          progress(.written(index, of: writes.count))
          page = write.page
          try session.write(write.bytes, to: write.page)
          written += 1
        }
        progress(.written(writes.count, of: writes.count))
        session.forget()
        failures += 1
      }
    }
  }

  private func writeType4(
    isRehearsal: Bool, _ compose: (NDEFMessage?) -> NDEFMessage
  ) throws(NFCError) -> Int {
    var written = 0
    return try persevere { failures throws(NFCError) in
      let session = Type4Session(reader)
      while true {
        let contents = try session.read()
        let message = compose(try? NDEFMessage(parsing: contents.message))
        if contents.message == message.bytes { return written }
        try Self.check(message, contents)
        if isRehearsal { return message.bytes.count }
        guard failures < Self.mostFailures else { throw .noAnswer }
        progress(.written(0, of: message.bytes.count))
        try session.write(message, to: contents)
        written += message.bytes.count
        failures += 1
      }
    }
  }

  private static func check(_ message: NDEFMessage, _ contents: Type4Contents) throws(NFCError) {
    do throws(NDEFError) { _ = try Type4Writing(message, to: contents) } catch { throw .content(error) }
  }

  /// Does something with the tag, and again after it did not answer.
  ///
  /// - Parameter body: is given how often it came to nothing since it last came further, and says when it did.
  func persevere<Value>(_ body: (inout Int) throws(NFCError) -> Value) throws(NFCError) -> Value {
    var failures = 0
    while true {
      do throws(NFCError) {
        return try body(&failures)
      } catch {
        guard error == .noAnswer else { throw error }
        failures += 1
        if try !waitForReturn() { failures = 0 }
        guard failures <= 2 * Self.mostFailures else { throw .noAnswer }
      }
    }
  }

  /// Selects the tag again.
  ///
  /// - Returns: whether it had not left.
  private func waitForReturn() throws(NFCError) -> Bool {
    let deadline = ContinuousClock.now + patience
    var stayed = true
    while true {
      if let found = try reader.select() {
        guard found.uid == target.uid else { throw .otherTag(expected: target.uid, found: found.uid) }
        return stayed
      }
      stayed = false
      let left = ContinuousClock.now.duration(to: deadline)
      guard left > .zero else { throw .tagGone(target.uid) }
      progress(.waiting(left))
      try reader.rest()
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
