public import Domain
public import Encoding

/// The failure of a command: one line for people, perhaps a hint, and an exit status.
public struct CommandFailure: Failure {
  public let exitStatus: ExitStatus
  /// Lower case, no full stop: what failed, and where.
  public let message: String
  /// What the user can do.
  public let hint: String?
  /// Further members for programs, if the command prints JSON.
  public let details: [JSON.Member]

  public init(_ status: ExitStatus, _ message: String, hint: String? = nil, details: [JSON.Member] = []) {
    exitStatus = status
    self.message = message
    self.hint = hint
    self.details = details
  }

  public var description: String { message }
}

/// A signal ended the command before it had done anything worth reporting.
package struct Interrupted: Failure {
  /// Nil for the signal that is pending.
  package let signal: Int32?

  package init(signal: Int32? = nil) { self.signal = signal }

  package var exitStatus: ExitStatus { .failure }
  package var description: String { "interrupted" }
  package var isInterruption: Bool { true }
}

/// The command has printed everything, and ends with a status other than 0.
package struct Ended: Error {
  package let status: ExitStatus

  package init(_ status: ExitStatus) { self.status = status }
}

/// A failure whose JSON object the command has already printed.
package struct Told: Error {
  package let failure: any Failure

  package init(_ failure: any Failure) { self.failure = failure }
}

extension Failure {
  /// The failure's JSON object: `outcome` and the details, then the members of every failure.
  ///
  /// - Parameter members: further members. They replace details of the same name.
  package func object(_ members: [JSON.Member] = []) -> JSON {
    let details = details.filter { detail in !members.contains { $0.name == detail.name } }
    return .object(
      [.init("outcome", .string(exitStatus.isOutcome ? exitStatus.word : "failed"))] + members + details + [
        .init("code", .string(exitStatus.word)), .init("message", .string(description)),
        .init("hint", hint.map { .string($0) } ?? .null), .init("exit", .integer(Int64(exitStatus.rawValue))),
      ])
  }
}
