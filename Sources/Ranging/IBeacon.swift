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
      let length = Int(data[start])
      let next = start + 1 + length
      guard length > 0, next <= data.count else { return nil }
      if length == 26 {
        // AD type 0xFF, manufacturer specific; the company, Apple (0x004C); a type, proximity beacon (2), and the length
        // of what follows it: UUID 16, major 2, minor 2, measured power 1.
        let frame = data.extracting(start + 1..<next).bytes
        func word<Word: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, _ type: Word.Type) -> Word {
          Word(bigEndian: frame.unsafeLoadUnaligned(fromByteOffset: offset, as: type))
        }
        if word(0, UInt32.self) == 0xFF4C_0002, word(4, UInt8.self) == 0x15 {
          uuid = StepDomain.UUID(high: word(5, UInt64.self), low: word(13, UInt64.self))
          major = word(21, UInt16.self)
          minor = word(23, UInt16.self)
          measuredPower = word(25, Int8.self)
          return
        }
      }
      start = next
    }
    return nil
  }
}
