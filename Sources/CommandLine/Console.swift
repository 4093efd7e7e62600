import Domain
package import Encoding
import Glibc
import SystemIO

/// Where a command prints: results to standard output, everything else to standard error.
package struct Console: Sendable {
  package let isJSON: Bool
  private let isQuiet: Bool
  /// How often `-v` was given.
  private let verbosity: Int
  /// Whether attributes may be used: colors are wanted, and a terminal shows them.
  package let isColored: Bool
  private let output: any Output
  private let errors: any Output
  /// Whether terminals move their cursor.
  private let canMove: Bool

  /// - Parameter isColored: whether colors are wanted. They are used on terminals only.
  package init(
    _ context: Context, isJSON: Bool = false, isQuiet: Bool = false, verbosity: Int = 0, isColored: Bool = false
  ) {
    output = context.output
    errors = context.errors
    canMove = Screen.canMove(context)
    self.isJSON = isJSON
    self.isQuiet = isQuiet
    self.verbosity = verbosity
    self.isColored = isColored && context.output.isTerminal && context.errors.isTerminal
  }

  /// Prints a line of the result.
  package func result(_ line: String) throws { try result(Array((line + "\n").utf8)) }

  /// Prints a result that is not made of lines.
  ///
  /// - Throws: `SystemError`, or, when the reader has gone away, what ends the command as SIGPIPE would.
  package func result(_ bytes: [UInt8]) throws {
    do {
      try output.write(bytes)
    } catch {
      throw error.code == EPIPE ? Interrupted(signal: SIGPIPE) : error
    }
  }

  package func result(_ value: JSON) throws { try result(value.text) }

  /// How many columns the terminal has that results go to; nil where they go elsewhere.
  package var columns: Int? { output.size?.columns }

  /// Says what is going on; nothing with `-q`.
  package func note(_ line: String) {
    if !isQuiet { errors.write(line: line) }
  }

  /// A line on standard error that shows how things go on; nothing with `-q`.
  package var progress: ProgressLine { ProgressLine(errors, isShown: !isQuiet && canMove) }

  /// Says what helps to find a fault, with `-v` only. The text may come from others.
  package func detail(_ line: String) {
    guard verbosity > 0 else { return }
    progress.clear()
    errors.write(line: printable(line))
  }

  /// Shows what is sent and received, with `-vv` only; nil without, so that nobody makes the text in vain. It is for
  /// what anybody on the way could read: what is encrypted or signed, never a key or a token.
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

  /// A part of a line with a terminal's attributes, where they are wanted.
  package func styled(_ text: String, _ style: Style) -> String {
    isColored ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
  }
}

/// A line on standard error that is written over as things go on; nothing where that is no terminal.
package struct ProgressLine: Sendable {
  private let errors: any Output
  /// Whether there is a terminal to show it on.
  package let isShown: Bool

  init(_ errors: any Output, isShown: Bool) {
    self.errors = errors
    self.isShown = isShown && errors.isTerminal
  }

  /// Shows the state that things are in, as much of it as fits on one line.
  package func show(_ text: String) {
    write("\r\(text.truncated(to: (errors.size?.columns ?? 80) - 1, ellipsis: "..."))\u{1B}[K")
  }

  /// Takes the line away, for what is printed next.
  package func clear() { write("\r\u{1B}[K") }

  private func write(_ text: String) {
    // ECMA-48, 8.3.41 (EL): to the end of the line.
    if isShown { try? errors.write(text.utf8) }
  }
}

extension Output {
  /// Whether anybody reads it does not matter: there is nowhere else to say so.
  func write(line: String) { try? write((line + "\n").utf8) }

  /// Writes the line that says why a command failed, and the hint below it.
  func report(_ failure: any Failure, program: String) {
    write(line: "\(program): error: \(printable(failure.description))")
    if let hint = failure.hint { write(line: "hint: \(printable(hint))") }
  }
}
