import Domain
package import SystemIO

/// Asks the user on standard error, and reads one line per answer from standard input.
package final class Questions {
  private let input: any Input
  private let errors: any Output
  private let interruption: Interruption
  private let areAllowed: Bool
  /// Input after the last answer.
  private var read: [UInt8] = []

  /// - Parameter areAllowed: false forbids questions, so that a command ends instead of waiting.
  package init(_ streams: StandardStreams, _ interruption: Interruption, areAllowed: Bool = true) {
    input = streams.input
    errors = streams.errors
    self.interruption = interruption
    self.areAllowed = areAllowed
  }

  /// Waits for an answer, and removes blanks around it.
  ///
  /// - Throws: `Interrupted` for a signal, and a `CommandFailure` when nobody can answer.
  package func ask(_ question: String) throws -> String {
    guard areAllowed else {
      throw CommandFailure(.usage, "--no-input forbids this question: \(Self.trimmed(question))")
    }
    return try answer(to: question)
  }

  /// Waits for a secret, which the terminal does not show. Blanks are part of it.
  package func askSecret(_ question: String) throws -> String {
    guard areAllowed else {
      throw CommandFailure(.usage, "--no-input forbids this question: \(Self.trimmed(question))")
    }
    input.show(typed: false)
    defer { input.show(typed: true) }
    let answer = try answer(to: question, isTrimmed: false)
    // The Enter key that ended it was not shown either.
    if input.isTerminal { errors.write(line: "") }
    return answer
  }

  /// Waits for a key on a terminal, or for the first letter of a line from another source.
  ///
  /// - Parameter keys: the accepted keys besides Enter, in lower case. Other keys are ignored.
  /// - Returns: nil for Enter.
  package func press(_ question: String, keys: Set<Character>) throws -> Character? {
    guard areAllowed else { return try ask(question).first }
    guard let keyboard = Keyboard(input) else { return try answer(to: question).lowercased().first }
    input.discardTyped()
    try? errors.write(question.utf8)
    while true {
      if try waitReadable([keyboard.number, interruption.number], until: nil)[1] {
        errors.write(line: "")
        throw Interrupted()
      }
      guard let pressed = keyboard.pressed() else {
        errors.write(line: "")
        throw CommandFailure(.noInput, "no answer: standard input has ended")
      }
      for key in pressed.map({ Character($0.lowercased()) }) where keys.contains(key) || key == "\n" || key == "\r" {
        errors.write(line: keys.contains(key) ? "\(key)" : "")
        return keys.contains(key) ? key : nil
      }
    }
  }

  /// The keys of the terminal during another activity; nil without a terminal.
  package func keyboard() -> Keyboard? { areAllowed ? Keyboard(input) : nil }

  private func answer(to question: String, isTrimmed: Bool = true) throws -> String {
    // Input from before the question does not answer it.
    input.discardTyped()
    try? errors.write(question.utf8)
    while true {
      if let end = read.firstIndex(of: 0x0A) {
        let answer = String(decoding: read[..<end], as: UTF8.self)
        read.removeSubrange(...end)
        // Input from a pipe did not end the question's line on the terminal.
        if !input.isTerminal { errors.write(line: "") }
        return isTrimmed ? Self.trimmed(answer) : answer
      }
      let bytes = try input.read(until: interruption)
      guard !bytes.isEmpty, read.count < 1 << 16 else {
        // The error must begin a line.
        errors.write(line: "")
        throw CommandFailure(.noInput, "no answer: standard input has ended")
      }
      read += bytes
    }
  }

  /// Asks until the answer is yes or no.
  ///
  /// - Parameter suggestion: the result of an empty answer.
  package func confirm(_ question: String, suggestion: Bool) throws -> Bool {
    guard areAllowed else {
      throw CommandFailure(.usage, "needs confirmation; use --yes")
    }
    while true {
      switch try answer(to: "\(question) \(suggestion ? "[Y/n]" : "[y/N]") ").lowercased() {
      case "": return suggestion
      case "y", "yes": return true
      case "n", "no": return false
      default: continue
      }
    }
  }

  private static func trimmed(_ text: String) -> String {
    String(text.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
  }
}
