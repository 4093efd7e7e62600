import Domain
import Terminal

/// The rider at a step: what a command to move it rests on.
struct Presence {
  let step: Step
  let proof: Proof
  /// When the last thing that supports it was heard or read.
  let found: ContinuousClock.Instant
  /// For people: `at the left step: located, near, 0.9 m, 11 packets (beacon)`
  let evidence: String
}

extension CommandFailure {
  static func notLocated(_ reason: String, hint: String? = nil) -> CommandFailure {
    CommandFailure(.notLocated, "not located: \(reason)", hint: hint)
  }
}
