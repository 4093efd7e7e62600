import Glibc

/// A line on standard error that is written over as things go on; nothing where that is no terminal.
package struct ProgressLine: Sendable {
  private let isShown: Bool

  package init(isShown: Bool) { self.isShown = isShown && isatty(STDERR_FILENO) == 1 }

  /// Shows the state that things are in, which must fit on one line.
  package func show(_ text: String) { write("\r\(text)\u{1B}[K") }

  /// Takes the line away, for what is printed next.
  package func clear() { write("\r\u{1B}[K") }

  private func write(_ text: String) {
    // ECMA-48, 8.3.41 (EL): to the end of the line.
    guard isShown else { return }
    _ = Array(text.utf8).withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
