import Encoding

/// Text in the only encoding for which every PDF reader has a font (ISO 32000-1, D.2: WinAnsiEncoding).
struct PDFText: Equatable, Sendable {
  let bytes: [UInt8]

  /// Nil if a character is not among the 218 for Western European languages.
  init?(_ text: String) {
    let bytes = text.compactMap { Self.codes[$0] }
    guard bytes.count == text.count else { return nil }
    self.bytes = bytes
  }

  /// - Precondition: `text` is printable ASCII, which is the same in this encoding.
  init(ascii text: String) {
    precondition(text.utf8.allSatisfy { (0x20...0x7E).contains($0) }, "not printable ASCII")
    bytes = Array(text.utf8)
  }

  private init(bytes: [UInt8]) { self.bytes = bytes }

  static func + (first: PDFText, second: PDFText) -> PDFText { PDFText(bytes: first.bytes + second.bytes) }

  /// The text, cut to this length; an ellipsis marks the cut.
  func truncated(to count: Int) -> PDFText {
    bytes.count <= count ? self : PDFText(bytes: bytes.prefix(max(0, count - 1)) + [0x85])
  }

  /// A hexadecimal string (7.3.4.3), which needs no escapes.
  var hexadecimal: String { "<\(Encoding.hexadecimal(bytes))>" }

  /// Canonically equivalent characters are one key.
  private static let codes: [Character: UInt8] = {
    var codes: [Character: UInt8] = [:]
    for code in Array(0x20...0x7E) + Array(0xA0...0xFF) { codes[Character(UnicodeScalar(UInt8(code)))] = UInt8(code) }
    let others = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8D}Ž\u{8F}\u{90}‘’“”•–—˜™š›œ\u{9D}žŸ".unicodeScalars
    // A control character marks a code that the encoding does not use.
    for (code, scalar) in zip(0x80..., others) where !(0x80...0x9F).contains(scalar.value) {
      codes[Character(scalar)] = UInt8(code)
    }
    return codes
  }()
}
