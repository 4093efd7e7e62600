import Glibc
import SystemIO

/// A terminal to draw on, one frame over the other. What stood there before is back when the owner lets go.
///
/// It uses the alternate screen: when a terminal is resized it wraps the lines of the ordinary one anew, and nobody
/// can say any more where the last frame began.
package final class Screen {
  package struct Size: Equatable, Sendable {
    package let rows: Int
    package let columns: Int

    package init(rows: Int, columns: Int) {
      self.rows = rows
      self.columns = columns
    }
  }

  // The private modes of DEC and xterm: 1049 the alternate screen, 25 the cursor, 7 the wrapping of long lines.
  private static let enter: StaticString = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l"
  // First to the next line: a terminal without an alternate screen goes on below the last frame.
  private static let leave: StaticString = "\r\n\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

  private let terminal: Descriptor

  /// - Parameter type: the variable TERM.
  /// - Returns: nil where standard output is no terminal, or one that cannot move its cursor.
  package init?(type: String?) {
    guard let type, !type.isEmpty, type != "dumb", isatty(STDOUT_FILENO) == 1 else { return nil }
    let number = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
    guard number != -1 else { return nil }
    terminal = Descriptor(adopting: number)
    Screen.send(Screen.enter)
    signal(SIGTSTP) { _ in Screen.pause() }
  }

  deinit {
    signal(SIGTSTP, SIG_DFL)
    Screen.send(Screen.leave)
  }

  /// As it is now; what terminals began with, where this one does not know.
  package var size: Size {
    var size = winsize()
    guard ioctl(terminal.number, UInt(TIOCGWINSZ), &size) == 0, size.ws_row > 0, size.ws_col > 0 else {
      return Size(rows: 24, columns: 80)
    }
    return Size(rows: Int(size.ws_row), columns: Int(size.ws_col))
  }

  /// Draws a frame over the last one, in one write and without clearing, so that nothing flickers.
  ///
  /// - Parameter lines: no more than there are rows, and shorter than a row: what is erased to the end of a line
  ///   includes the cursor's place, which is the last column when the line is full.
  package func show(_ lines: [String]) throws {
    // ECMA-48, 8.3.21 (CUP), 8.3.41 (EL), 8.3.39 (ED).
    let frame = "\u{1B}[H" + lines.joined(separator: "\u{1B}[K\r\n") + "\u{1B}[K\u{1B}[J"
    do {
      try terminal.write(frame.utf8, "the terminal")
    } catch {
      // A terminal that was closed fails before its SIGHUP is looked at.
      throw error.code == EPIPE ? Interrupted(signal: SIGPIPE) : Interruption.pending.map(Interrupted.init) ?? error
    }
  }

  /// Control-Z: the shell gets back its screen, and `fg` continues with the next frame.
  private static func pause() {
    let code = errno
    send(leave)
    raise(SIGSTOP)
    send(enter)
    errno = code
  }

  /// In a signal handler too: it does nothing but write(2).
  private static func send(_ sequence: StaticString) {
    _ = write(STDOUT_FILENO, sequence.utf8Start, sequence.utf8CodeUnitCount)
  }
}
