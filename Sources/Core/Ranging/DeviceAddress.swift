/// The 48-bit address that a radio frame came from (Core 5.4, Vol 6, Part B, 1.3).
///
/// It does not identify the sender: phones and some beacons change their address every few minutes.
public struct DeviceAddress: Hashable, Sendable, CustomStringConvertible {
  /// The address in the low 48 bits, and bit 48 for a random address.
  @usableFromInline
  let bits: UInt64

  /// - Parameters:
  ///   - value: all bits above the low 48 are dropped.
  ///   - isRandom: its bits do not say so: a manufacturer's prefix may look like a random address.
  @inlinable
  public init(_ value: UInt64, isRandom: Bool = false) {
    bits = value & 0xFFFF_FFFF_FFFF | (isRandom ? 1 << 48 : 0)
  }

  /// The address in the low 48 bits: `C0:00:00:00:00:01` is 0xC000_0000_0001.
  @inlinable
  public var value: UInt64 { bits & 0xFFFF_FFFF_FFFF }

  /// Whether the device chose the address, and no manufacturer gave it.
  @inlinable
  public var isRandom: Bool { bits >> 48 == 1 }

  /// As people write it: the most significant byte first, `C0:00:00:00:00:01`.
  public var description: String {
    String(unsafeUninitializedCapacity: 17) { text in
      for index in 0..<6 {
        let byte = UInt8(value >> UInt64((5 - index) * 8) & 0xFF)
        for (offset, digit) in [(0, byte >> 4), (1, byte & 0xF)] {
          text[index * 3 + offset] = digit < 10 ? 0x30 + digit : 0x41 + digit - 10
        }
        if index < 5 { text[index * 3 + 2] = 0x3A }
      }
      return 17
    }
  }
}
