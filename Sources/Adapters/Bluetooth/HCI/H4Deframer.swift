/// Cuts a byte stream from a controller into HCI packets (Core 5.4, Vol 4, Part A, 2).
///
/// H4 has no check sum and no mark where a packet begins. A byte that is no packet type therefore means that the
/// stream is not H4 or that bytes were lost, and nothing after it can be trusted.
package struct H4Deframer: Sendable {
  /// A byte where a packet should begin, that begins none.
  package struct Garbage: Error, Equatable {
    /// Bytes since the stream's beginning.
    package let offset: UInt64
    package let byte: UInt8

    package init(offset: UInt64, byte: UInt8) {
      self.offset = offset
      self.byte = byte
    }
  }

  private var bytes: [UInt8] = []
  /// Where the next packet begins in `bytes`.
  private var position = 0
  /// How many bytes of the stream came before `bytes`.
  private var dropped: UInt64 = 0

  package init() {}

  /// Adds what was read.
  package mutating func append(_ new: UnsafeRawBufferPointer) {
    dropped += UInt64(position)
    bytes.removeSubrange(..<position)
    position = 0
    bytes += new
  }

  /// The next event packet, from its event code on; other packets are passed over.
  ///
  /// - Returns: nil when it is not all there yet.
  package mutating func nextEvent() throws(Garbage) -> [UInt8]? {
    while position < bytes.count {
      // Where the length stands in the packet's header, and in how many bytes.
      let (lengthAt, lengthSize): (Int, Int)
      switch bytes[position] {
      case 0x02: (lengthAt, lengthSize) = (3, 2)  // ACL data
      case 0x03: (lengthAt, lengthSize) = (3, 1)  // SCO data
      case 0x04: (lengthAt, lengthSize) = (2, 1)  // event
      case 0x05: (lengthAt, lengthSize) = (3, 2)  // ISO data
      case let byte: throw Garbage(offset: dropped + UInt64(position), byte: byte)
      }
      let header = lengthAt + lengthSize
      guard bytes.count - position >= header else { return nil }
      var length = Int(bytes[position + lengthAt])
      if lengthSize == 2 { length |= Int(bytes[position + lengthAt + 1]) << 8 }
      // The two highest bits of an ISO packet's length are reserved (Vol 4, Part E, 5.4.5).
      if bytes[position] == 0x05 { length &= 0x3FFF }
      guard bytes.count - position >= header + length else { return nil }
      let packet = bytes[position..<position + header + length]
      position = packet.endIndex
      if packet.first == 0x04 { return Array(packet.dropFirst()) }
    }
    return nil
  }
}
