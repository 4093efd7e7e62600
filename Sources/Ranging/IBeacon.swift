package import StepDomain

/// A beacon's frame (Apple, Proximity Beacon Specification, release R1).
package struct IBeacon: Hashable, Sendable {
  package let uuid: StepDomain.UUID
  package let major: UInt16
  package let minor: UInt16
  /// The RSSI that a receiver sees at a distance of 1 m, dBm.
  package let measuredPower: Int8

  package init(uuid: StepDomain.UUID, major: UInt16, minor: UInt16, measuredPower: Int8) {
    self.uuid = uuid
    self.major = major
    self.minor = minor
    self.measuredPower = measuredPower
  }

  /// Finds the first iBeacon among AD structures, in whatever order they stand and with or without Flags.
  ///
  /// The structures up to the beacon must be whole; what follows it is not looked at. A length of zero ends the
  /// data early (Core 5.4, Vol 3, Part C, 11).
  ///
  /// - Returns: nil when there is none, or when a structure runs over the end before one was found.
  package init?(advertisingData data: Span<UInt8>) {
    var start = 0
    while start < data.count {
      let length = Int(data[unchecked: start])
      let next = start &+ 1 &+ length
      guard length > 0, next <= data.count else { return nil }
      // The 26 bytes behind the length, all of them within `data`: AD type 0xFF, manufacturer specific; the company, Apple
      // (0x004C); a type, proximity beacon (2), and the length of what follows it; UUID, major, minor, measured power.
      let frame = data.bytes.extracting(unchecked: Range(uncheckedBounds: (start &+ 1, next)))
      if length == 26,
        UInt32(bigEndian: frame.unsafeLoadUnaligned(fromUncheckedByteOffset: 0, as: UInt32.self)) == 0xFF4C_0002,
        frame.unsafeLoadUnaligned(fromUncheckedByteOffset: 4, as: UInt8.self) == 0x15
      {
        let high = frame.unsafeLoadUnaligned(fromUncheckedByteOffset: 5, as: UInt64.self)
        let low = frame.unsafeLoadUnaligned(fromUncheckedByteOffset: 13, as: UInt64.self)
        uuid = StepDomain.UUID(high: UInt64(bigEndian: high), low: UInt64(bigEndian: low))
        major = UInt16(bigEndian: frame.unsafeLoadUnaligned(fromUncheckedByteOffset: 21, as: UInt16.self))
        minor = UInt16(bigEndian: frame.unsafeLoadUnaligned(fromUncheckedByteOffset: 23, as: UInt16.self))
        measuredPower = frame.unsafeLoadUnaligned(fromUncheckedByteOffset: 25, as: Int8.self)
        return
      }
      start = next
    }
    return nil
  }
}
