import Domain
package import Encoding
import Glibc
import SystemIO

/// Prints a command's output: results to standard output, everything else to standard error.
package struct Console: Sendable {
  package let isJSON: Bool
  private let isQuiet: Bool
  /// How often `-v` was given.
  private let verbosity: Int
  /// Whether to use attributes: colors are wanted, and a terminal shows them.
  package let isColored: Bool
  private let output: any Output
  private let errors: any Output
  /// Whether the terminals can move their cursor.
  private let canMove: Bool

  /// - Parameter isColored: whether colors are wanted. They are used on terminals only.
  package init(
    _ streams: StandardStreams, isJSON: Bool = false, isQuiet: Bool = false, verbosity: Int = 0, isColored: Bool = false
  ) {
    output = streams.output
    errors = streams.errors
    canMove = Screen.canMove(streams)
    self.isJSON = isJSON
    self.isQuiet = isQuiet
    self.verbosity = verbosity
    self.isColored = isColored && streams.output.isTerminal && streams.errors.isTerminal
  }

  /// Prints a line of the result.
  package func result(_ line: String) throws { try result(Array((line + "\n").utf8)) }

  /// Prints a result that is not made of lines.
  ///
  /// - Throws: `SystemError`, or, if the reader has gone away, an error that ends the command like SIGPIPE.
  package func result(_ bytes: [UInt8]) throws {
    do {
      try output.write(bytes)
    } catch {
      throw error.code == EPIPE ? Interrupted(signal: SIGPIPE) : error
    }
  }

  package func result(_ value: JSON) throws { try result(value.text) }

  /// How many times faster than its own time a recording is played; nil for as fast as it can be read. A person at a
  /// terminal sees it in its own time; a program that reads the results, or JSON, waits for nothing.
  package func pace(_ speed: Double) -> Double? { !isJSON && output.isTerminal ? speed : nil }

  /// Whether nobody reads the results any more. A command that prints nothing for long has to ask.
  package var isReaderGone: Bool { output.isReaderGone }

  /// The columns of the terminal that gets the results; nil if it is not a terminal.
  package var columns: Int? { output.size?.columns }

  /// Prints a message about progress; nothing with `-q`.
  package func note(_ line: String) {
    if !isQuiet { errors.write(line: line) }
  }

  /// Prints a progress line on standard error; nothing with `-q`.
  package var progress: ProgressLine { ProgressLine(errors, isShown: !isQuiet && canMove) }

  /// Prints diagnostic text, only with `-v`. The text may be foreign.
  package func detail(_ line: String) {
    guard verbosity > 0 else { return }
    progress.clear()
    errors.write(line: printable(line))
  }

  /// Prints sent and received messages, with `-vv`; otherwise nil, so that the text is not made in vain. It must print
  /// only what anybody on the network could read, encrypted or signed, never a key or a token.
  package var trace: (@Sendable (String) -> Void)? {
    guard verbosity > 1 else { return nil }
    return { [errors, progress] line in
      progress.clear()
      errors.write(line: printable(line))
    }
  }

  /// Attributes of ECMA-48, 8.3.117 (SGR).
  package enum Style: String {
    case strong = "1"
    case dim = "2"
    case bad = "31"
    case good = "32"
  }

  /// Text with a terminal's attributes, if they are wanted.
  package func styled(_ text: String, _ style: Style) -> String {
    isColored ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
  }
}

/// A line on standard error that is rewritten as work proceeds; nothing without a terminal.
package struct ProgressLine: Sendable {
  private let errors: any Output
  /// Whether there is a terminal for it.
  package let isShown: Bool

  init(_ errors: any Output, isShown: Bool) {
    self.errors = errors
    self.isShown = isShown && errors.isTerminal
  }

  /// Shows the present state, cut to one line.
  package func show(_ text: String) {
    write("\r\(text.truncated(to: (errors.size?.columns ?? 80) - 1, ellipsis: "..."))\u{1B}[K")
  }

  /// Clears the line before something else is printed.
  package func clear() { write("\r\u{1B}[K") }

  private func write(_ text: String) {
    // ECMA-48, 8.3.41 (EL): to the end of the line.
    if isShown { try? errors.write(text.utf8) }
  }
}

extension Output {
  /// A failed write is ignored, because there is nowhere to report it.
  package func write(line: String) { try? write((line + "\n").utf8) }

  /// Prints the error line of a failed command, and the hint below it.
  func report(_ failure: any Failure, program: String) {
    write(line: "\(program): error: \(printable(failure.description))")
    if let hint = failure.hint { write(line: "hint: \(printable(hint))") }
  }
}
