extension String {
  /// Replaces each occurrence of a text by another. Texts are compared byte by byte.
  ///
  /// The standard library's `replacing` compares characters: it sees a quote with an accent after it (U+0301) as
  /// another character, but a shell still sees the quote. It also adds a parser of regular expressions to the program,
  /// which is a megabyte.
  package func substituting(_ text: String, by other: String) -> String {
    var (result, rest) = ("", self[...])
    while let range = rest.range(ofBytes: text) {
      result += rest[..<range.lowerBound] + other
      rest = rest[range.upperBound...]
    }
    return result + rest
  }

  /// The UTF-8 of the longest prefix that has at most `count` bytes and ends between characters.
  package func utf8(upTo count: Int) -> [UInt8] {
    var bytes = Array(utf8.prefix(count))
    while String(validating: bytes, as: UTF8.self) == nil { bytes.removeLast() }
    return bytes
  }
}

extension StringProtocol {
  /// The first occurrence of a text, compared byte by byte.
  package func range(ofBytes text: String) -> Range<Index>? {
    utf8.indices.first { utf8[$0...].starts(with: text.utf8) }.map { $0..<utf8.index($0, offsetBy: text.utf8.count) }
  }
}
