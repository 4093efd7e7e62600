extension String {
  /// With each occurrence of a text, compared byte by byte, replaced by another.
  ///
  /// The standard library's `replacing` compares characters: a quote with an accent after it (U+0301) is another one to
  /// it, and the same to a shell. It also brings a parser of regular expressions into a program, which is a megabyte.
  package func substituting(_ text: String, by other: String) -> String {
    var (result, rest) = ("", self[...])
    while let range = rest.range(ofBytes: text) {
      result += rest[..<range.lowerBound] + other
      rest = rest[range.upperBound...]
    }
    return result + rest
  }

  /// The UTF-8 of its beginning, in at most so many bytes and without a part of a character.
  package func utf8(upTo count: Int) -> [UInt8] {
    var bytes = Array(utf8.prefix(count))
    while String(validating: bytes, as: UTF8.self) == nil { bytes.removeLast() }
    return bytes
  }
}

extension StringProtocol {
  /// Where a text, compared byte by byte, is for the first time.
  package func range(ofBytes text: String) -> Range<Index>? {
    utf8.indices.first { utf8[$0...].starts(with: text.utf8) }.map { $0..<utf8.index($0, offsetBy: text.utf8.count) }
  }
}
