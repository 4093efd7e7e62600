/// What a Type 2 tag holds (NFC Forum, Type 2 Tag Operation 1.1, 6.4.1 and 6.4.2).
package struct Type2Layout: Hashable, Sendable {
  package let container: CapabilityContainer
  /// The first NDEF message; no bytes at all when its length is 0.
  package let message: [UInt8]
  /// The longest message that fits in its place, if nothing that follows it is kept, in bytes.
  package let capacity: Int
  /// As the container and the static lock bytes have it.
  package let isWritable: Bool

  /// Reads a memory, as far as it is known.
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
    var walker = Type2Walker(memory: memory, end: 16 + container.dataSize)
    var found: Type2TLV?
    while found == nil, let block = try walker.next() {
      // 2.3: blocks whose tag is not known are skipped.
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
