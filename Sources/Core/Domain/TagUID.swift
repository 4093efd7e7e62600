import Encoding

/// The number that an NFC tag answers with when it is selected (ISO/IEC 14443-3 6.5.4): 4, 7 or 10 bytes.
///
/// Whoever has a tag that lets its number be written can copy it.
public struct TagUID: Hashable, Sendable, CustomStringConvertible {
  public let bytes: [UInt8]

  /// - Returns: nil unless there are 4, 7 or 10 bytes.
  public init?(_ bytes: [UInt8]) {
    guard [4, 7, 10].contains(bytes.count) else { return nil }
    self.bytes = bytes
  }

  /// Hexadecimal digits in either case, and nothing else: `04A1B2C3D4E5F6`.
  public init?(_ text: some StringProtocol) {
    guard let bytes = hexadecimal(text) else { return nil }
    self.init(bytes)
  }

  /// Upper case, as NXP's tools and tags write it.
  public var description: String { hexadecimal(bytes) }
}
