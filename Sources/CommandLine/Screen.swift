import Glibc
import SystemIO

/// A terminal to draw on, one frame over the other. When the owner lets go, what stood there before is back.
///
/// It uses the alternate screen. A terminal that is resized wraps the lines of the ordinary one again, and then nobody
/// can say where the last frame began.
package final class Screen {
  package struct Size: Equatable, Sendable {
    package let rows: Int
    package let columns: Int

    package init(rows: Int, columns: Int) {
      self.rows = rows
      self.columns = columns
    }

    /// What terminals began with, for one that does not know its size.
    static let usual = Size(rows: 24, columns: 80)
  }

  // The private modes of DEC and xterm: 1049 the alternate screen, 25 the cursor, 7 the wrapping of long lines.
  private static let enter: StaticString = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l"
  // First to the next line: a terminal without an alternate screen goes on below the last frame.
  private static let leave: StaticString = "\r\n\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

  private let output: any Output
  private var keys: Keyboard?

  /// Whether results go to a terminal, and to one that can move its cursor.
  package static func canDraw(_ context: Context) -> Bool { canMove(context) && context.output.isTerminal }

  /// Whether the terminal, if there is one, can move its cursor.
  static func canMove(_ context: Context) -> Bool {
    let type = context.environment["TERM"] ?? ""
    return !type.isEmpty && type != "dumb"
  }

  /// Takes the terminal, which can draw.
  ///
  /// - Parameter takesKeys: whether keys are wanted, where standard input is this process's terminal too.
  package init(_ context: Context, takesKeys: Bool = false) {
    output = context.output
    keys = takesKeys ? Keyboard(context.input) : nil
    try? output.write(Self.enter.description.utf8)
    if isOfProcess { signal(SIGTSTP) { _ in Screen.pause() } }
  }

  deinit {
    if isOfProcess { signal(SIGTSTP, SIG_DFL) }
    keys = nil
    try? output.write(Self.leave.description.utf8)
  }

  private var isOfProcess: Bool { output is StandardOutput }

  /// As it is now.
  package var size: Size { output.size ?? .usual }

  /// Draws a frame over the last one, in one write and without clearing, so that nothing flickers.
  ///
  /// - Parameter lines: no more than there are rows, and shorter than a row. What is erased to the end of a line
  ///   includes the cursor's place, which is the last column when the line is full.
  package func show(_ lines: [String]) throws {
    // ECMA-48, 8.3.21 (CUP), 8.3.41 (EL), 8.3.39 (ED).
    let frame = "\u{1B}[H" + lines.joined(separator: "\u{1B}[K\r\n") + "\u{1B}[K\u{1B}[J"
    do {
      try output.write(frame.utf8)
    } catch {
      // A terminal that was closed fails before its SIGHUP is looked at.
      throw error.code == EPIPE ? Interrupted(signal: SIGPIPE) : Interruption.pending.map(Interrupted.init) ?? error
    }
  }

  /// The terminal of the keys, for a loop to watch; nil where there are no keys.
  package var keyboard: Int32? { keys?.number }

  /// The keys that were pressed since the last time.
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
