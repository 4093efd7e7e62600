import Glibc
package import Domain
package import Encoding

/// Where a command writes: results to standard output, everything else to standard error.
///
/// Every record is written at once, so that a pipe sees it when it is true.
package struct Console: Sendable {
  package let isJSON: Bool
  private let isQuiet: Bool
  private let isVerbose: Bool
  /// Whether attributes may be used: colors are wanted, and there is a terminal to show them.
  package let isColored: Bool

  /// - Parameter isColored: whether attributes may be used where standard output is a terminal.
  package init(isJSON: Bool, isQuiet: Bool, isVerbose: Bool, isColored: Bool) {
    self.isJSON = isJSON
    self.isQuiet = isQuiet
    self.isVerbose = isVerbose
    self.isColored = isColored && isatty(STDOUT_FILENO) == 1 && isatty(STDERR_FILENO) == 1
  }

  /// A result. A reader that went away ends the command, as SIGPIPE would.
  package func result(_ line: String) throws { try result(Array((line + "\n").utf8)) }

  /// A result that is no text, or not of lines.
  package func result(_ bytes: [UInt8]) throws {
    var rest = bytes[...]
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

  package func result(_ value: JSON) throws { try result(value.text) }

  /// How many columns the terminal has that results go to; nil where it is none, or does not say.
  package static var columns: Int? {
    var size = winsize()
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  /// What is going on, for whoever watches; nothing with `-q`.
  package func note(_ line: String) {
    if !isQuiet { Console.standardError(line) }
  }

  /// A line on standard error for how things go on; nothing with `-q`.
  package var progress: ProgressLine { ProgressLine(isShown: !isQuiet) }

  /// What only someone who looks for a fault wants to know, also of what others sent: with `-v`.
  package func detail(_ line: String) {
    if isVerbose { Console.standardError(printable(line)) }
  }

  /// The one line that says why a command failed, and the hint below it.
  package static func report(_ failure: any Failure, program: String) {
    standardError("\(program): error: \(printable(failure.description))")
    if let hint = failure.hint { standardError("hint: \(printable(hint))") }
  }

  private static func standardError(_ line: String) {
    _ = Array((line + "\n").utf8).withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }

  /// Attributes of ECMA-48, 8.3.117 (SGR).
  package enum Style: String {
    case strong = "1"
    case dim = "2"
    case bad = "31"
    case good = "32"
  }

  /// A part of a line with a terminal's attributes, where they are wanted.
  package func styled(_ text: String, _ style: Style) -> String {
    isColored ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
  }
}
