package import NDEF

/// The content of a Type 2 tag (NFC Forum, Type 2 Tag Operation 1.1, 6.4.1 and 6.4.2).
package struct Type2Layout: Hashable, Sendable {
  package let container: CapabilityContainer
  /// The first NDEF message; empty when its length is 0.
  package let message: [UInt8]
  /// The longest message that fits in its place if no blocks behind it are kept, bytes.
  package let capacity: Int
  /// According to the container and the static lock bytes.
  package let isWritable: Bool

  /// Reads the content from those pages of the memory that are known.
  ///
  /// - Throws: `notFormatted`, `notNDEF`, `unsupportedVersion`, `malformedTag`, `noMessage` or `unreadable`.
  package static func read(_ memory: Type2Memory) throws(NDEFError) -> Type2Step<Type2Layout> {
    try Type2Memory.step { () throws(Type2Stop) in try Type2Layout(memory) }
  }

  private init(_ memory: Type2Memory) throws(Type2Stop) {
    // One READ: the serial number, the lock bytes and the container.
    let head = try memory.bytes(0..<16)
    let container = try stopping { () throws(NDEFError) in
      let container = try CapabilityContainer(Array(head[12..<16]))
      try container.checkReadable()
      return container
    }
    var walker = Type2Walker(memory: memory, end: 16 + container.dataSize, skipsMalformedControl: true)
    var found: Type2TLV?
    while found == nil, let block = try walker.next() {
      // 2.3: blocks with an unknown tag are skipped.
      if block.tag == Type2TLV.Tag.message { found = block }
    }
    guard let found else { throw .failed(.noMessage) }
    let locks = Type2StaticLocks(page2: Array(head[8..<12]))
    self.container = container
    message = try memory.bytes(found.value)
    capacity = Type2Plan.capacity(walker.room(from: found.start))
    isWritable = container.writeAccess == 0 && !(4...15).contains(where: locks.isLocked)
  }
}

/// A block of the data area: tag, length, value (NFC Forum, Type 2 Tag Operation 1.1, 2.3).
struct Type2TLV {
  enum Tag {
    static let null: UInt8 = 0x00
    static let lockControl: UInt8 = 0x01
    static let memoryControl: UInt8 = 0x02
    static let message: UInt8 = 0x03
    static let proprietary: UInt8 = 0xFD
    static let terminator: UInt8 = 0xFE
  }

  let tag: UInt8
  /// The address of the block's tag byte, and the addresses of its value.
  let start: Int
  let value: [Int]
}

/// Walks through the data area block by block, and collects the reserved bytes.
struct Type2Walker {
  let memory: Type2Memory
  /// The address behind the data area.
  let end: Int
  /// Whether a malformed control block is skipped. Readers skip it; writers must know which bytes to leave alone.
  let skipsMalformedControl: Bool
  /// Addresses that belong to no block: dynamic lock bytes, and other bytes that a control block excludes.
  private(set) var reserved: [Range<Int>] = []
  /// Where the next block begins. At the end: where another block could begin, which is the terminator, the first of
  /// the NULL blocks that fill the rest, or the end of the area.
  private(set) var position = 16

  init(memory: Type2Memory, end: Int, skipsMalformedControl: Bool = false) {
    self.memory = memory
    self.skipsMalformedControl = skipsMalformedControl
    // Memory behind the first sector is out of reach.
    self.end = min(end, Type2Memory.maximumPages * Type2Memory.pageSize)
  }

  /// The first address, from this one on, that is not reserved.
  func unreserved(_ address: Int) -> Int {
    var address = address
    while let range = reserved.first(where: { $0.contains(address) }) { address = range.upperBound }
    return address
  }

  /// The addresses, from this one on, that blocks may use.
  func addresses(from start: Int) -> some Sequence<Int> {
    sequence(state: start) { next -> Int? in
      let address = unreserved(next)
      next = address + 1
      return address < end ? address : nil
    }
  }

  /// How many bytes blocks may use, from this address on.
  func room(from start: Int) -> Int {
    var count = 0
    var position = unreserved(start)
    while position < end {
      let next = reserved.map(\.lowerBound).filter { $0 > position }.min() ?? end
      count += min(next, end) - position
      position = unreserved(next)
    }
    return count
  }

  /// The next block that is not NULL, or nil at the end.
  mutating func next() throws(Type2Stop) -> Type2TLV? {
    var start = unreserved(position)
    // 2.3.1: a NULL block consists of its tag only.
    while start < end, try memory.byte(start) == Type2TLV.Tag.null { start = unreserved(start + 1) }
    guard start < end else {
      position = min(unreserved(position), end)
      return nil
    }
    let tag = try memory.byte(start)
    // 2.3.6: the terminator consists of its tag only, too, and nothing follows it.
    guard tag != Type2TLV.Tag.terminator else {
      position = start
      return nil
    }
    var rest = addresses(from: start + 1).makeIterator()
    // 2.3: the length is one byte, or FFh and two bytes with 00FFh to FFFEh. Some tags write a shorter length in three
    // bytes; all readers accept that.
    var length = Int(try byte(&rest, of: start))
    if length == 0xFF {
      length = Int(try byte(&rest, of: start)) << 8
      length |= Int(try byte(&rest, of: start))
      guard length <= 0xFFFE else {
        throw .failed(.malformedTag("a length of \(length) in three bytes", offset: start))
      }
    }
    var value: [Int] = []
    while value.count < length {
      guard let address = rest.next() else {
        throw .failed(.malformedTag("a block of \(length) bytes, and \(value.count) are left", offset: start))
      }
      value.append(address)
    }
    position = value.last.map { $0 + 1 } ?? rest.next() ?? end
    let block = Type2TLV(tag: tag, start: start, value: value)
    if tag == Type2TLV.Tag.lockControl || tag == Type2TLV.Tag.memoryControl {
      do { reserved.append(try control(block)) } catch .failed where skipsMalformedControl {}
    }
    return block
  }

  private func byte(_ rest: inout some IteratorProtocol<Int>, of start: Int) throws(Type2Stop) -> UInt8 {
    guard let address = rest.next() else { throw .failed(.malformedTag("a block without a length", offset: start)) }
    return try memory.byte(address)
  }

  /// The bytes that a Lock Control (2.3.2) or Memory Control (2.3.3) block excludes.
  private func control(_ block: Type2TLV) throws(Type2Stop) -> Range<Int> {
    guard block.value.count == 3 else {
      throw .failed(.malformedTag("a control block of \(block.value.count) bytes", offset: block.start))
    }
    let value = try memory.bytes(block.value)
    // Byte 2, low half: the binary logarithm of the size of a page, which byte 0 counts; 0 is reserved.
    guard value[2] & 0x0F != 0 else {
      throw .failed(.malformedTag("a control block with pages of no size", offset: block.start))
    }
    let first = (Int(value[0] >> 4) << Int(value[2] & 0x0F)) + Int(value[0] & 0x0F)
    // Byte 1: lock bits, or reserved bytes; 0 means 256.
    let size = value[1] == 0 ? 256 : Int(value[1])
    return first..<first + (block.tag == Type2TLV.Tag.lockControl ? (size + 7) / 8 : size)
  }
}

/// Where a message goes in a tag's data area.
struct Type2Place {
  /// The addresses that the message block may use, beginning with its tag byte.
  private(set) var addresses: [Int] = []
  /// How many bytes of other blocks follow. They stay unchanged.
  private(set) var kept = 0
  /// The dynamic lock bytes, if a Lock Control block says where they are.
  private(set) var lockBytes: Range<Int>?
  /// What is given up because all is replaced.
  private(set) var loss = Type2Loss()

  init(_ memory: Type2Memory, end: Int, isFormatted: Bool, replacingAll: Bool) throws(Type2Stop) {
    var walker = Type2Walker(memory: memory, end: end)
    // An unformatted tag has no blocks.
    guard isFormatted else {
      addresses = Array(walker.addresses(from: 16))
      return
    }
    var start = 16
    var message: Type2TLV?
    do {
      while message == nil, let block = try walker.next() {
        switch block.tag {
        case Type2TLV.Tag.message:
          message = block
          if !replacingAll { start = block.start }
        case Type2TLV.Tag.lockControl, Type2TLV.Tag.memoryControl:
          if block.tag == Type2TLV.Tag.lockControl { lockBytes = walker.reserved.last }
          start = walker.position
        default:
          if replacingAll { loss.blocks += 1 } else { start = walker.position }
        }
      }
      if message == nil, !replacingAll { start = walker.position }
    } catch {
      // Malformed blocks do not matter if they are replaced.
      guard replacingAll, case .failed = error else { throw error }
      loss.hasMalformedBlocks = true
    }
    addresses = Array(walker.addresses(from: start))
    guard message != nil else { return }
    let following = try Self.blocks(after: walker)
    if replacingAll {
      loss.blocks += following.count
    } else if let next = following.first {
      let free = addresses.prefix { $0 < next }.count
      kept = addresses.count - free
      addresses.removeLast(kept)
    }
  }

  /// Where the blocks behind the message begin.
  ///
  /// A torn message is followed by its remains, not by blocks. Undefined tag bytes reveal this: a record begins with
  /// 80h or more.
  private static func blocks(after walker: Type2Walker) throws(Type2Stop) -> [Int] {
    var walker = walker
    var starts: [Int] = []
    do {
      while let block = try walker.next() {
        guard block.tag == Type2TLV.Tag.proprietary || block.tag <= Type2TLV.Tag.message else { return [] }
        starts.append(block.start)
      }
    } catch {
      guard case .failed = error else { throw error }
      return []
    }
    return starts
  }
}
