import Encoding

/// A text that people send each other, such as a whole mail: somewhere in it is what an operator or a device has made.
package enum ReceivedText {
  /// The texts in a mail, or in what was copied from one, that look like an access file, a code or a request, without
  /// the white space in them. Lines that a mail program broke, quoted, or encoded (RFC 2045, 6.7 and 6.8) are put
  /// together.
  package static func texts(in received: String) -> [String] {
    // A byte order mark of an editor.
    let received = received.filter { $0 != "\u{FEFF}" }
    let lines = received.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map { line in
      line.drop { $0 == ">" || $0 == " " || $0 == "\t" }
    }
    // No access file, code or request contains an equals sign. So one at a line's end is quoted-printable's soft break.
    let plain = lines.map { $0.last == "=" ? $0.dropLast() : $0 + "\n" }.joined()
    var bodies = [Array(plain.utf8)]
    bodies += encoded(in: lines).map { $0.filter { $0 != 0x0D } }
    // What is in a damaged access file must not take its place.
    let files = bodies.flatMap { accessFiles(in: $0) }
    guard files.isEmpty, !plain.contains("\"vehicle\"") else { return files }
    return bodies.flatMap { signedTexts(in: $0) }
  }

  /// The parts of a mail that are base64.
  private static func encoded(in lines: [Substring]) -> [[UInt8]] {
    var parts: [[UInt8]] = []
    for (index, line) in lines.enumerated() {
      let header = line.lowercased()
      guard header.hasPrefix("content-transfer-encoding:"), header.hasSuffix("base64") else { continue }
      let body = lines[index...].drop { !$0.isEmpty }.drop { $0.isEmpty }.prefix { !$0.isEmpty && !$0.hasPrefix("-") }
      if let bytes = Base64URL.decode(base64: body.joined()) { parts.append(bytes) }
    }
    return parts
  }

  /// An access file is an object without objects in it, of texts without braces.
  private static func accessFiles(in text: [UInt8]) -> [String] {
    var found: [String] = []
    var rest = text[...]
    while let start = rest.firstIndex(of: UInt8(ascii: "{")) {
      rest = rest[start...]
      guard let end = rest.firstIndex(of: UInt8(ascii: "}")),
        let inner = rest[..<end].lastIndex(of: UInt8(ascii: "{"))
      else { break }
      let file = String(decoding: rest[inner...end].filter { !isSpace($0) }, as: UTF8.self)
      if file.hasPrefix("{\"vehicle\":") || file.contains(",\"vehicle\":") { found.append(file) }
      rest = rest[(end + 1)...]
    }
    return found
  }

  /// Each attempt may read the rest of the text.
  private static let mostAttempts = 64

  /// Compact JWSs of Ed25519 (RFC 7515, 3.1; RFC 8037): the last part has 86 characters. Within one, lines may be
  /// broken.
  private static func signedTexts(in text: [UInt8]) -> [String] {
    // The beginning of an object in base64url.
    let head = Array("eyJ".utf8)
    var found: [String] = []
    var (start, attempts) = (0, 0)
    while start + head.count < text.count, attempts < Self.mostAttempts {
      guard text[start] == head[0], text[start...].starts(with: head), start == 0 || !isBase64URL(text[start - 1])
      else {
        start += 1
        continue
      }
      attempts += 1
      if let (end, whole) = signedText(in: text[start...]) {
        found.append(whole)
        start = end
      } else {
        start += 1
      }
    }
    return found
  }

  private static func signedText(in text: ArraySlice<UInt8>) -> (end: Int, text: String)? {
    var lengths = [0]
    var taken: [UInt8] = []
    for (index, byte) in zip(text.indices, text) {
      let isWhole = lengths.count == 3 && lengths[2] == 86
      if isBase64URL(byte) {
        if isWhole { return nil }
        lengths[lengths.count - 1] += 1
      } else if byte == UInt8(ascii: "."), lengths.count < 3, lengths[lengths.count - 1] > 0 {
        lengths.append(0)
      } else if isSpace(byte), !isWhole {
        continue
      } else {
        return isWhole ? (index, String(decoding: taken, as: UTF8.self)) : nil
      }
      taken.append(byte)
    }
    return lengths.count == 3 && lengths[2] == 86 ? (text.endIndex, String(decoding: taken, as: UTF8.self)) : nil
  }

  private static func isBase64URL(_ byte: UInt8) -> Bool { byte.isASCIIAlphanumeric || byte == 0x2D || byte == 0x5F }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
}
