package import Domain
package import StepProtocol

/// A guard that may delay or end a motion for a reason other than the inputs, such as traffic.
///
/// It is asked before a motion begins and at every tick. It must answer at once, from what it already knows.
package protocol MotionGuard {
  func clearance(for motion: GuardedMotion, at time: ControllerTime) -> Clearance
}

package enum Clearance: Sendable, Equatable {
  case go
  /// Wait: a motion does not begin, or pauses until it may go on.
  case hold(Hindrance)
  /// Stop: a motion does not begin, or ends in a fault.
  case stop(Hindrance)
}

/// Why a motion is not cleared: what the rider is told before or after it begins, and what the log says.
package struct Hindrance: Sendable, Equatable {
  package let refusal: Refusal
  package let fault: Fault
  package let description: String

  /// Whether a motion that it stops backs off.
  var isInTheWay: Bool { refusal.code == .obstructed }

  package init(refusal: Refusal = Refusal(.obstructed), fault: Fault = .obstructed, _ description: String) {
    self.refusal = refusal
    self.fault = fault
    self.description = description
  }
}

/// The motion that a guard judges.
package struct GuardedMotion: Sendable, Equatable {
  package let step: StepID
  package let target: Command.Move.Target
  /// 0 closed, 1 open; nil if unknown.
  package let place: Double?
  package let hasBegun: Bool
}

/// For a vehicle that has only its inputs.
package struct NoGuard: MotionGuard {
  package init() {}

  package func clearance(for motion: GuardedMotion, at time: ControllerTime) -> Clearance { .go }
}
