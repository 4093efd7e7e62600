import Encoding

/// A 128-bit identifier (RFC 9562): a vehicle's name in radio frames and in every message.
///
/// It replaces Foundation's type, whose `init(uuidString:)` and description handle case differently: in the protocol,
/// the text is always lower case, and parsing accepts both.
public struct UUID: Hashable, Sendable, CustomStringConvertible {
  /// The 16 bytes in network order, as an iBeacon frame carries them.
  public let high: UInt64
  public let low: UInt64

  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// A new random UUID (version 4, RFC 9562 5.4).
  public static func random() -> UUID {
    var generator = SystemRandomNumberGenerator()
    return version4(high: generator.next(), low: generator.next())
  }

  /// The version 4 UUID with these 122 bits. The other six hold version and variant (RFC 9562 5.4).
  package static func version4(high: UInt64, low: UInt64) -> UUID {
    UUID(high: high & ~0xF000 | 0x4000, low: low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
  }

  /// Reads only the usual form, `8-4-4-4-12` hexadecimal digits in either case.
  public init?(_ text: some StringProtocol) {
    self.init(characters: Array(text.utf8))
  }

  private init?(characters: [UInt8]) {
    guard characters.count == 36 else { return nil }
    var (high, low): (UInt64, UInt64) = (0, 0)
    for (index, character) in characters.enumerated() {
      switch index {
      case 8, 13, 18, 23: guard character == UInt8(ascii: "-") else { return nil }
      default:
        guard let digit = hexadecimalDigit(character) else { return nil }
        high = high << 4 | low >> 60
        low = low << 4 | UInt64(digit)
      }
    }
    self.init(high: high, low: low)
  }

  public var description: String {
    String(unsafeUninitializedCapacity: 36) { text in
      var position = 0
      for index in 0..<32 {
        if index == 8 || index == 12 || index == 16 || index == 20 {
          text[position] = 0x2D
          position += 1
        }
        let digit = UInt8((index < 16 ? high : low) >> UInt64((15 - index % 16) * 4) & 0xF)
        text[position] = digit < 10 ? 0x30 + digit : 0x61 + digit - 10
        position += 1
      }
      return position
    }
  }
}
