/// Base64url without padding (RFC 4648 5, RFC 7515 2), in its only canonical form.
public enum Base64URL {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 0xFF, count: 256)
    for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
    return values
  }()

  /// Encodes bytes.
  public static func encode(_ bytes: some Sequence<UInt8>) -> String {
    // Iterating over a generic sequence calls a function for each byte; iterating over an array calls none.
    let bytes = Array(bytes)
    let alphabet = alphabet
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count * 4 / 3 + 3)
    var pending: UInt32 = 0
    var bits = 0
    for byte in bytes {
      pending = pending << 8 | UInt32(byte)
      bits += 8
      while bits >= 6 {
        bits -= 6
        text.append(alphabet[Int(pending >> UInt32(bits) & 0x3F)])
      }
    }
    if bits > 0 { text.append(alphabet[Int(pending << UInt32(6 - bits) & 0x3F)]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// Decodes a text (RFC 4648 5).
  ///
  /// - Returns: nil for padding, white space, other characters, and unused bits that are not zero. Each value has one
  ///   text, so that a signed text has no variants.
  public static func decode(_ text: some StringProtocol) -> [UInt8]? { decode(utf8: Array(text.utf8)[...]) }

  /// The bytes that a text in base64 stands for (RFC 4648 4): another alphabet in two characters, and padded.
  ///
  /// - Returns: nil for padding that is missing or misplaced, and else as for base64url.
  public static func decode(base64 text: some StringProtocol) -> [UInt8]? {
    guard text.utf8.count % 4 == 0, !text.contains(where: { "-_".contains($0) }) else { return nil }
    let padding = text.hasSuffix("==") ? 2 : text.hasSuffix("=") ? 1 : 0
    return decode(String(text.dropLast(padding).map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }))
  }

  /// Decodes the UTF-8 bytes of a text.
  public static func decode(utf8 text: ArraySlice<UInt8>) -> [UInt8]? {
    let values = values
    var (pending, bits, seen) = (UInt32(0), 0, UInt8(0))
    let bytes = [UInt8](unsafeUninitializedCapacity: text.count * 3 / 4) { bytes, count in
      for character in text {
        let value = values[Int(character)]
        seen |= value
        pending = pending << 6 | UInt32(value)
        bits += 6
        if bits >= 8 {
          bits -= 8
          bytes[count] = UInt8(truncatingIfNeeded: pending >> UInt32(bits))
          count += 1
        }
      }
    }
    // A single leftover character carries no whole byte; leftover bits must be zero.
    guard seen < 64, bits < 6, pending & (1 << UInt32(bits) - 1) == 0 else { return nil }
    return bytes
  }
}
