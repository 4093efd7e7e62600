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
  /// The address of its tag, and those of its value.
  let start: Int
  let value: [Int]
}

/// Goes through the data area from block to block, and keeps in mind which bytes are reserved.
struct Type2Walker {
  let memory: Type2Memory
  /// The address behind the data area.
  let end: Int
  /// Addresses that are not part of any block: dynamic lock bytes and what else a control block excepts.
  private(set) var reserved: [Range<Int>] = []
  /// Where the next block begins; at the end, where one more block could: at the terminator, at the first of the NULL
  /// blocks that fill the rest, or at the end of the area.
  private(set) var position = 16

  init(memory: Type2Memory, end: Int) {
    self.memory = memory
    // What lies behind the first sector cannot be reached.
    self.end = min(end, Type2Memory.maximumPages * Type2Memory.pageSize)
  }

  /// The first address from there on that is not reserved.
  func unreserved(_ address: Int) -> Int {
    var address = address
    while let range = reserved.first(where: { $0.contains(address) }) { address = range.upperBound }
    return address
  }

  /// The addresses from there on that blocks may use.
  func addresses(from start: Int) -> some Sequence<Int> {
    sequence(state: start) { next -> Int? in
      let address = unreserved(next)
      next = address + 1
      return address < end ? address : nil
    }
  }

  /// How many bytes from there on blocks may use.
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
    // 2.3.1: a NULL block is a tag only.
    while start < end, try memory.byte(start) == Type2TLV.Tag.null { start = unreserved(start + 1) }
    guard start < end else {
      position = min(unreserved(position), end)
      return nil
    }
    let tag = try memory.byte(start)
    // 2.3.6: so is the terminator, and nothing follows it.
    guard tag != Type2TLV.Tag.terminator else {
      position = start
      return nil
    }
    var rest = addresses(from: start + 1).makeIterator()
    // 2.3: the length is one byte, or FFh and two bytes, which then are 00FFh to FFFEh.
    var length = Int(try byte(&rest, of: start))
    if length == 0xFF {
      length = Int(try byte(&rest, of: start)) << 8
      length |= Int(try byte(&rest, of: start))
      guard (0x00FF...0xFFFE).contains(length) else {
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
    if tag == Type2TLV.Tag.lockControl || tag == Type2TLV.Tag.memoryControl { reserved.append(try control(block)) }
    return block
  }

  private func byte(_ rest: inout some IteratorProtocol<Int>, of start: Int) throws(Type2Stop) -> UInt8 {
    guard let address = rest.next() else { throw .failed(.malformedTag("a block without a length", offset: start)) }
    return try memory.byte(address)
  }

  /// What a Lock Control (2.3.2) or Memory Control (2.3.3) block excepts.
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
