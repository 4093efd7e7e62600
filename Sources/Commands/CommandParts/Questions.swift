import Domain
package import SystemIO
package import Terminal

/// Asks the user on standard error, and reads one line per answer from standard input.
package final class Questions {
  private let input: any Input
  private let errors: any Output
  private let interruption: Interruption
  private let areAllowed: Bool
  /// Input after the last answer.
  private var read: [UInt8] = []
  /// Whether standard input has ended during an offer.
  private var hasEnded = false

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

  // MARK: - Offers

  /// Shows a question that may be answered while the program waits for something else, with `accepted(before:)`.
  package func offer(_ question: String) {
    input.discardTyped()
    try? errors.write(question.utf8)
  }

  /// The answer to an offer; nil when the deadline passes first. After the end of standard input it only waits.
  ///
  /// - Throws: `Interrupted` for a signal.
  package func accepted(before deadline: Instant) throws -> String? {
    while true {
      if let line = nextLine() { return Self.trimmed(line) }
      if hasEnded {
        if try waitReadable([interruption.number], until: deadline)[0] { throw Interrupted() }
        return nil
      }
      guard try input.isReadable(until: deadline, interruption) else { return nil }
      let bytes = try input.read(until: interruption)
      hasEnded = bytes.isEmpty || read.count >= 1 << 16
      read += bytes
    }
  }

  /// Ends an offer that nobody has accepted. What was typed by then must not go to the shell.
  package func withdraw() {
    input.discardTyped()
    errors.write(line: "")
  }

  // MARK: -

  private func nextLine() -> String? {
    guard let end = read.firstIndex(of: 0x0A) else { return nil }
    defer { read.removeSubrange(...end) }
    return String(decoding: read[..<end], as: UTF8.self)
  }

  private func answer(to question: String, isTrimmed: Bool = true) throws -> String {
    // Input from before the question does not answer it.
    input.discardTyped()
    try? errors.write(question.utf8)
    while true {
      if let answer = nextLine() {
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
    guard areAllowed else { throw Self.needsConfirmation }
    while true {
      switch try answer(to: "\(question) \(Self.choice(suggestion)) ").lowercased() {
      case "": return suggestion
      case "y", "yes": return true
      case "n", "no": return false
      default: continue
      }
    }
  }

  /// Asks until the answer is yes, no or another key. On a terminal a single key answers.
  ///
  /// - Parameter keys: the other keys, in lower case.
  /// - Returns: `y`, `n` or one of `keys`; for Enter the suggestion.
  package func confirm(_ question: String, suggestion: Bool, keys: Set<Character>) throws -> Character {
    guard areAllowed else { throw Self.needsConfirmation }
    while true {
      guard let key = try press("\(question) \(Self.choice(suggestion)) ", keys: keys.union(["y", "n"])) else {
        return suggestion ? "y" : "n"
      }
      if key == "y" || key == "n" || keys.contains(key) { return key }
    }
  }

  private static var needsConfirmation: CommandFailure { CommandFailure(.usage, "needs confirmation; use --yes") }

  private static func choice(_ suggestion: Bool) -> String { suggestion ? "[Y/n]" : "[y/N]" }

  private static func trimmed(_ text: String) -> String {
    String(text.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
  }
}
