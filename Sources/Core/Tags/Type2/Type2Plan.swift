import Encoding
package import NDEF

/// What a plan gives up of a tag's other content.
package struct Type2Loss: Hashable, Sendable {
  /// Pages with data on a tag that is not formatted.
  package var pages = 0
  /// Blocks other than the message and control blocks.
  package var blocks = 0
  package var hasMalformedBlocks = false
}

/// The page writes, in order, that change a Type 2 tag's content into the wanted content.
///
/// A tag may leave at any moment. Then only some pages are written, and one of them perhaps in part. The tag is read
/// again, and a new plan does the rest.
package struct Type2Plan: Hashable, Sendable {
  package struct Write: Hashable, Sendable {
    package let page: Int
    /// All four bytes. In page 2, page 3 and the dynamic lock bytes, the chip only sets bits.
    package let bytes: [UInt8]

    package init(page: Int, bytes: [UInt8]) {
      self.page = page
      self.bytes = bytes
    }
  }

  package private(set) var writes: [Write] = []
  /// The number of writes up to the end of each part except the last.
  private var ends: [Int] = []
  /// The tag's known content after the writes.
  package private(set) var memory: Type2Memory
  /// A page to write as it is, before anything else. Nobody knows which pages an unknown chip protects; if a password
  /// protects one that must change, it also protects the last of them, and the tag refuses this write. Nil if the chip
  /// is known, if there is no message that could be lost, or if such a write, torn, could damage it.
  package private(set) var probe: Write?
  package private(set) var loss = Type2Loss()

  /// Without any writes.
  package init(memory: Type2Memory) { self.memory = memory }

  /// The longest message that fits in `size` bytes of the data area, bytes. Tag and length take two bytes, or four if
  /// the length is 255 or more (Type 2 Tag 1.1, 2.3).
  static func capacity(_ size: Int) -> Int { max(0, size < 257 ? size - 2 : size < 259 ? 254 : min(size - 4, 0xFFFE)) }

  /// Writes bytes to their addresses, page by page. Pages that are already right are skipped.
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

  /// Ends a part: the writes after it rely on all writes before it.
  mutating func endPart() { ends.append(writes.count) }

  /// The writes in parts, none of them empty. Before a part begins, the pages of the previous part must be read back: a
  /// tag may acknowledge a write and ignore it.
  package var parts: [ArraySlice<Write>] {
    zip([0] + ends, ends + [writes.count]).map { writes[$0..<$1] }.filter { !$0.isEmpty }
  }
}

extension Type2Plan {
  /// Writes a message to a tag.
  ///
  /// A message exists if the first byte of its length is not 0. That byte becomes 0 before anything else changes, and
  /// gets its value after everything else is right. Neither of these two writes changes another byte of its page. So
  /// after a torn write the tag holds the old message, an empty one or the new one, whether each byte of the torn page
  /// is old or new. If a torn page may hold arbitrary bytes, this still holds, except for the page with that length
  /// byte. Such a tag is almost always refused, because a message contains its own length. Each of these steps is a
  /// part, so that a page that ignores writes is found while the message is empty.
  ///
  /// An unformatted tag is formatted if the chip is known, and if it holds no data: bits of the container can only be
  /// set, and other systems use such chips without one. Control blocks, which describe the chip, stay, and so do other
  /// blocks.
  ///
  /// - Parameters:
  ///   - memory: those pages that were read.
  ///   - chip: nil if the chip is unknown. Then the container is trusted.
  ///   - replacingAll: whether to replace malformed blocks, blocks that are neither messages nor control blocks, and
  ///     the data of an unformatted tag.
  ///   - isAccepted: whether an earlier plan has found that this tag may be formatted. That plan may be torn.
  /// - Throws: the errors of `Type2Layout.read`, and the reasons why a tag cannot be written.
  package static func write(
    _ message: NDEFMessage, to memory: Type2Memory, chip: Type2Chip?, replacingAll: Bool = false,
    isAccepted: Bool = false
  ) throws(NDEFError) -> Type2Step<Type2Plan> {
    try Type2Memory.step { () throws(Type2Stop) in
      let bytes = message.bytes
      let head = try memory.bytes(0..<16)
      let found = Array(head[12..<16])
      var container = found
      var isFormatted = true
      var usedPages = 0
      do throws(NDEFError) {
        let container = try CapabilityContainer(found)
        try container.checkReadable()
        try container.checkWritable()
      } catch {
        // Bits of the container can only be set (NTAG213/215/216, rev. 3.2, 8.5.4; MF0ICU1, rev. 3.9, 7.5.3).
        guard let chip, isSubset(found, of: chip.container) else {
          if case .notFormatted = error, chip == nil { throw .failed(.unknownChip) }
          if case .notNDEF = error, let chip {
            throw .failed(.containerNotFixable(found: found, wanted: chip.container))
          }
          throw .failed(error)
        }
        usedPages = try self.usedPages(memory, chip, from: 16)
        guard usedPages == 0 || replacingAll || isAccepted else { throw .failed(.inUse(pages: usedPages)) }
        container = chip.container
        isFormatted = false
      }
      do throws(Type2Stop) {
        var plan = try write(
          bytes, to: memory, container: container, isFormatted: isFormatted, chip: chip, replacingAll: replacingAll)
        plan.loss.pages = usedPages
        return plan
      } catch {
        // An earlier formatting was torn, so the container states less memory than the tag has.
        guard case .failed(.tooSmall) = error, let chip, container != chip.container,
          isSubset(container, of: chip.container)
        else { throw error }
        // Nothing was written behind it then. Otherwise the rest of the memory may be another system's.
        let stated = try stopping { () throws(NDEFError) in try CapabilityContainer(container) }.dataSize
        usedPages = try self.usedPages(memory, chip, from: 16 + stated)
        guard usedPages == 0 || replacingAll || isAccepted else { throw error }
        var plan = try write(
          bytes, to: memory, container: chip.container, isFormatted: true, chip: chip, replacingAll: replacingAll)
        plan.loss.pages = usedPages
        return plan
      }
    }
  }

  /// An empty message and what may be before it, without the zeros behind it: as factories leave tags, other programs
  /// that set the container last, and a torn formatting.
  private static let emptyContents: [[UInt8]] = [
    [Type2TLV.Tag.message], [Type2TLV.Tag.message, 0, Type2TLV.Tag.terminator],
    [Type2TLV.Tag.lockControl, 3, 0xA0, 0x0C, 0x34, Type2TLV.Tag.message, 0, Type2TLV.Tag.terminator],
  ]

  /// How many pages, from this address to the end of the pages for blocks, hold data, although no container says so.
  private static func usedPages(
    _ memory: Type2Memory, _ chip: Type2Chip, from start: Int
  ) throws(Type2Stop) -> Int {
    let end = chip.userPages.upperBound * Type2Memory.pageSize
    let content = try memory.bytes(start..<max(start, end))
    let used = content.indices.filter { content[$0] != 0 }
    guard let last = used.last, !emptyContents.contains(Array(content[...last])) else { return 0 }
    return Set(used.map { (start + $0) / Type2Memory.pageSize }).count
  }

  private static func isSubset(_ bits: [UInt8], of others: [UInt8]) -> Bool {
    bits.count == others.count && zip(bits, others).allSatisfy { $0 & ~$1 == 0 }
  }

  private static func write(
    _ message: [UInt8], to memory: Type2Memory, container: [UInt8], isFormatted: Bool, chip: Type2Chip?,
    replacingAll: Bool
  ) throws(Type2Stop) -> Type2Plan {
    let size = try stopping { () throws(NDEFError) in try CapabilityContainer(container) }.dataSize
    let end = min(16 + size, chip.map { $0.userPages.upperBound * Type2Memory.pageSize } ?? .max)
    let place = try Type2Place(memory, end: end, isFormatted: isFormatted, replacingAll: replacingAll)
    let available = capacity(place.addresses.count)
    guard message.count <= available else {
      let withAll = capacity(place.addresses.count + place.kept)
      throw .failed(
        message.count <= withAll
          ? .occupied(needed: message.count, available: available)
          : .tooSmall(needed: message.count, available: withAll))
    }

    var content = [Type2TLV.Tag.message]
    content +=
      message.count < 0xFF
      ? [UInt8(message.count)] : [0xFF] + UInt16(message.count).bigEndianBytes
    content += message
    if place.kept > 0 {
      // Readers find the next blocks by walking from block to block.
      content += Array(repeating: Type2TLV.Tag.null, count: place.addresses.count - content.count)
    } else if content.count < place.addresses.count {
      content.append(Type2TLV.Tag.terminator)
    }
    let wanted = zip(place.addresses, content).map { (address: $0, byte: $1) }
    let tag = place.addresses[0]
    let length = place.addresses[1]

    var plan = Type2Plan(memory: memory)
    let old = try memory.bytes(wanted.map(\.address))
    guard old != content || memory[3] != container else { return plan }
    plan.loss = place.loss
    // First an empty message. If there was no message, the length must become 0 before the tag byte is written. The old
    // bytes must not be readable as a message even for a moment, so the terminator comes first.
    if old[0] != Type2TLV.Tag.message, old[1] != 0 {
      try plan.put([(tag, Type2TLV.Tag.terminator)])
    }
    try plan.put([(length, 0)])
    try plan.put([(tag, Type2TLV.Tag.message)])
    try plan.set(page: 3, to: container)
    plan.endPart()
    try plan.put(wanted.map { $0.address == length ? (length, 0) : $0 })
    plan.endPart()
    try plan.put([(length, content[1])])
    if chip == nil, let end = endOfMessage(old) {
      plan.probe = try probe(of: plan.writes, behind: place.addresses[end - 1], memory)
    }
    try plan.checkPassword(before: memory, chip: chip)
    try checkMirror(wanted.map(\.address), memory, chip)
    try plan.checkLocks(before: memory, chip: chip, end: 16 + size, reserved: place.lockBytes)
    return plan
  }

  /// How many of these bytes, which begin with a block, belong to it; nil if it is no message, is empty, or is longer.
  private static func endOfMessage(_ bytes: [UInt8]) -> Int? {
    guard bytes.count >= 4, bytes[0] == Type2TLV.Tag.message, bytes[1] > 0 else { return nil }
    let end = bytes[1] < 0xFF ? 2 + Int(bytes[1]) : 4 + Int(bigEndianBytes: bytes[2..<4])
    return end <= bytes.count ? end : nil
  }

  /// The last page that changes, as it is; nil if it is not behind this address.
  private static func probe(
    of writes: [Write], behind address: Int, _ memory: Type2Memory
  ) throws(Type2Stop) -> Write? {
    guard let page = writes.map(\.page).max(), page > address / Type2Memory.pageSize else { return nil }
    return Write(page: page, bytes: try memory.page(page))
  }

  /// Throws if the chip's mirror covers a part of the message, or of anything before it, which readers need to find the
  /// message.
  ///
  /// Pages that would not change count as well: by the next attempt the counter has changed, and the tag must not be
  /// refused then, when it is already empty.
  private static func checkMirror(_ addresses: [Int], _ memory: Type2Memory, _ chip: Type2Chip?) throws(Type2Stop) {
    guard let chip, let configuration = chip.configuration, configuration < memory.refusedFrom ?? .max,
      let mirror = chip.mirror(by: try memory.page(configuration)), let last = addresses.last, mirror.lowerBound <= last
    else { return }
    throw .failed(.mirrored(page: mirror.lowerBound / Type2Memory.pageSize))
  }

  /// Throws if a password protects a page that the plan writes.
  private func checkPassword(before memory: Type2Memory, chip: Type2Chip?) throws(Type2Stop) {
    // A password that is needed for reading protects no page that was read, and all pages of the plan were read.
    guard let chip, let configuration = chip.configuration, memory.refusedFrom == nil else { return }
    // The same command also reads the lock bytes, which are needed next.
    let first = chip.dynamicLocks?.page ?? configuration
    let size = Type2Memory.pageSize
    guard let protected = try memory.bytes(first * size..<(configuration + 1) * size).last.map({ Int($0) }),
      writes.contains(where: { $0.page >= protected })
    else { return }
    throw .failed(.passwordProtected(page: protected))
  }

  /// Throws if a page that the plan writes is locked.
  private func checkLocks(
    before memory: Type2Memory, chip: Type2Chip?, end: Int, reserved: Range<Int>?
  ) throws(Type2Stop) {
    let locks = Type2StaticLocks(page2: try memory.page(2))
    if let write = writes.first(where: { locks.isLocked(page: $0.page) }) { throw .failed(.locked(page: write.page)) }
    guard let high = writes.map(\.page).filter({ $0 >= 16 }).min() else { return }
    if let chip {
      guard let dynamic = chip.dynamicLocks else { return }
      let bytes = try memory.page(dynamic.page)
      if let write = writes.first(where: { dynamic.isLocked(page: $0.page, by: bytes) }) {
        throw .failed(.locked(page: write.page))
      }
    } else {
      // The lock bits are where a Lock Control block says. Without one they are right behind the data area: a bit for
      // each eight bytes above 48 (Type 2 Tag 1.1, 2.2.2). What each bit of an unknown chip locks is uncertain, so none
      // may be set.
      let range = reserved ?? end..<end + max(0, (end - 16 - 48 + 63) / 64)
      guard range.upperBound <= Type2Memory.maximumPages * Type2Memory.pageSize else { return }
      if try memory.bytes(range).contains(where: { $0 != 0 }) { throw .failed(.locked(page: high)) }
      // The same READ that gets the lock bits of a MIFARE Ultralight C, in page 40, also gets AUTH0 and AUTH1 (NXP,
      // MF0ICU2, rev. 3.3, 7.5.8). AUTH0 is the first page that needs the key; AUTH1 is 1 if only writing needs it.
      // Their other bytes are 0.
      if end == 160, let first = memory[42], memory[43] == [1, 0, 0, 0], first[1...] == [0, 0, 0],
        (3..<48).contains(first[0]), writes.contains(where: { $0.page >= first[0] })
      {
        throw .failed(.passwordProtected(page: Int(first[0])))
      }
    }
  }
}

extension Type2Plan {
  /// Makes a tag read-only forever (Type 2 Tag 1.1, 6.3.3 and 6.4.4): updates the container and sets all lock bits.
  ///
  /// The container comes first, because one of the static lock bits protects it. The bits that freeze lock bits come
  /// last: if only these were set, the tag could never be locked. NTAG21x writes each of these pages completely or not
  /// at all (NTAG213/215/216, rev. 3.2, 10.4); other data sheets do not say. The new bits take effect at the next
  /// selection.
  ///
  /// - Throws: `lockFrozen`, whatever the container says; the container's own errors; `locked` if the container is
  ///   locked; `unknownChip`.
  package static func lock(_ memory: Type2Memory, chip: Type2Chip?) throws(NDEFError) -> Type2Step<Type2Plan> {
    try Type2Memory.step { () throws(Type2Stop) in
      let head = try memory.bytes(0..<16)
      var page2 = Array(head[8..<12])
      let locks = Type2StaticLocks(page2: page2)
      if let page = locks.frozen { throw .failed(.lockFrozen(page: page)) }
      let dynamic = try chip?.dynamicLocks.map { locks throws(Type2Stop) in (locks, try memory.page(locks.page)) }
      if let (locks, bytes) = dynamic, let page = locks.frozen(by: bytes) { throw .failed(.lockFrozen(page: page)) }
      let container = try stopping { () throws(NDEFError) in try CapabilityContainer(Array(head[12..<16])) }
      if container.writeAccess != 0x0F, locks.isLocked(page: 3) { throw .failed(.locked(page: 3)) }
      // Without dynamic lock bytes the data area ends at page 15 (Type 2 Tag 1.1, 2.1).
      guard chip != nil || container.dataSize <= 48 else { throw .failed(.unknownChip) }

      var plan = Type2Plan(memory: memory)
      try plan.set(page: 3, to: Array(head[12..<15]) + [head[15] | 0x0F])
      if let (locks, bytes) = dynamic { try plan.set(page: locks.page, to: zip(bytes, locks.all).map { $0 | $1 }) }
      for bits: UInt16 in [0xFFF8, 0xFFFF] {
        page2[2] |= UInt8(bits & 0xFF)
        page2[3] |= UInt8(bits >> 8)
        try plan.set(page: 2, to: page2)
      }
      try plan.checkPassword(before: memory, chip: chip)
      return plan
    }
  }
}
