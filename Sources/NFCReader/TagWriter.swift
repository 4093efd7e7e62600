package import NDEF
package import NFCMessages
import StepDomain

/// Writes to one tag, however often that is taken away and put back meanwhile, and to no other.
///
/// Every attempt begins with what the tag really holds and ends with reading it again: what was written already is not
/// written a second time, and done is only what was read back.
package struct TagWriter {
  /// How far it has come.
  package enum Progress: Equatable, Sendable {
    /// So many pages of those that the present attempt has to write.
    case written(Int, of: Int)
    /// The tag is gone; it has this much time to come back.
    case waiting(Duration)
  }

  private let reader: NFCReader
  package let target: NFCTarget
  /// How long the tag may be away.
  private let patience: Duration
  private let progress: (Progress) -> Void

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

  /// What would be written.
  package struct Preview: Equatable, Sendable {
    /// The chip's name; nil for one that is not known.
    package let chip: String?
    /// How many pages would change, or for a Type 4 tag how many bytes. 0: the tag holds the message already.
    package let changes: Int
  }

  /// Looks at the tag and writes nothing.
  ///
  /// - Throws: also what speaks against writing: `content` with `readOnly`, `tooSmall` and so on.
  package func preview(_ message: NDEFMessage, replacingAll: Bool) throws(NFCError) -> Preview {
    try persevere { _ throws(NFCError) in
      switch try TagType(of: target) {
      case .type2:
        var session = try Type2Session(reader, target)
        let plan = try session.finish { memory, chip throws(NDEFError) in
          try Type2Plan.write(message, to: memory, chip: chip, replacingAll: replacingAll)
        }
        return Preview(chip: session.chip?.name, changes: plan.writes.count)
      case .type4:
        let contents = try Type4Session(reader).read()
        let isSame = contents.message == message.bytes
        if !isSame { try Self.check(message, contents) }
        return Preview(chip: nil, changes: isSame ? 0 : message.bytes.count)
      }
    }
  }

  /// Writes a message, and reads it back.
  ///
  /// - Parameter replacingAll: also what else the tag holds behind its message.
  /// - Returns: how many pages were written, or for a Type 4 tag how many bytes; 0 where it held the message already.
  package func write(_ message: NDEFMessage, replacingAll: Bool) throws(NFCError) -> Int {
    switch try TagType(of: target) {
    case .type2:
      try carryOut { memory, chip throws(NDEFError) in
        try Type2Plan.write(message, to: memory, chip: chip, replacingAll: replacingAll)
      }
    case .type4:
      try writeType4(message)
    }
  }

  /// Makes the tag read-only for ever.
  package func lock() throws(NFCError) {
    guard try TagType(of: target) == .type2 else {
      throw .unsupported("this is a Type 4 tag: stepctl can lock tags of Type 2 only")
    }
    _ = try carryOut { memory, chip throws(NDEFError) in try Type2Plan.lock(memory, chip: chip) }
  }

  // MARK: -

  private func carryOut(
    _ planning: (Type2Memory, Type2Chip?) throws(NDEFError) -> Type2Step<Type2Plan>
  ) throws(NFCError) -> Int {
    var written = 0
    var page = 0
    var fewest = Int.max
    return try persevere { failures throws(NFCError) in
      var session = try Type2Session(reader, target)
      while true {
        let writes = try session.finish(planning).writes
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

  private func writeType4(_ message: NDEFMessage) throws(NFCError) -> Int {
    var written = 0
    return try persevere { failures throws(NFCError) in
      let session = Type4Session(reader)
      while true {
        let contents = try session.read()
        if contents.message == message.bytes { return written }
        guard failures < Self.mostFailures else { throw .noAnswer }
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
  private func persevere<Value>(_ body: (inout Int) throws(NFCError) -> Value) throws(NFCError) -> Value {
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
