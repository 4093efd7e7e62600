package import Domain

/// What is wrong with a file, a flag or a variable, in words for the person who wrote it.
///
/// A file that cannot be read is a `SystemError`.
package struct ConfigurationError: Failure, Equatable {
  /// The kind of mistake, which determines a program's exit status.
  package enum Kind: Sendable {
    /// The content is wrong.
    case invalid
    /// There is no such vehicle.
    case missing
    /// The command line is wrong.
    case usage
    /// Others may read a file that contains a secret.
    case permission
  }

  package let kind: Kind
  /// The file, flag or variable that is wrong.
  package let path: String
  /// From 1; nil where no line is at fault.
  package let line: Int?
  /// Lower case, without a full stop.
  package let message: String
  package let hint: String?

  package init(
    _ path: String, line: Int? = nil, _ message: String, hint: String? = nil, kind: Kind = .invalid
  ) {
    self.kind = kind
    self.path = path
    self.line = line
    self.message = message
    self.hint = hint
  }

  package var exitStatus: ExitStatus {
    switch kind {
    case .invalid: .configuration
    case .missing: .noInput
    case .usage: .usage
    case .permission: .noPermission
    }
  }

  /// `vehicle.toml:7: [[steps]] side: expected "left" or "right", found "top"`
  package var description: String {
    line.map { "\(path):\($0): \(message)" } ?? "\(path): \(message)"
  }
}

/// `a`, `a or b`, `a, b or c`.
package func alternatives(_ words: [String]) -> String {
  guard let last = words.last, words.count > 1 else { return words.first ?? "" }
  return words.dropLast().joined(separator: ", ") + " or " + last
}
