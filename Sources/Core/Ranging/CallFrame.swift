public import Domain

/// What a rider's device advertises to be heard by a vehicle: one 128-bit service UUID, and nothing else.
///
/// A list of service UUIDs is the one structure that every system lets a program choose, phones too, and that has no
/// number of a maker in it: many devices send one, so nobody sees whom it is for, or that it is for a vehicle.
public enum CallFrame {
  /// The data of an advertisement: Complete List of 128-bit Service UUIDs (Core Specification Supplement, Part A, 1.1),
  /// the low byte first. 18 of the 31 bytes that fit.
  public static func advertisingData(_ frame: Domain.UUID) -> [UInt8] {
    func bytes(_ value: UInt64) -> [UInt8] { withUnsafeBytes(of: value.littleEndian) { Array($0) } }
    return [17, 0x07] + bytes(frame.low) + bytes(frame.high)
  }

  /// Finds it among AD structures, with or without others around it.
  ///
  /// - Returns: nil when there is no list of exactly one 128-bit service UUID, or a structure before it is torn.
  public static func read(_ data: [UInt8]) -> Domain.UUID? {
    var start = 0
    while start < data.count {
      let length = Int(data[start])
      let next = start + 1 + length
      guard length > 0, next <= data.count else { return nil }
      // Complete or not: a list that says that there are more UUIDs is what some systems write.
      if length == 17, data[start + 1] == 0x07 || data[start + 1] == 0x06 {
        func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) } }
        return Domain.UUID(high: number(data[start + 10..<next]), low: number(data[start + 2..<start + 10]))
      }
      start = next
    }
    return nil
  }
}
