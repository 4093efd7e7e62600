package import Domain
import Glibc

/// A failed system call: the operation, its subject, and the kernel's reason.
package struct SystemError: Failure, Equatable {
  /// The operation, as a verb for people: `open`, `read`, `connect`.
  package let operation: String
  /// The path or address concerned; empty if there is none.
  package let subject: String
  /// The `errno` value.
  package let code: Int32

  package init(_ operation: String, _ subject: String = "", code: Int32 = errno) {
    self.operation = operation
    self.subject = subject
    self.code = code
  }

  /// The kernel's text for `code`.
  package var reason: String { String(cString: strerror(code)) }

  /// Whether this computer has no way to an address at all, as with IPv4 alone to an address of IPv6. Of a name with
  /// several addresses, the error about another one says more.
  package var isForWantOfWay: Bool { [EADDRNOTAVAIL, ENETUNREACH, EAFNOSUPPORT].contains(code) }

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

/// Repeats the call while a signal interrupts it. A result of -1 throws.
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
