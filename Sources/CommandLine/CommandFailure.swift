package import Domain
package import Encoding

/// The end of a command that did not do what it was asked: one line for people, perhaps a hint, and a status.
package struct CommandFailure: Failure {
  package let exitStatus: ExitStatus
  /// Lower case, no full stop: what, where.
  package let message: String
  /// What to do.
  package let hint: String?
  /// What else a program is told, where the command prints JSON.
  package let details: [JSON.Member]

  package init(_ status: ExitStatus, _ message: String, hint: String? = nil, details: [JSON.Member] = []) {
    exitStatus = status
    self.message = message
    self.hint = hint
    self.details = details
  }

  package var description: String { message }
}

/// A signal ended the command before it had done anything that would have to be told.
package struct Interrupted: Failure {
  /// Nil for the one that is waiting.
  package let signal: Int32?

  package init(signal: Int32? = nil) { self.signal = signal }

  package var exitStatus: ExitStatus { .failure }
  package var description: String { "interrupted" }
  package var isInterruption: Bool { true }
}

/// The command has said all there is to say, and ends with another status than 0.
package struct Ended: Error {
  package let status: ExitStatus

  package init(_ status: ExitStatus) { self.status = status }
}

/// A failure of which the command has printed the object for programs already.
package struct Told: Error {
  package let failure: any Failure

  package init(_ failure: any Failure) { self.failure = failure }
}

extension Failure {
  /// What a program is told of it: `outcome` and the details, then what every failure has.
  ///
  /// - Parameter members: what else there is to say; of a name that is there twice, this one counts.
  package func object(_ members: [JSON.Member] = []) -> JSON {
    let details = details.filter { detail in !members.contains { $0.name == detail.name } }
    return .object(
      [.init("outcome", .string(exitStatus.isOutcome ? exitStatus.word : "failed"))] + members + details + [
        .init("code", .string(exitStatus.word)), .init("message", .string(description)),
        .init("hint", hint.map { .string($0) } ?? .null), .init("exit", .integer(Int64(exitStatus.rawValue))),
      ])
  }
}
