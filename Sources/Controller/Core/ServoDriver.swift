package import Domain

/// What moves a step. Nothing of it may move anything before `begin`.
///
/// Called from one thread only. An error ends the motion where it is.
package protocol ServoDriver {
  /// A motion begins.
  mutating func begin(_ step: StepID, from: Position, to: Position) throws(ServoError)
  /// Where the step is to be now: 0 closed, 1 open.
  mutating func move(_ step: StepID, to extension: Double) throws(ServoError)
  /// Stops driving the step, as after a fault. It is left where it stands.
  mutating func release(_ step: StepID)
}

/// Why a servo cannot go on.
package enum ServoError: Error, Equatable, CustomStringConvertible {
  case obstructed
  case failed(String)

  package var description: String {
    switch self {
    case .obstructed: "something is in the way"
    case .failed(let reason): reason
    }
  }
}
