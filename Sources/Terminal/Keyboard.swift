import Glibc

/// The keys of this process's terminal, read one by one without echo, until the owner releases them. Signals work as
/// usual.
package final class Keyboard {
  /// The terminal's former state, for the signal handler, which cannot get it otherwise. It is set before the handler
  /// is installed and cleared after the handler is removed, so the two never access it at the same time.
  private nonisolated(unsafe) static var usual: termios?

  /// - Returns: nil if there is no terminal, or another job has it: taking it would stop this process (SIGTTOU).
  package init?(_ input: any Input) {
    guard input is StandardInput, Keyboard.take() else { return nil }
    signal(SIGTSTP) { _ in
      let code = errno
      Keyboard.pause()
      errno = code
    }
  }

  deinit {
    signal(SIGTSTP, SIG_DFL)
    Keyboard.giveBack()
    Keyboard.usual = nil
  }

  /// The descriptor that is readable when a key was pressed.
  package var number: Int32 { STDIN_FILENO }

  /// The keys pressed since the last call. A non-ASCII key is U+FFFD.
  ///
  /// - Returns: nil when the terminal has gone.
  package func pressed() -> [Character]? {
    // Another job has the terminal now: reading would stop this process (SIGTTIN).
    guard tcgetpgrp(STDIN_FILENO) == getpgrp() else { return tcgetpgrp(STDIN_FILENO) < 0 ? nil : [] }
    var entry = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, 0) > 0 else { return [] }
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = read(number, &bytes, bytes.count)
    guard count > 0 else { return nil }
    return bytes[..<count].map { $0 < 0x80 ? Character(UnicodeScalar($0)) : "\u{FFFD}" }
  }

  private static func take() -> Bool {
    var settings = termios()
    guard tcgetattr(STDIN_FILENO, &settings) == 0, tcgetpgrp(STDIN_FILENO) == getpgrp() else { return false }
    usual = usual ?? settings
    settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
    return tcsetattr(STDIN_FILENO, TCSANOW, &settings) == 0
  }

  private static func giveBack() {
    guard var settings = usual, tcgetpgrp(STDIN_FILENO) == getpgrp() else { return }
    tcsetattr(STDIN_FILENO, TCSANOW, &settings)
  }

  /// Control-Z: returns the terminal to the shell, and after `fg` takes the keys again. Runs in a signal handler.
  static func pause() {
    giveBack()
    raise(SIGSTOP)
    if usual != nil { _ = take() }
  }
}
