public import Domain
import Encoding

/// A beacon's frame (Apple, Proximity Beacon Specification, release R1).
public struct IBeacon: Hashable, Sendable {
  /// The UUID's 16 bytes in network order, as high half and low half. They become a `UUID` only when needed: that type
  /// is in another module, and would cost a call for each frame.
  public let uuidHigh: UInt64
  public let uuidLow: UInt64
  /// In this project, the step (`Step.major`).
  public let major: UInt16
  /// A number that is fixed or rotates (`Step.minor`).
  public let minor: UInt16
  /// The RSSI at a receiver 1 m away, dBm.
  public let measuredPower: Int8

  public init(uuid: Domain.UUID, major: UInt16, minor: UInt16, measuredPower: Int8) {
    uuidHigh = uuid.high
    uuidLow = uuid.low
    self.major = major
    self.minor = minor
    self.measuredPower = measuredPower
  }

  public var uuid: Domain.UUID { Domain.UUID(high: uuidHigh, low: uuidLow) }

  /// Finds the first iBeacon among AD structures, in any order and with or without Flags.
  ///
  /// The structures up to the beacon must be whole; the rest is ignored. A length of zero ends the data early (Core
  /// 5.4, Vol 3, Part C, 11). Some makers add bytes behind the measured power, such as the charge of the battery; these
  /// are ignored, too.
  ///
  /// - Returns: nil if there is none, or if a structure before it runs past the end.
  @inlinable @inline(__always)
  public init?(advertisingData data: Span<UInt8>) {
    var next = 0
    self.init(advertisingData: data, from: &next)
  }

  /// Finds the first iBeacon among the AD structures from `next` on.
  ///
  /// - Parameter next: where a structure begins, at least 0. Afterwards it is where the structure behind the beacon
  ///   begins.
  @inlinable @inline(__always)
  init?(advertisingData data: Span<UInt8>, from next: inout Int) {
    while next < data.count {
      let start = next
      let length = Int(data[unchecked: start])
      next = start &+ 1 &+ length
      guard length > 0, next <= data.count else { return nil }
      // The first 26 bytes after the length, all of them within `data`: AD type 0xFF, manufacturer specific; the
      // company, Apple (0x004C); the type, proximity beacon (0x0215, where 0x15 is the length of what follows); UUID,
      // major, minor, measured power.
      let bytes = data.bytes
      if length >= 26,
        UInt32(bigEndian: bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: start &+ 1, as: UInt32.self))
          == 0xFF4C_0002,
        data[unchecked: start &+ 5] == 0x15
      {
        uuidHigh = UInt64(bigEndian: bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: start &+ 6, as: UInt64.self))
        uuidLow = UInt64(bigEndian: bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: start &+ 14, as: UInt64.self))
        major = UInt16(bigEndian: bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: start &+ 22, as: UInt16.self))
        minor = UInt16(bigEndian: bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: start &+ 24, as: UInt16.self))
        measuredPower = Int8(bitPattern: data[unchecked: start &+ 26])
        return
      }
    }
    return nil
  }

  /// The value that makers state when nobody has measured it, dBm at 1 m.
  public static let usualMeasuredPower: Int8 = -59

  /// The data of an advertisement with this frame: Flags, which say that the device is general discoverable and does
  /// not support BR/EDR (Core Specification Supplement, Part A, 1.3), and Apple's structure. 30 of the 31 bytes that
  /// fit.
  public var advertisingData: [UInt8] {
    [0x02, 0x01, 0x06, 0x1A, 0xFF, 0x4C, 0x00, 0x02, 0x15]
      + uuidHigh.bigEndianBytes + uuidLow.bigEndianBytes + major.bigEndianBytes + minor.bigEndianBytes
      + measuredPower.bigEndianBytes
  }
}
