import Domain
package import NDEF
package import NFC
import SystemIO
package import Tags

/// Writes to one particular tag, even if it is taken away and returned meanwhile.
///
/// Every attempt begins and ends by reading the tag's real content. So nothing is written twice, and nothing counts as
/// done before it was read back.
package struct TagWriter {
  /// The progress of a writer.
  package enum Progress: Equatable, Sendable {
    /// How many pages, bytes, or parts of a setup are written, of those in the present attempt. It is first reported
    /// before the first write.
    case written(Int, of: Int)
    /// The tag is gone; it has this much time to return.
    case waiting(Duration)
  }

  let field: any TagField
  package let target: NFCTarget
  /// How long the tag may be away.
  private let patience: Duration
  let progress: (Progress) -> Void

  /// How many attempts in a row may fail.
  private static let mostFailures = 5

  /// - Parameter target: the tag that was just selected.
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
    /// The chip's name; nil if it is unknown.
    package let chip: String?
    /// How many units were written; 0 if the tag already had the message.
    package let changes: Int
    package let unit: Unit
    /// What is given up because all is replaced, except records of a message that can be read.
    package let losses: [Loss]
  }

  /// Other content of a tag that is given up.
  package enum Loss: Equatable, Sendable, CustomStringConvertible {
    /// Of a tag that was not formatted.
    case pages(Int)
    /// Blocks beside the message (Type 2 Tag 1.1, 2.3).
    case blocks(Int)
    case malformedBlocks
    case malformedMessage
    case records(Int)

    package var description: String {
      switch self {
      case .pages(let count): count == 1 ? "a page of other data" : "\(count) pages of other data"
      case .blocks(let count): count == 1 ? "another block" : "\(count) other blocks"
      case .malformedBlocks: "malformed blocks"
      case .malformedMessage: "a malformed message"
      case .records(let count): count == 1 ? "another record" : "\(count) other records"
      }
    }
  }

  /// The unit of changes: for a Type 2 tag, for a Type 4 tag, and for the setup of a dynamic tag.
  package enum Unit: Sendable {
    case pages, bytes, parts
  }

  /// Writes a message, and reads it back.
  ///
  /// - Parameters:
  ///   - replacingAll: whether other data may be lost: blocks beside the old message, a malformed message, and the
  ///     data of a tag that is not formatted.
  ///   - isRehearsal: whether to write nothing, and only find out what would be written and whether it is possible.
  ///   - compose: makes the new message from the tag's message; nil if the tag has none, or a malformed one.
  /// - Throws: `NDEFError.readOnly`, `tooSmall` and so on, before anything is written.
  package func write(
    replacingAll: Bool, isRehearsal: Bool = false, _ compose: (NDEFMessage?) -> NDEFMessage
  ) throws -> Report {
    // Composed once: a tag that was taken away may be empty, and only this still has its former content.
    var message: NDEFMessage?
    var chip: String?
    var losses: [Loss] = []
    var isAccepted = false
    let type = try TagType(of: target)
    let changes: Int
    switch type {
    case .type2:
      changes = try carryOut(isRehearsal: isRehearsal, refusesUID: !replacingAll) { memory, known in
        let old: [UInt8]?
        switch Self.message(in: memory) {
        case .read(let pages): return .read(pages: pages)
        case .done(let found): old = found
        }
        let new: NDEFMessage
        if let message {
          new = message
        } else {
          let former = try old.flatMap { try Self.parsed($0, replacingAll: replacingAll) }
          if former == nil, old?.isEmpty == false { losses.append(.malformedMessage) }
          new = compose(former)
          message = new
        }
        chip = known?.name
        do {
          let step = try Type2Plan.write(
            new, to: memory, chip: known, replacingAll: replacingAll, isAccepted: isAccepted)
          if !isAccepted, case .done(let plan) = step {
            isAccepted = true
            losses += Self.losses(plan.loss)
          }
          return step
        } catch  where old == new.bytes {
          // A tag that already has the message need not be writable.
          return .done(Type2Plan(memory: memory))
        }
      }
    case .type4:
      changes = try writeType4(isRehearsal: isRehearsal, refusesUID: !replacingAll) { old in
        if let message { return message }
        if !replacingAll, let fault = old.fault { throw NDEFError.otherContent(fault, offset: 0) }
        let former = try Self.parsed(old.message, replacingAll: replacingAll)
        if old.fault != nil || former == nil && !old.message.isEmpty { losses.append(.malformedMessage) }
        let new = compose(former)
        message = new
        return new
      }
    }
    return Report(chip: chip, changes: changes, unit: type == .type2 ? .pages : .bytes, losses: losses)
  }

  private static func losses(_ loss: Type2Loss) -> [Loss] {
    var losses: [Loss] = []
    if loss.pages > 0 { losses.append(.pages(loss.pages)) }
    if loss.blocks > 0 { losses.append(.blocks(loss.blocks)) }
    if loss.hasMalformedBlocks { losses.append(.malformedBlocks) }
    return losses
  }

  /// Finds out whether the tag can be locked, before it is written.
  package func checkLockable() throws {
    do {
      try lock(isRehearsal: true)
    } catch NDEFError.notFormatted, NDEFError.notNDEF, NDEFError.unsupportedVersion {
      // Writing repairs the container, or reports that it cannot.
    }
  }

  /// Makes the tag read-only permanently.
  package func lock() throws { try lock(isRehearsal: false) }

  private func lock(isRehearsal: Bool) throws {
    guard try TagType(of: target) == .type2 else {
      throw NFCError.unsupported("this is a Type 4 tag: stepctl can lock tags of Type 2 only")
    }
    _ = try carryOut(isRehearsal: isRehearsal) { memory, chip in
      try Type2Plan.lock(memory, chip: chip)
    }
  }

  // MARK: -

  /// The bytes of the present message; nil if there is none.
  private static func message(in memory: Type2Memory) -> Type2Step<[UInt8]?> {
    do { return try Type2Layout.read(memory).map { $0.message } } catch { return .done(nil) }
  }

  /// The message; nil if there is none, or if it is malformed and all of it may be replaced.
  ///
  /// - Throws: `otherContent` for bytes that are no message, which cannot be kept beside a new one.
  private static func parsed(_ bytes: [UInt8], replacingAll: Bool) throws(NDEFError) -> NDEFMessage? {
    if bytes.isEmpty { return nil }
    do throws(NDEFError) {
      return try NDEFMessage(parsing: bytes)
    } catch {
      guard case .malformedMessage(let reason, let offset) = error else { throw error }
      if replacingAll { return nil }
      throw .otherContent(reason, offset: offset)
    }
  }

  /// Throws if the message has the tag's UID as digits: a function of a chip that is not known may have put them there,
  /// and would put them over the new message too.
  private func checkUID(in message: [UInt8]) throws(NFCError) {
    // Tags write them in upper case.
    let digits = target.uid.description.utf8
    guard !message.indices.contains(where: { message[$0...].starts(with: digits) }) else { throw .mayShowUID }
  }

  /// - Parameter refusesUID: whether to write no tag that may show its UID in its message.
  /// - Returns: how many pages were written, or in a rehearsal would be.
  private func carryOut(
    isRehearsal: Bool = false, refusesUID: Bool = false,
    _ planning: (Type2Memory, Type2Chip?) throws -> Type2Step<Type2Plan>
  ) throws -> Int {
    var written = 0
    var fewest = Int.max
    // The page that last refused or ignored a write.
    var refused: Int?
    // Whether that was before anything was changed.
    var isUnchanged = false
    var refusesUID = refusesUID
    return try persevere { failures in
      var session = try Type2Session(field, target, isToBeWritten: true)
      while true {
        let plan = try session.finish(planning)
        let parts = plan.parts
        let count = plan.writes.count
        // Chips without GET_VERSION have no such function.
        if refusesUID, count > 0, session.chip == nil, session.saysVersion,
          case .done(let old?) = Self.message(in: session.memory)
        {
          try checkUID(in: old)
        }
        // Once writing begins, the tag need not be as it was.
        refusesUID = false
        if isRehearsal { return count }
        guard let first = parts.first?.first else { return written }
        if count < fewest {
          fewest = count
          failures = 0
        }
        guard failures < Self.mostFailures else {
          let page = refused ?? first.page
          throw isUnchanged ? NFCError.protected(page: page) : NFCError.refused(page: page)
        }
        if let probe = plan.probe {
          (refused, isUnchanged) = (probe.page, true)
          try session.write(probe.bytes, to: probe.page)
        }
        (refused, isUnchanged) = (nil, false)
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
    isRehearsal: Bool, refusesUID: Bool, _ compose: (Type4Contents) throws -> NDEFMessage
  ) throws -> Int {
    var written = 0
    // Another kind of tag need not answer a question that only an NTAG 424 DNA understands.
    var questions = 3
    // What was read first, until that was compared with what is read after another activation.
    var first: Type4Contents?
    var isActivatedAgain = false
    var isKnown = false
    return try persevere { failures in
      let session = Type4Session(field)
      while true {
        let contents = try session.read(isToBeWritten: true)
        let message = try compose(contents)
        if contents.excessiveLength == nil, contents.message == message.bytes { return written }
        if questions > 0 {
          questions -= 1
          first = first ?? contents
          if let isDynamic = try NTAG424Tag(session).makesDynamicMessages() {
            if isDynamic { throw NFCError.dynamicMessages }
            isKnown = true
          }
          questions = 0
        }
        if first != nil, !isActivatedAgain {
          isActivatedAgain = true
          // Without power a tag forgets a random UID, by which it must be known again.
          if !target.uid.isRandom { try field.restart() }
          guard try field.select() == target else { throw NFCError.noAnswer }
          continue
        }
        if let before = first {
          // Other chips have such functions too. A counter or a code is another one at each reading, or at the first
          // one after each activation.
          guard contents == before else { throw NFCError.changingMessage }
          if refusesUID, !isKnown { try checkUID(in: before.message) }
          first = nil
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

  /// Does something with the tag, and repeats it if the tag did not answer.
  ///
  /// - Parameter body: gets the number of attempts without progress since the last progress, and sets it to 0 when it
  ///   makes progress.
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
  /// - Returns: whether the tag had stayed.
  private func waitForReturn() throws -> Bool {
    let deadline = Instant.now + patience
    var stayed = true
    while true {
      if let found = try field.select() {
        guard found.uid == target.uid else { throw NFCError.otherTag(expected: target.uid, found: found.uid) }
        return stayed
      }
      stayed = false
      let left = Instant.now.duration(to: deadline)
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
