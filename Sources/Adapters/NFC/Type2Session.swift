import Domain
import Tags

/// A Type 2 tag while it stays selected, and what is known of its memory.
///
/// Every error that leaves in doubt whether the tag is still selected is `NFCError.noAnswer`: after it, the session is
/// over.
struct Type2Session {
  private let field: any TagField
  private let target: NFCTarget
  /// Nil for a chip that is not known.
  let chip: Type2Chip?
  private(set) var memory = Type2Memory()

  /// NFC Forum, Type 2 Tag Operation 1.1, 5; NTAG213/215/216, rev. 3.2, 10.
  private enum Command: UInt8 {
    case read = 0x30
    case fastRead = 0x3A
    case getVersion = 0x60
    case write = 0xA2
  }

  /// Whether the chip answers GET_VERSION, be it known or not.
  private let saysVersion: Bool
  /// Whether the chip takes FAST_READ. Some do not that say they are one of those that do.
  private var hasFastRead: Bool
  /// As many as fit into one answer of the chip.
  private static let mostPages = 60
  /// How many pages the first command reads.
  private let firstPages: Int

  /// - Parameters:
  ///   - target: the tag that was selected just now.
  ///   - isToBeWritten: whether more will be needed than its message.
  init(_ field: any TagField, _ target: NFCTarget, isToBeWritten: Bool = false) throws {
    self.field = field
    self.target = target
    var version: [UInt8]?
    // Older chips refuse the command, and have to be selected again. It may have been a disturbance, and whoever writes
    // has to know what the chip protects.
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
    // Our own message; or all that can be written, the lock bytes behind it, and what a password protects.
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

  /// Writes a page, which has to be read again to be known.
  mutating func write(_ bytes: [UInt8], to page: Int) throws {
    guard case .answer = try field.exchange([Command.write.rawValue, UInt8(page)] + bytes, .easy) else {
      throw NFCError.noAnswer
    }
    memory[page] = nil
  }

  /// Reads back what was written.
  ///
  /// - Returns: the first page that does not hold it; nil where all of them do.
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
    // The first command takes all pages from the first one on, where the UID is.
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
        // READ goes on with page 0 behind the last page that there is, or that it shows (NTAG213/215/216, rev. 3.2,
        // 10.2). Nothing is lost where another page holds the same: it is asked for next.
        let answer = Type2Memory(bytes)
        let count = (1..<4).first { first + $0 >= limit || answer[$0] == memory[0] } ?? 4
        memory.insert(bytes.prefix(count * Type2Memory.pageSize), at: first)
      }
    } catch NFCError.noAnswer {
      // A page that the tag does not show, a command that it does not have, or a disturbance. Whoever plans finds out
      // whether the page matters.
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
    // Data sheets, 8.5.1: the UID, where it has seven bytes; others have the pages otherwise. Here at the latest it
    // shows whether another tag has answered.
    guard chip != nil, target.uid.bytes.count == 7, let head = memory[0], let next = memory[1] else { return }
    guard Array(head[..<3] + next) == target.uid.bytes else { throw NFCError.noAnswer }
  }

  private func ask(_ command: [UInt8], _ framing: NFCRequest.Framing, pages: Int) throws -> [UInt8] {
    guard case .answer(let bytes) = try field.exchange(command, framing), bytes.count == pages * Type2Memory.pageSize
    else { throw NFCError.noAnswer }
    return bytes
  }

  /// Whether the tag is there, and does not let this page be read: three times, because one may be a disturbance.
  ///
  /// - Throws: `NFCError.noAnswer` where the tag is not there, or says its version now and did not before.
  private func refuses(_ page: Int) throws -> Bool {
    for _ in 0..<3 {
      guard try field.select() == target else { throw NFCError.noAnswer }
      let version = try field.exchange([Command.getVersion.rawValue], .raw)
      guard (version != .noAnswer) == saysVersion else { throw NFCError.noAnswer }
      // A password may protect every page of a chip that says its version. Others show the first one.
      if !saysVersion {
        guard try field.select() == target, case .answer = try field.exchange([Command.read.rawValue, 0], .easy)
        else { throw NFCError.noAnswer }
      }
      if case .answer = try field.exchange([Command.read.rawValue, UInt8(page)], .easy) { return false }
    }
    return true
  }

  /// The first page that the tag does not let be read. All behind it are such, too (NTAG213/215/216, rev. 3.2, 8.5.7).
  ///
  /// - Parameter end: behind a page that it refuses.
  private func firstRefused(before end: Int) throws -> Int {
    var range = 0..<end - 1
    while let last = range.last {
      let middle = range.lowerBound + (last - range.lowerBound) / 2
      range = try refuses(middle) ? range.lowerBound..<middle : middle + 1..<range.upperBound
    }
    return range.lowerBound
  }
}
