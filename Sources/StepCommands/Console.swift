import Glibc
import StrictJSON
import SystemIO

/// Where a command writes: results to standard output, everything else to standard error.
///
/// Every record is written at once, so that a pipe sees it when it is true.
struct Console: Sendable {
  let isJSON: Bool
  let isQuiet: Bool
  let isVerbose: Bool
  let isColored: Bool

  /// A result. A reader that went away ends the command, as SIGPIPE would.
  func result(_ line: String) throws {
    var rest = ArraySlice(Array((line + "\n").utf8))
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno == EPIPE {
        throw Interrupted(signal: SIGPIPE)
      } else if errno != EINTR {
        throw CommandFailure(.inputOutput, "cannot write to standard output: \(String(cString: strerror(errno)))")
      }
    }
  }

  func result(_ value: JSON) throws { try result(value.text) }

  /// What is going on, for whoever watches; nothing with `-q`.
  func note(_ line: String) {
    if !isQuiet { Console.standardError(line) }
  }

  /// What only someone who looks for a fault wants to know: with `-v`.
  func detail(_ line: String) {
    if isVerbose { Console.standardError(line) }
  }

  /// The one line that says why a command failed, and the hint below it.
  static func report(_ failure: CommandFailure, program: String) {
    standardError("\(program): error: \(failure.message)")
    if let hint = failure.hint { standardError("hint: \(hint)") }
  }

  private static func standardError(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = bytes.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }

  enum Style: String {
    case good = "32"
    case bad = "31"
    case dim = "2"
    case strong = "1"
  }

  /// A part of a line with a terminal's attributes, where colours are wanted.
  func styled(_ text: String, _ style: Style) -> String {
    isColored ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
  }
}

/// Text from outside that may stand in a terminal: control characters are shown, not obeyed.
func printable(_ text: String) -> String {
  var shown = ""
  for scalar in text.unicodeScalars {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: shown += "\u{FFFD}"
    default: shown.unicodeScalars.append(scalar)
    }
  }
  return shown
}
