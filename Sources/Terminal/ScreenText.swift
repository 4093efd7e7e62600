extension String {
  /// The text's width in terminal columns.
  package var columns: Int { unicodeScalars.reduce(0) { $0 + $1.columns } }

  /// As much of the text as fits; `ellipsis` replaces the part that is left out.
  package func truncated(to limit: Int, ellipsis: String) -> String {
    if columns <= limit { return self }
    let room = limit - ellipsis.columns
    guard room >= 0 else { return "" }
    var kept = ""
    var used = 0
    for character in self {
      used += String(character).columns
      if used > room { break }
      kept.append(character)
    }
    return kept + ellipsis
  }

  /// Padded with spaces: at its end, or before it for numbers.
  package func aligned(to columns: Int, right: Bool = false) -> String {
    let spaces = String(repeating: " ", count: max(0, columns - self.columns))
    return right ? spaces + self : self + spaces
  }
}

extension Unicode.Scalar {
  /// The blocks whose characters are wide or fullwidth (UAX #11), or unassigned. Narrow characters in these blocks
  /// count as wide too, because a text that is too short does no harm.
  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
    0xFE10...0xFE1F, 0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x18DFF, 0x1AFF0...0x1B2FF,
    0x1F1E6...0x1FAFF, 0x20000...0x3FFFD,
  ]

  /// Two for a Chinese character or an emoji, none for a combining accent.
  fileprivate var columns: Int {
    if value < 0x300 { return 1 }
    switch properties.generalCategory {
    case .nonspacingMark, .enclosingMark: return 0
    default: return properties.isEmojiPresentation || Self.wide.contains { $0.contains(value) } ? 2 : 1
    }
  }
}
