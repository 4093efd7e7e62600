/// The 48-bit address that a radio frame came from (Core 5.4, Vol 6, Part B, 1.3).
///
/// It says nothing about who sent the frame: phones and some beacons change theirs every few minutes.
@usableFromInline
package struct DeviceAddress: Hashable, Sendable, CustomStringConvertible {
  /// The address in its low 48 bits: `C0:00:00:00:00:01` is 0xC000_0000_0001.
  @usableFromInline
  package let value: UInt64

  /// - Parameter value: bits above the 48th are dropped.
  @inlinable
  package init(_ value: UInt64) { self.value = value & 0xFFFF_FFFF_FFFF }

  /// As people write it: the most significant byte first, `C0:00:00:00:00:01`.
  @usableFromInline
  package var description: String {
    let digits = Array("0123456789ABCDEF".unicodeScalars)
    var text = ""
    for shift in stride(from: 40, through: 0, by: -8) {
      let byte = Int(value >> UInt64(shift) & 0xFF)
      text.unicodeScalars.append(digits[byte >> 4])
      text.unicodeScalars.append(digits[byte & 0xF])
      if shift > 0 { text.append(":") }
    }
    return text
  }
}
