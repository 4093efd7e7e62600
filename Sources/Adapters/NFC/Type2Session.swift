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
    switch try field.exchange([Command.getVersion.rawValue], .raw) {
    case .answer(let version):
      chip = Type2Chip(version: version)
    case .noAnswer:
      // Older chips refuse the command, and have to be selected again; or the tag is gone.
      chip = nil
      guard try field.select() == target else { throw NFCError.noAnswer }
    }
    // Our own message, or all that can be written and the lock bytes behind it.
    firstPages = min(isToBeWritten ? (chip?.userPages.upperBound ?? 0) + 1 : 28, Self.mostPages)
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

  /// Forgets what was read, so that it is read again.
  mutating func forget() { memory = Type2Memory() }

  private mutating func read(_ pages: Range<Int>) throws {
    guard pages.upperBound <= chip?.pages ?? Type2Memory.maximumPages else {
      throw NDEFError.malformedTag(
        "what is there leads beyond the tag's end", offset: pages.lowerBound * Type2Memory.pageSize)
    }
    guard let chip else {
      return try ask([Command.read.rawValue, UInt8(pages.lowerBound)], .easy, pages.lowerBound, 4)
    }
    // The first command takes all pages from the first one on, where the UID is.
    let first = memory[0] == nil ? 0 : pages.lowerBound
    let wanted = max(pages.upperBound, first == 0 ? firstPages : 0)
    let end = min(wanted, first + Self.mostPages, chip.pages)
    try ask([Command.fastRead.rawValue, UInt8(first), UInt8(end - 1)], .raw, first, end - first)
    guard let head = memory[0], let next = memory[1] else { return }
    // Data sheets, 8.5.1: the UID. Here at the latest it shows whether another tag has answered.
    guard Array(head[..<3] + next) == target.uid.bytes else { throw NFCError.noAnswer }
  }

  private mutating func ask(
    _ command: [UInt8], _ framing: NFCRequest.Framing, _ page: Int, _ count: Int
  ) throws {
    guard case .answer(let bytes) = try field.exchange(command, framing), bytes.count == count * Type2Memory.pageSize
    else { throw NFCError.noAnswer }
    memory.insert(bytes, at: page)
  }
}
