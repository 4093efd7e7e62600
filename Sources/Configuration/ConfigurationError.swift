import Glibc
import SystemIO

/// What is wrong with a file, a flag or a variable, in words for the person who wrote it.
package struct ConfigurationError: Error, Equatable, CustomStringConvertible {
  /// What has to be done about it, coarsely: programs end with different statuses.
  package enum Kind: Sendable {
    /// The content is wrong.
    case invalid
    /// There is no such file.
    case missing
    /// What was typed on the command line is wrong.
    case usage
    /// The file may not be read, or others may read it who must not.
    case permission
  }

  package let kind: Kind
  /// The file, or the flag (`--timeout`) or variable (`STEPCTL_TIMEOUT`).
  package let path: String
  /// From 1; nil where no line is at fault.
  package let line: Int?
  /// Lower case, without a full stop.
  package let message: String

  package init(_ path: String, line: Int? = nil, _ message: String, kind: Kind = .invalid) {
    self.kind = kind
    self.path = path
    self.line = line
    self.message = message
  }

  init(_ path: String, _ error: SystemError) {
    let kind: Kind
    switch error.code {
    case ENOENT, ENOTDIR: kind = .missing
    case EACCES, EPERM: kind = .permission
    default: kind = .invalid
    }
    self.init(path, "cannot \(error.operation): \(error.reason)", kind: kind)
  }

  /// `vehicle.toml:7: [[steps]] side: expected "left" or "right", found "top"`
  package var description: String {
    line.map { "\(path):\($0): \(message)" } ?? "\(path): \(message)"
  }
}
