import Domain
import Glibc
package import SystemIO

/// Asks whoever started the program: on standard error, with answers from standard input, a line each.
package final class Questions {
  private let interruption: Interruption
  private let areAllowed: Bool
  /// What was read beyond the last answer.
  private var read: [UInt8] = []

  /// - Parameter areAllowed: false where nobody is to be asked, so that a command ends instead of waiting.
  package init(_ interruption: Interruption, areAllowed: Bool = true) {
    self.interruption = interruption
    self.areAllowed = areAllowed
  }

  /// Waits for an answer, without the blanks around it.
  ///
  /// - Throws: `Interrupted` for a signal, and a `CommandFailure` when there is nobody who could answer.
  package func ask(_ question: String) throws -> String {
    guard areAllowed else {
      let trimmed = question.reversed().drop { $0.isWhitespace }.reversed()
      throw CommandFailure(.usage, "this has to be asked, and --no-input forbids it: \(String(trimmed))")
    }
    // What was typed before the question is no answer to it.
    if isatty(STDIN_FILENO) == 1 { tcflush(STDIN_FILENO, TCIFLUSH) }
    _ = Array(question.utf8).withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    while true {
      if let end = read.firstIndex(of: 0x0A) {
        let answer = String(decoding: read[..<end], as: UTF8.self)
        read.removeSubrange(...end)
        // What was not typed has not ended the question's line.
        if isatty(STDIN_FILENO) == 0 { _ = write(STDERR_FILENO, "\n", 1) }
        return String(answer.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
      }
      if try waitReadable([STDIN_FILENO, interruption.number], until: nil)[1] { throw Interrupted() }
      var chunk = [UInt8](repeating: 0, count: 1024)
      let count = try check("read", "standard input") { Glibc.read(STDIN_FILENO, &chunk, chunk.count) }
      guard count > 0, read.count < 1 << 16 else {
        // The error begins a line of its own.
        _ = write(STDERR_FILENO, "\n", 1)
        throw CommandFailure(.noInput, "no answer: standard input has ended")
      }
      read += chunk[..<count]
    }
  }

  /// Asks until the answer is yes or no.
  ///
  /// - Parameter suggestion: what an empty answer means.
  package func confirm(_ question: String, suggestion: Bool) throws -> Bool {
    while true {
      switch try ask("\(question) \(suggestion ? "[Y/n]" : "[y/N]") ").lowercased() {
      case "": return suggestion
      case "y", "yes": return true
      case "n", "no": return false
      default: continue
      }
    }
  }
}
