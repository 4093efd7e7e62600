import Glibc
package import SystemIO

/// A command's output: standard output, standard error, or a test's record.
package protocol Output: Sendable {
  /// The terminal's size; nil if the output is not a terminal.
  var size: Screen.Size? { get }
  /// Whether it is a pipe that nobody reads any more.
  var isReaderGone: Bool { get }
  /// Writes all bytes at once, so that a reader of a pipe gets a record as soon as it is complete.
  func write(_ bytes: some Sequence<UInt8>) throws(SystemError)
}

extension Output {
  package var isTerminal: Bool { size != nil }
  /// Whether it is a pipe that nobody reads any more.
  package var isReaderGone: Bool { false }
}

/// The source of answers: standard input, or a test's script.
package protocol Input: Sendable {
  var isTerminal: Bool { get }
  /// Discards text that was typed before a question was asked.
  func discardTyped()
  /// Sets whether the terminal shows what is typed. Without a terminal it does nothing.
  func show(typed isShown: Bool)
  /// Waits for more bytes.
  ///
  /// - Returns: nothing at the end.
  /// - Throws: `Interrupted` for a signal.
  func read(until interruption: Interruption) throws -> [UInt8]
  /// Waits until there is something to read.
  ///
  /// - Returns: false when the deadline has passed first.
  /// - Throws: `Interrupted` for a signal.
  func isReadable(until deadline: Instant, _ interruption: Interruption) throws -> Bool
}

/// The standard output or the standard error of this process.
package enum StandardOutput: Output {
  case results, messages

  private var number: Int32 { self == .results ? STDOUT_FILENO : STDERR_FILENO }
  private var name: String { self == .results ? "standard output" : "standard error" }

  package var size: Screen.Size? {
    guard isatty(number) == 1 else { return nil }
    var size = winsize()
    guard ioctl(number, UInt(TIOCGWINSZ), &size) == 0, size.ws_row > 0, size.ws_col > 0 else { return .usual }
    return Screen.Size(rows: Int(size.ws_row), columns: Int(size.ws_col))
  }

  package var isReaderGone: Bool {
    // poll(2): POLLERR is reported whether it is asked for or not.
    var output = pollfd(fd: number, events: 0, revents: 0)
    return poll(&output, 1, 0) > 0 && output.revents & Int16(POLLERR) != 0
  }

  package func write(_ bytes: some Sequence<UInt8>) throws(SystemError) {
    var rest = ContiguousArray(bytes)[...]
    while !rest.isEmpty {
      let count = try check("write to", name) {
        rest.withUnsafeBytes { Glibc.write(number, $0.baseAddress, $0.count) }
      }
      rest = rest.dropFirst(count)
    }
  }

  /// Writes in a signal handler, where nothing but write(2) is safe.
  static func sendFromSignalHandler(_ text: StaticString) {
    _ = Glibc.write(STDOUT_FILENO, text.utf8Start, text.utf8CodeUnitCount)
  }
}

/// The standard input of this process.
package struct StandardInput: Input {
  package var isTerminal: Bool { isatty(STDIN_FILENO) == 1 }

  package func discardTyped() { if isTerminal { tcflush(STDIN_FILENO, TCIFLUSH) } }

  package func show(typed isShown: Bool) {
    var settings = termios()
    guard tcgetattr(STDIN_FILENO, &settings) == 0, isOurs else { return }
    settings.c_lflag = isShown ? settings.c_lflag | tcflag_t(ECHO) : settings.c_lflag & ~tcflag_t(ECHO)
    tcsetattr(STDIN_FILENO, TCSANOW, &settings)
  }

  package func read(until interruption: Interruption) throws -> [UInt8] {
    if try waitReadable([STDIN_FILENO, interruption.number], until: nil)[1] { throw Interrupted() }
    var chunk = [UInt8](repeating: 0, count: 1024)
    let count = try check("read", "standard input") { Glibc.read(STDIN_FILENO, &chunk, chunk.count) }
    return Array(chunk[..<count])
  }
  package func isReadable(until deadline: Instant, _ interruption: Interruption) throws -> Bool {
    // What is typed for another job is not ours: reading it would stop this process (SIGTTIN).
    let ready = try waitReadable([isOurs ? STDIN_FILENO : -1, interruption.number], until: deadline)
    if ready[1] { throw Interrupted() }
    return ready[0] && isOurs
  }

  /// Whether this job has the terminal.
  private var isOurs: Bool { tcgetpgrp(STDIN_FILENO) == getpgrp() }
}
