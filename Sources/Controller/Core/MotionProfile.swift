import Domain
import StepProtocol

/// How a step is moved: for how long, and how fast at which moment.
package struct MotionProfile: Sendable, Equatable {
  /// The share of the time that speeding up takes, and slowing down again.
  static let ramp = 0.25
  /// Between two positions of the servo, milliseconds: one 50 Hz frame, because the servo reads no more often.
  package static let tick: Int64 = 20

  /// From one end to the other, milliseconds.
  package let travel: Int64
  /// When a motion that has not ended is given up, milliseconds.
  package let limit: Int64

  package init(travel: Int64, limit: Int64) {
    self.travel = travel
    self.limit = limit
  }

  /// The share of the way that is done after a share of the time: a trapezoid of speed, so that the step neither
  /// jerks at its start nor hits its end.
  static func progress(at time: Double) -> Double {
    let time = min(max(time, 0), 1)
    let top = 1 / (1 - ramp)
    if time < ramp { return top * time * time / (2 * ramp) }
    if time <= 1 - ramp { return top * (time - ramp / 2) }
    return 1 - top * (1 - time) * (1 - time) / (2 * ramp)
  }
}

/// One motion of one step, from the moment it began.
struct Motion: Sendable {
  let origin: Position
  let target: Command.Move.Target
  /// On the controller's clock, milliseconds.
  let began: Int64

  enum State: Equatable {
    /// How far out the step is to be now: 0 closed, 1 open.
    case moving(Double)
    case ended
    case overdue
  }

  func state(at clock: Int64, _ profile: MotionProfile) -> State {
    let elapsed = clock - began
    if elapsed > profile.limit { return .overdue }
    if elapsed >= profile.travel { return .ended }
    let progress = MotionProfile.progress(at: Double(elapsed) / Double(profile.travel))
    return .moving(start + (target.extension - start) * progress)
  }

  /// Where the ramp begins. After an interruption that is not known; the middle is wrong by the least.
  private var start: Double {
    switch origin {
    case .open: 1
    case .close: 0
    case .unknown: 0.5
    }
  }
}

extension Command.Move.Target {
  /// 0 closed, 1 open.
  var `extension`: Double { self == .open ? 1 : 0 }
  var position: Position { self == .open ? .open : .close }
}
