extension Type2Plan {
  /// What puts a message on a tag.
  ///
  /// The message exists from the moment when its length's first byte is not 0. That byte is set to 0 before anything else
  /// changes, and to what it should be after all else is right, each time with no other byte of its page changing. So a tag
  /// that was torn off holds the old message, an empty one or the new one, whatever bytes of a torn page are old and whatever
  /// are new. If a torn page may hold any bytes, that is still so for every page but the one with that byte; what stands
  /// there is then almost always refused, because a message says its own length.
  ///
  /// A tag that is not formatted is formatted, once the chip is known. Control blocks, which describe the chip, stay; so
  /// do other blocks.
  ///
  /// - Parameters:
  ///   - memory: as far as it was read.
  ///   - chip: nil when it is not known; then the container is believed.
  ///   - replacingAll: whether blocks that are neither messages nor control blocks give way, and rubbish too.
  /// - Throws: what `Type2Layout.read` throws, and why the tag cannot be written.
  package static func write(
    _ message: NDEFMessage, to memory: Type2Memory, chip: Type2Chip?, replacingAll: Bool = false
  ) throws(NDEFError) -> Type2Step<Type2Plan> {
    try Type2Memory.step { () throws(Type2Stop) in
      let bytes = message.bytes
      let head = try memory.bytes(0..<16)
      let found = Array(head[12..<16])
      var container = found
      var isFormatted = true
      do throws(NDEFError) {
        let container = try CapabilityContainer(found)
        try container.checkReadable()
        try container.checkWritable()
      } catch {
        // Bits of the container can only be set (NTAG213/215/216, rev. 3.2, 8.5.4; MF0ICU1, rev. 3.9, 7.5.3).
        guard let wanted = chip?.container, isSubset(found, of: wanted) else {
          if case .notFormatted = error, chip == nil { throw .failed(.unknownChip) }
          if case .notNDEF = error, let chip {
            throw .failed(.containerNotFixable(found: found, wanted: chip.container))
          }
          throw .failed(error)
        }
        container = wanted
        isFormatted = false
      }
      do throws(Type2Stop) {
        return try write(
          bytes, to: memory, container: container, isFormatted: isFormatted, chip: chip, replacingAll: replacingAll)
      } catch .failed(.tooSmall) where container != chip?.container && isSubset(container, of: chip?.container ?? []) {
        // Formatting was torn, and the container says that there is less memory than there is.
        return try write(
          bytes, to: memory, container: chip!.container, isFormatted: true, chip: chip, replacingAll: replacingAll)
      }
    }
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
      ? [UInt8(message.count)] : [0xFF, UInt8(message.count >> 8), UInt8(message.count & 0xFF)]
    content += message
    if place.kept > 0 {
      // What follows is found by going through the blocks.
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
    // An empty message first. Where there was none, the length must be 0 before there is a tag, and nothing may be read into
    // what stands there: not even for a moment, so that the terminator comes first.
    if old[0] != Type2TLV.Tag.message, old[1] != 0 {
      try plan.put([(tag, Type2TLV.Tag.terminator)])
    }
    try plan.put([(length, 0)])
    try plan.put([(tag, Type2TLV.Tag.message)])
    try plan.set(page: 3, to: container)
    try plan.put(wanted.map { $0.address == length ? (length, 0) : $0 })
    try plan.put([(length, content[1])])
    try plan.checkLocks(before: memory, chip: chip, end: 16 + size, reserved: place.lockBytes)
    return plan
  }

  /// Nothing that would be written may be locked.
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
      // Where a Lock Control block has them or, without one, right behind the data area: a bit for each eight bytes above
      // 48 (Type 2 Tag 1.1, 2.2.2). What each bit of an unknown chip locks is not certain, so none may be set.
      let range = reserved ?? end..<end + max(0, (end - 16 - 48 + 63) / 64)
      guard range.upperBound <= Type2Memory.maximumPages * Type2Memory.pageSize else { return }
      if try memory.bytes(range).contains(where: { $0 != 0 }) { throw .failed(.locked(page: high)) }
    }
  }
}
