/// What a command's end says to a script. `stepctl(1)` lists the same.
///
/// From 64 on they are those of sysexits.h, which shells and mail systems have used for decades.
package enum ExitStatus: Int32, CaseIterable, Sendable {
  case done = 0
  case failure = 1
  case notLocated = 3
  case otherSide = 4
  case refused = 5
  case unconfirmed = 6
  case usage = 64
  case badData = 65
  case noInput = 66
  case unavailable = 69
  case inputOutput = 74
  case noPermission = 77
  case configuration = 78
}

/// The end of a command that did not do what it was asked: one line for people, perhaps a hint, and a status.
package struct CommandFailure: Error {
  package let status: ExitStatus
  /// Lower case, no full stop: what, where.
  package let message: String
  /// What to do.
  package let hint: String?

  package init(_ status: ExitStatus, _ message: String, hint: String? = nil) {
    self.status = status
    self.message = message
    self.hint = hint
  }
}

/// A signal ended the command before it had done anything that would have to be told.
package struct Interrupted: Error {
  package let signal: Int32
}
