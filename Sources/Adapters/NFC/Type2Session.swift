import Tags
import Domain

/// A Type 2 tag while it stays selected, and what is known of its memory.
///
/// Every error that leaves in doubt whether it is still selected is `noAnswer`: then nothing in here holds any more.
struct Type2Session {
  private let reader: NFCReader
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

  /// So many pages fit into one answer of the chip.
  private static let mostPages = 60
  /// How many pages the first command reads.
  private let firstPages: Int

  /// - Parameters:
  ///   - target: the tag that was selected just now.
  ///   - isToBeWritten: whether more will be asked for than its message.
  init(_ reader: NFCReader, _ target: NFCTarget, isToBeWritten: Bool = false) throws(NFCError) {
    self.reader = reader
    self.target = target
    switch try reader.exchange([Command.getVersion.rawValue], .raw) {
    case .answer(let version):
      chip = Type2Chip(version: version)
    case .noAnswer:
      // Refused, as older chips do, which then have to be selected again; or gone.
      chip = nil
      guard try reader.select() == target else { throw .noAnswer }
    }
    // Our own message, or all that can be written and the lock bytes behind it.
    firstPages = min(isToBeWritten ? (chip?.userPages.upperBound ?? 0) + 1 : 28, Self.mostPages)
  }

  /// Reads what it takes to find something out.
  mutating func finish<Value>(
    _ next: (Type2Memory, Type2Chip?) throws(NDEFError) -> Type2Step<Value>
  ) throws(NFCError) -> Value {
    while true {
      let step: Type2Step<Value>
      do throws(NDEFError) { step = try next(memory, chip) } catch { throw .content(error) }
      switch step {
      case .done(let value): return value
      case .read(let pages): try read(pages)
      }
    }
  }

  /// Writes a page. What is known of it after that has to be read.
  mutating func write(_ bytes: [UInt8], to page: Int) throws(NFCError) {
    guard case .answer = try reader.exchange([Command.write.rawValue, UInt8(page)] + bytes, .easy) else {
      throw .noAnswer
    }
    memory[page] = nil
  }

  /// Forgets what was read, so that it is read again.
  mutating func forget() { memory = Type2Memory() }

  private mutating func read(_ pages: Range<Int>) throws(NFCError) {
    guard pages.upperBound <= chip?.pages ?? Type2Memory.maximumPages else {
      throw .content(
        .malformedTag("what is there leads beyond the tag's end", offset: pages.lowerBound * Type2Memory.pageSize))
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
    // Data sheets, 8.5.1. What comes from elsewhere than from this tag is found out here at the latest.
    guard Array(head[..<3] + next) == target.uid.bytes else { throw .noAnswer }
  }

  private mutating func ask(
    _ command: [UInt8], _ framing: NFCRequest.Framing, _ page: Int, _ count: Int
  ) throws(NFCError) {
    guard case .answer(let bytes) = try reader.exchange(command, framing), bytes.count == count * Type2Memory.pageSize
    else { throw .noAnswer }
    memory.insert(bytes, at: page)
  }
}
