extension FixedWidthInteger {
  /// The bytes of the number, the most significant first: the order of network protocols.
  package var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }

  /// The bytes of the number, the least significant first: the order of Bluetooth's HCI.
  package var littleEndianBytes: [UInt8] { withUnsafeBytes(of: littleEndian) { Array($0) } }

  /// The number whose bytes these are, the most significant first. Of more bytes than the type has, the last count.
  package init(bigEndianBytes bytes: some Sequence<UInt8>) {
    self = bytes.reduce(0) { $0 << 8 | Self(truncatingIfNeeded: $1) }
  }

  /// The number whose bytes these are, the least significant first.
  package init(littleEndianBytes bytes: some Sequence<UInt8>) { self.init(bigEndianBytes: bytes.reversed()) }
}
