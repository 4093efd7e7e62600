import Domain
import NDEF
import Tags

/// A Type 2 tag while it stays selected, and the known part of its memory.
///
/// Every error after which the tag may no longer be selected is `NFCError.noAnswer`; it ends the session.
struct Type2Session {
  private let field: any TagField
  private let target: NFCTarget
  /// Nil for an unknown chip.
  let chip: Type2Chip?
  private(set) var memory = Type2Memory()

  /// NFC Forum, Type 2 Tag Operation 1.1, 5; NTAG213/215/216, rev. 3.2, 10.
  private enum Command: UInt8 {
    case read = 0x30
    case fastRead = 0x3A
    case getVersion = 0x60
    case write = 0xA2
  }

  /// Whether the chip answers GET_VERSION, even if the chip is unknown.
  let saysVersion: Bool
  /// Whether the chip supports FAST_READ. Some chips lack it although their version says otherwise.
  private var hasFastRead: Bool
  /// The most pages that fit into one answer of the chip.
  private static let mostPages = 60
  /// How many pages the first command reads.
  private let firstPages: Int

  /// - Parameters:
  ///   - target: the tag that was just selected.
  ///   - isToBeWritten: whether more than the tag's message will be needed.
  init(_ field: any TagField, _ target: NFCTarget, isToBeWritten: Bool = false) throws {
    self.field = field
    self.target = target
    var version: [UInt8]?
    // Older chips refuse the command, and must be selected again. A refusal may also be a disturbance, and a writer
    // must know what the chip protects, so it asks twice.
    for _ in 0..<(isToBeWritten ? 2 : 1) where version == nil {
      if case .answer(let bytes) = try field.exchange([Command.getVersion.rawValue], .raw) {
        version = bytes
      } else if try field.select() != target {
        throw NFCError.noAnswer
      }
    }
    chip = version.flatMap(Type2Chip.init(version:))
    saysVersion = version != nil
    hasFastRead = chip != nil
    memory.hasPassword = chip != nil
    // For reading, the size of our own message. For writing, all writable pages, the lock bytes after them, and the
    // pages that a password protects.
    let last = chip.map { $0.configuration ?? $0.userPages.upperBound } ?? 0
    firstPages = min(isToBeWritten ? last + 1 : 28, Self.mostPages)
  }

  /// Reads as many pages as `next` needs.
  mutating func finish<Value>(_ next: (Type2Memory, Type2Chip?) throws -> Type2Step<Value>) throws -> Value {
    while true {
      switch try next(memory, chip) {
      case .done(let value): return value
      case .read(let pages): try read(pages)
      }
    }
  }

  /// Writes a page, whose content is then unknown until it is read again.
  mutating func write(_ bytes: [UInt8], to page: Int) throws {
    guard case .answer = try field.exchange([Command.write.rawValue, UInt8(page)] + bytes, .easy) else {
      throw NFCError.noAnswer
    }
    memory[page] = nil
  }

  /// Reads back the written pages.
  ///
  /// - Returns: the first page with other content; nil if there is none.
  mutating func ignored(_ writes: ArraySlice<Type2Plan.Write>) throws -> Int? {
    let wanted = Dictionary(writes.map { ($0.page, $0.bytes) }) { _, last in last }
    let pages = wanted.keys.sorted()
    guard let last = pages.last else { return nil }
    for page in pages where memory[page] == nil { try read(page..<last + 1) }
    return pages.first { wanted[$0] != memory[$0] }
  }

  private mutating func read(_ pages: Range<Int>) throws {
    guard pages.upperBound <= chip?.pages ?? Type2Memory.maximumPages else {
      throw NDEFError.malformedTag(
        "the content reaches beyond the tag's end", offset: pages.lowerBound * Type2Memory.pageSize)
    }
    // The first command reads all pages from page 0 on, which contains the UID.
    let first = memory[0] == nil ? 0 : pages.lowerBound
    let wanted = max(pages.upperBound, first == 0 ? firstPages : 0)
    let limit = min(chip?.pages ?? Type2Memory.maximumPages, memory.refusedFrom ?? .max)
    let end = hasFastRead ? min(wanted, first + Self.mostPages, limit) : first + 1
    do {
      if hasFastRead {
        let bytes = try ask([Command.fastRead.rawValue, UInt8(first), UInt8(end - 1)], .raw, pages: end - first)
        memory.insert(bytes, at: first)
      } else {
        let bytes = try ask([Command.read.rawValue, UInt8(first)], .easy, pages: 4)
        // After the last existing or readable page, READ continues with page 0 (NTAG213/215/216, rev. 3.2, 10.2). If
        // another page has the same content as page 0, nothing is lost: it is read next.
        let answer = Type2Memory(bytes)
        let count = (1..<4).first { first + $0 >= limit || answer[$0] == memory[0] } ?? 4
        memory.insert(bytes.prefix(count * Type2Memory.pageSize), at: first)
      }
    } catch NFCError.noAnswer {
      // The page is unreadable, the command is unsupported, or there was a disturbance. The planner finds out whether
      // the page matters.
      if try refuses(end - 1) {
        guard memory.refusedFrom == nil else { throw NFCError.noAnswer }
        memory.refusedFrom = chip == nil ? first : try firstRefused(before: end)
        guard try field.select() == target else { throw NFCError.noAnswer }
        return
      }
      guard hasFastRead else { throw NFCError.noAnswer }
      hasFastRead = false
      return try read(pages)
    }
    // Data sheets, 8.5.1: a UID of seven bytes is in these pages; other UIDs have another layout. This is the last
    // chance to notice that another tag has answered.
    guard chip != nil, target.uid.bytes.count == 7, let head = memory[0], let next = memory[1] else { return }
    guard Array(head[..<3] + next) == target.uid.bytes else { throw NFCError.noAnswer }
  }

  private func ask(_ command: [UInt8], _ framing: NFCRequest.Framing, pages: Int) throws -> [UInt8] {
    guard case .answer(let bytes) = try field.exchange(command, framing), bytes.count == pages * Type2Memory.pageSize
    else { throw NFCError.noAnswer }
    return bytes
  }

  /// Whether the tag is there, but does not let this page be read. Tries three times, because one failure may be a
  /// disturbance.
  ///
  /// - Throws: `NFCError.noAnswer` if the tag is not there, or if GET_VERSION now has another result than before.
  private func refuses(_ page: Int) throws -> Bool {
    for _ in 0..<3 {
      guard try field.select() == target else { throw NFCError.noAnswer }
      let version = try field.exchange([Command.getVersion.rawValue], .raw)
      guard (version != .noAnswer) == saysVersion else { throw NFCError.noAnswer }
      // On a chip that answers GET_VERSION, a password may protect every page. Other chips show the first page.
      if !saysVersion {
        guard try field.select() == target, case .answer = try field.exchange([Command.read.rawValue, 0], .easy)
        else { throw NFCError.noAnswer }
      }
      if case .answer = try field.exchange([Command.read.rawValue, UInt8(page)], .easy) { return false }
    }
    return true
  }

  /// The first page that the tag does not let be read. All later pages are unreadable too (NTAG213/215/216, rev. 3.2,
  /// 8.5.7).
  ///
  /// - Parameter end: the page after one that the tag refuses.
  private func firstRefused(before end: Int) throws -> Int {
    var range = 0..<end - 1
    while let last = range.last {
      let middle = range.lowerBound + (last - range.lowerBound) / 2
      range = try refuses(middle) ? range.lowerBound..<middle : middle + 1..<range.upperBound
    }
    return range.lowerBound
  }
}
