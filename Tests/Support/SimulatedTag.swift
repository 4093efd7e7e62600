package import Tags

/// A Type 2 tag's memory that takes writes as the chip does: bits of pages 2 and 3 and of dynamic lock bytes can only
/// be set, and locked pages refuse.
package struct SimulatedTag: Sendable {
  package let chip: Type2Chip
  package private(set) var memory: Type2Memory

  package init(_ chip: Type2Chip, _ bytes: [UInt8]) {
    self.chip = chip
    memory = Type2Memory(bytes)
  }

  /// A chip as it comes from the factory, with an empty message.
  package static func factory(_ chip: Type2Chip) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: chip.pages * 4)
    bytes.replaceSubrange(
      0..<16,
      with: [0x04, 0x51, 0x8F, 0x52, 0xE1, 0xED, 0x25, 0x80, 0xA9, 0x48, 0x00, 0x00] + chip.container)
    bytes.replaceSubrange(
      16..<24,
      with: chip == .ntag213 ? [0x01, 0x03, 0xA0, 0x0C, 0x34, 0x03, 0x00, 0xFE] : [0x03, 0x00, 0xFE, 0, 0, 0, 0, 0])
    // The last byte of the dynamic lock bytes' page always reads BDh.
    if let locks = chip.dynamicLocks { bytes[locks.page * 4 + 3] = 0xBD }
    // AUTH0 is beyond the last page.
    if let configuration = chip.configuration { bytes[configuration * 4 + 3] = 0xFF }
    return bytes
  }

  package func isOneTime(page: Int) -> Bool { page == 2 || page == 3 || page == chip.dynamicLocks?.page }

  private func isLocked(page: Int) -> Bool {
    Type2StaticLocks(page2: memory[2]!).isLocked(page: page)
      || chip.dynamicLocks.map { $0.isLocked(page: page, by: memory[$0.page]!) } ?? false
  }

  package struct Refusal: Error, Equatable {
    let page: Int
    package init(page: Int) { self.page = page }
  }

  package mutating func take(_ write: Type2Plan.Write) throws(Refusal) {
    guard write.page >= 2, write.page < chip.pages, !isLocked(page: write.page) else { throw Refusal(page: write.page) }
    let old = memory[write.page]!
    memory[write.page] =
      isOneTime(page: write.page)
      // The first two bytes of page 2 belong to the serial number.
      ? (0..<4).map { old[$0] | (write.page == 2 && $0 < 2 ? 0 : write.bytes[$0]) } : write.bytes
  }

  /// The tag with another memory.
  package func holding(_ memory: Type2Memory) -> SimulatedTag {
    var tag = self
    tag.memory = memory
    return tag
  }

  /// What the page may hold when the tag leaves during a write: each byte old or new; from one of them on, if asked
  /// for, also as it is when it was erased. Bits that can only be set are so or not yet.
  package func torn(_ write: Type2Plan.Write, erasedFrom: Int? = nil) throws(Refusal) -> [Type2Memory] {
    let old = memory[write.page]!
    var whole = self
    try whole.take(write)
    let new = whole.memory[write.page]!
    var random = SplitMix(UInt64(write.page))
    var pages: [[UInt8]] = [[]]
    for index in 0..<4 {
      let values: Set<UInt8> =
        isOneTime(page: write.page)
        ? Set(
          [old[index], new[index]]
            + (0..<3).map { _ in old[index] | (new[index] & .random(in: 0...255, using: &random)) })
        : Set([old[index], new[index]] + (index >= erasedFrom ?? 4 ? [0x00, 0xFF] : []))
      pages = pages.flatMap { page in values.sorted().map { page + [$0] } }
    }
    return pages.map { page in
      var memory = self.memory
      memory[write.page] = page
      return memory
    }
  }
}
