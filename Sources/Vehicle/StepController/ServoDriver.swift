package import Domain

/// Moves the steps.
///
/// `execute` returns at once: a slow output must not delay another step's motion. Each order gets one report. The
/// orders of one step are executed one after the other. Nothing moves before the first `move` or `inch`.
package protocol ServoDriver {
  func execute(_ order: ServoOrder)
}

package struct ServoOrder: Sendable, Equatable {
  package enum Action: Sendable, Equatable {
    /// A motion is about to begin: set up the output. The report is `ready`.
    case prepare(from: Position, to: Position)
    /// Turn to this place and hold it: 0 closed, 1 open.
    case move(to: Double)
    /// Turn towards this place for one pulse, then rest: the servo turns a few degrees from wherever it is.
    case inch(toward: Double)
    /// Stop driving the step, for example after a fault. The step stays where it is.
    case release
  }

  package let step: StepID
  /// Increases with each order.
  package let number: Int
  package let action: Action

  package init(step: StepID, number: Int, action: Action) {
    self.step = step
    self.number = number
    self.action = action
  }
}

/// The result of an order.
package struct ServoReport: Sendable, Equatable {
  package enum Outcome: Sendable, Equatable {
    /// The output is set up. The place is where the servo is held now; nil if the servo is not driven.
    case ready(at: Double?)
    case done
    case failed(ServoError)
  }

  package let step: StepID
  /// The number of the order.
  package let number: Int
  package let outcome: Outcome

  package init(_ order: ServoOrder, _ outcome: Outcome) {
    step = order.step
    number = order.number
    self.outcome = outcome
  }
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

  var fault: Fault {
    switch self {
    case .obstructed: .obstructed
    case .failed: .driver
    }
  }
}
