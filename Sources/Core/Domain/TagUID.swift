import Encoding

/// The number with which an NFC tag answers when selected (ISO/IEC 14443-3 6.5.4): 4, 7 or 10 bytes.
///
/// It can be copied to any tag whose number is writable.
public struct TagUID: Hashable, Sendable, CustomStringConvertible {
  public let bytes: [UInt8]

  /// - Returns: nil unless there are 4, 7 or 10 bytes.
  public init?(_ bytes: [UInt8]) {
    guard [4, 7, 10].contains(bytes.count) else { return nil }
    self.bytes = bytes
  }

  /// Reads hexadecimal digits in either case, and nothing else: `04A1B2C3D4E5F6`.
  public init?(_ text: some StringProtocol) {
    guard let bytes = hexadecimal(text) else { return nil }
    self.init(bytes)
  }

  /// Whether it is new whenever the tag comes into a field (ISO/IEC 14443-3, 6.5.4: four bytes, the first 08h).
  public var isRandom: Bool { bytes.count == 4 && bytes[0] == 0x08 }

  /// In upper case, as NXP's tools and tags write it.
  public var description: String { hexadecimal(bytes) }
}
