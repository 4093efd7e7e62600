/// Splits a byte stream from a controller into HCI packets (Core 5.4, Vol 4, Part A, 2).
///
/// H4 has no checksum and no mark at the beginning of a packet. So a byte that is not a packet type means that the
/// stream is not H4 or that bytes were lost, and nothing after it can be trusted.
package struct H4Deframer: Sendable {
  /// A byte at the beginning of a packet that is not a packet type.
  package struct Garbage: Error, Equatable {
    /// Bytes since the stream's beginning.
    package let offset: UInt64
    package let byte: UInt8

    package init(offset: UInt64, byte: UInt8) {
      self.offset = offset
      self.byte = byte
    }
  }

  private var buffer = StreamBuffer()

  package init() {}

  /// Adds bytes of the stream.
  package mutating func append(_ new: UnsafeRawBufferPointer) { buffer.append(new) }

  /// The next event packet, from its event code on; skips other packets.
  ///
  /// - Returns: nil if it is not complete yet.
  package mutating func nextEvent() throws(Garbage) -> [UInt8]? {
    while buffer.count > 0 {
      let (bytes, position) = (buffer.bytes, buffer.position)
      // The position and the size of the length field in the packet's header.
      let (lengthAt, lengthSize): (Int, Int)
      switch bytes[position] {
      case 0x02: (lengthAt, lengthSize) = (3, 2)  // ACL data
      case 0x03: (lengthAt, lengthSize) = (3, 1)  // SCO data
      case 0x04: (lengthAt, lengthSize) = (2, 1)  // event
      case 0x05: (lengthAt, lengthSize) = (3, 2)  // ISO data
      case let byte: throw Garbage(offset: buffer.offset, byte: byte)
      }
      let header = lengthAt + lengthSize
      guard buffer.count >= header else { return nil }
      var length = Int(bytes[position + lengthAt])
      if lengthSize == 2 { length |= Int(bytes[position + lengthAt + 1]) << 8 }
      // The two highest bits of an ISO packet's length are reserved (Vol 4, Part E, 5.4.5).
      if bytes[position] == 0x05 { length &= 0x3FFF }
      guard buffer.count >= header + length else { return nil }
      let packet = bytes[buffer.take(header + length)]
      if packet.first == 0x04 { return Array(packet.dropFirst()) }
    }
    return nil
  }
}
