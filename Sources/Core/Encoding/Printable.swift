/// Makes text from outside safe for a terminal or a log: control characters are shown, not obeyed.
public func printable(_ text: String) -> String {
  var shown = ""
  for scalar in text.unicodeScalars {
    if scalar.properties.generalCategory.steers {
      shown += "\u{FFFD}"
    } else {
      shown.unicodeScalars.append(scalar)
    }
  }
  return shown
}

extension Unicode.GeneralCategory {
  /// Whether such a character ends a line, or steers a terminal or the direction of text.
  var steers: Bool {
    switch self {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: true
    default: false
    }
  }
}
