package import Domain
import Glibc

/// A system call that failed: which, on what, and the kernel's reason.
package struct SystemError: Failure, Equatable {
  /// What was tried, as a verb for people: `open`, `read`, `connect`.
  package let operation: String
  /// The path or address that it was tried on; empty where there is none.
  package let subject: String
  /// The `errno` value.
  package let code: Int32

  package init(_ operation: String, _ subject: String = "", code: Int32 = errno) {
    self.operation = operation
    self.subject = subject
    self.code = code
  }

  /// The kernel's words for `code`.
  package var reason: String { String(cString: strerror(code)) }

  package var exitStatus: ExitStatus {
    switch code {
    case ENOENT: .noInput
    case EACCES, EPERM: .noPermission
    default: .inputOutput
    }
  }

  package var description: String {
    subject.isEmpty ? "cannot \(operation): \(reason)" : "cannot \(operation) \(subject): \(reason)"
  }
}

/// Calls until it is not interrupted by a signal; a result of -1 throws.
package func check<Result: SignedInteger>(
  _ operation: String, _ subject: @autoclosure () -> String = "", _ call: () -> Result
) throws(SystemError) -> Result {
  while true {
    let result = call()
    if result != -1 { return result }
    let code = errno
    if code != EINTR { throw SystemError(operation, subject(), code: code) }
  }
}
