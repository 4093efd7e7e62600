import Glibc
import SystemIO

/// A terminal on which frames are drawn, each over the last one. Afterwards its former content returns.
///
/// It uses the alternate screen. On the ordinary screen, a resized terminal wraps lines again, and the position of the
/// last frame is lost.
package final class Screen {
  package struct Size: Equatable, Sendable {
    package let rows: Int
    package let columns: Int

    package init(rows: Int, columns: Int) {
      self.rows = rows
      self.columns = columns
    }

    /// The size of early terminals, for a terminal that does not report its size.
    static let usual = Size(rows: 24, columns: 80)
  }

  // The private modes of DEC and xterm: 1049 the alternate screen, 25 the cursor, 7 the wrapping of long lines.
  private static let enter: StaticString = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l"
  // Moves to the next line first: a terminal without an alternate screen continues below the last frame.
  private static let leave: StaticString = "\r\n\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

  private let output: any Output
  private var keys: Keyboard?

  /// Whether results go to a terminal that can move its cursor.
  package static func canDraw(_ streams: StandardStreams) -> Bool { canMove(streams) && streams.output.isTerminal }

  /// Whether the terminal, if there is one, can move its cursor.
  static func canMove(_ streams: StandardStreams) -> Bool {
    let type = streams.environment["TERM"] ?? ""
    return !type.isEmpty && type != "dumb"
  }

  /// Takes over the terminal, which must be able to draw.
  ///
  /// - Parameter takesKeys: whether to read keys, if standard input is this process's terminal too.
  package init(_ streams: StandardStreams, takesKeys: Bool = false) {
    output = streams.output
    keys = takesKeys ? Keyboard(streams.input) : nil
    try? output.write(Self.enter.description.utf8)
    if isOfProcess { signal(SIGTSTP) { _ in Screen.pause() } }
  }

  deinit {
    if isOfProcess { signal(SIGTSTP, SIG_DFL) }
    keys = nil
    try? output.write(Self.leave.description.utf8)
  }

  private var isOfProcess: Bool { output is StandardOutput }

  /// The present size.
  package var size: Size { output.size ?? .usual }

  /// Draws a frame over the last one, in one write and without clearing, so that nothing flickers.
  ///
  /// - Parameter lines: at most as many as there are rows, each shorter than a row. Erasing to the end of a line
  ///   includes the cursor's column, which is the last column when the line is full.
  package func show(_ lines: [String]) throws {
    // ECMA-48, 8.3.21 (CUP), 8.3.41 (EL), 8.3.39 (ED).
    let frame = "\u{1B}[H" + lines.joined(separator: "\u{1B}[K\r\n") + "\u{1B}[K\u{1B}[J"
    do {
      try output.write(frame.utf8)
    } catch {
      // On a closed terminal the write fails before its SIGHUP is seen.
      throw error.code == EPIPE ? Interrupted(signal: SIGPIPE) : Interruption.pending.map(Interrupted.init) ?? error
    }
  }

  /// The descriptor of the keys, for an event loop; nil without keys.
  package var keyboard: Int32? { keys?.number }

  /// The keys pressed since the last call.
  package func pressed() -> [Character] { keys?.pressed() ?? [] }

  /// Control-Z: the shell gets its screen back, and `fg` continues with the next frame.
  private static func pause() {
    let code = errno
    StandardOutput.sendFromSignalHandler(leave)
    Keyboard.pause()
    StandardOutput.sendFromSignalHandler(enter)
    errno = code
  }
}
