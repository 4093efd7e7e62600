public import Domain
import Encoding

/// What a rider's device advertises to be heard by a vehicle: one 128-bit service UUID, and nothing else.
///
/// Every system, phones included, lets a program choose a list of service UUIDs. It is the only such structure that
/// names no manufacturer. Many devices send one, so nobody can see whom it is for, or that it is for a vehicle.
public enum CallFrame {
  /// The data of an advertisement: Complete List of 128-bit Service UUIDs (Core Specification Supplement, Part A, 1.1),
  /// the low byte first. 18 of the 31 bytes that fit.
  public static func advertisingData(_ frame: Domain.UUID) -> [UInt8] {
    [17, 0x07] + frame.low.littleEndianBytes + frame.high.littleEndianBytes
  }

  /// Finds the frame among AD structures, alone or with others.
  ///
  /// - Returns: nil if there is no list of exactly one 128-bit service UUID, or an earlier structure is torn.
  public static func read(_ data: [UInt8]) -> Domain.UUID? {
    var start = 0
    while start < data.count {
      let length = Int(data[start])
      let next = start + 1 + length
      guard length > 0, next <= data.count else { return nil }
      // Complete or incomplete: some systems mark even a whole list as incomplete.
      if length == 17, data[start + 1] == 0x07 || data[start + 1] == 0x06 {
        return Domain.UUID(
          high: UInt64(littleEndianBytes: data[start + 10..<next]),
          low: UInt64(littleEndianBytes: data[start + 2..<start + 10]))
      }
      start = next
    }
    return nil
  }
}
