package import Domain
package import StepProtocol

/// What else than the inputs may hold a motion back or end it, such as traffic.
///
/// It is asked before a motion begins and at every tick, and must answer at once, from what it knows already.
package protocol MotionGuard {
  func clearance(for motion: GuardedMotion, at time: ControllerTime) -> Clearance
}

package enum Clearance: Sendable, Equatable {
  case go
  /// Wait: a motion does not begin, or stands still until it may go on.
  case hold(Hindrance)
  /// A motion does not begin, or ends in a fault.
  case stop(Hindrance)
}

/// Why a motion is not cleared: what the rider is told, before it began or after, and what the log is told.
package struct Hindrance: Sendable, Equatable {
  package let refusal: Refusal
  package let fault: Fault
  package let description: String

  /// Whether a motion that is stopped by it backs off.
  var isInTheWay: Bool { refusal.code == .obstructed }

  package init(refusal: Refusal = Refusal(.obstructed), fault: Fault = .obstructed, _ description: String) {
    self.refusal = refusal
    self.fault = fault
    self.description = description
  }
}

/// What a guard judges.
package struct GuardedMotion: Sendable, Equatable {
  package let step: StepID
  package let target: Command.Move.Target
  /// 0 closed, 1 open; nil when nobody knows.
  package let place: Double?
  package let hasBegun: Bool
}

/// For a vehicle that has nothing but its inputs.
package struct NoGuard: MotionGuard {
  package init() {}

  package func clearance(for motion: GuardedMotion, at time: ControllerTime) -> Clearance { .go }
}
