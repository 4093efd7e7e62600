/// The page writes, in their order, that turn what a Type 2 tag holds into what it should hold.
///
/// A tag may leave at any moment. Then the pages up to some point are written, one of them perhaps in part, and the rest
/// are not. After reading the tag again, a new plan does what is left.
package struct Type2Plan: Hashable, Sendable {
  package struct Write: Hashable, Sendable {
    package let page: Int
    /// All four. On page 2, page 3 and dynamic lock bytes the chip only sets bits.
    package let bytes: [UInt8]

    package init(page: Int, bytes: [UInt8]) {
      self.page = page
      self.bytes = bytes
    }
  }

  package private(set) var writes: [Write] = []
  /// What the tag holds after the writes, as far as it was read.
  package private(set) var memory: Type2Memory

  init(memory: Type2Memory) { self.memory = memory }

  /// The longest message that fits in some bytes of the data area, in bytes: tag and length take two bytes, or four when
  /// the length is 255 or more (Type 2 Tag 1.1, 2.3).
  static func capacity(_ size: Int) -> Int { max(0, size < 257 ? size - 2 : size < 259 ? 254 : min(size - 4, 0xFFFE)) }

  /// Puts bytes at their addresses, page by page; pages that are right already are left alone.
  mutating func put(_ bytes: [(address: Int, byte: UInt8)]) throws(Type2Stop) {
    var start = bytes.startIndex
    while start < bytes.endIndex {
      let page = bytes[start].address / Type2Memory.pageSize
      var content = try memory.page(page)
      while start < bytes.endIndex, bytes[start].address / Type2Memory.pageSize == page {
        content[bytes[start].address % Type2Memory.pageSize] = bytes[start].byte
        start += 1
      }
      try set(page: page, to: content)
    }
  }

  mutating func set(page: Int, to content: [UInt8]) throws(Type2Stop) {
    guard try memory.page(page) != content else { return }
    writes.append(Write(page: page, bytes: content))
    memory[page] = content
  }
}
