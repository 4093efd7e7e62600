extension FixedWidthInteger {
  /// The bytes of the number, most significant first: network byte order.
  @inlinable package var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }

  /// The bytes of the number, least significant first: the order of Bluetooth's HCI.
  @inlinable package var littleEndianBytes: [UInt8] { withUnsafeBytes(of: littleEndian) { Array($0) } }

  /// Reads bytes with the most significant first. If there are more bytes than the type has, the last ones count.
  @inlinable package init(bigEndianBytes bytes: some Sequence<UInt8>) {
    self = 0
    for byte in bytes { self = self << 8 | Self(truncatingIfNeeded: byte) }
  }

  /// Reads bytes with the least significant first.
  @inlinable package init(littleEndianBytes bytes: some Sequence<UInt8>) { self.init(bigEndianBytes: bytes.reversed()) }
}
