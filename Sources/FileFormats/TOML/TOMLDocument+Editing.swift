extension [UInt8] {
  /// The bytes between two places of a TOML document.
  package func range(of place: Range<TOMLDocument.Position>) -> Range<Int> {
    offset(of: place.lowerBound)..<offset(of: place.upperBound)
  }

  private func offset(of place: TOMLDocument.Position) -> Int {
    var offset = place.line == 1 && starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
    for _ in 1..<place.line { offset = (self[offset...].firstIndex(of: 0x0A) ?? count - 1) + 1 }
    for _ in 1..<place.column where offset < count {
      offset += 1
      // The rest of a code point (RFC 3629 3).
      while offset < count, self[offset] & 0xC0 == 0x80 { offset += 1 }
    }
    return offset
  }

  /// Adds an entry after a value: directly in an inline table, else on a new line with the same indentation and line
  /// end.
  package mutating func insert(_ entry: String, behind value: Range<Int>, isInline: Bool) {
    if isInline {
      insert(contentsOf: ", \(entry)".utf8, at: value.upperBound)
      return
    }
    let line = (self[..<value.lowerBound].lastIndex(of: 0x0A) ?? -1) + 1
    let indentation = self[line...].prefix { $0 == 0x20 || $0 == 0x09 }
    var end = self[value.upperBound...].firstIndex(of: 0x0A) ?? count
    var lineEnd: [UInt8] = [0x0A]
    if end > 0, self[end - 1] == 0x0D {
      end -= 1
      lineEnd = [0x0D, 0x0A]
    }
    insert(contentsOf: lineEnd + indentation + entry.utf8, at: end)
  }
}
