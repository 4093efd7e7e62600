import Domain
import StepProtocol

/// How a step is moved: for how long, and how fast at which moment. Times in milliseconds.
package struct MotionProfile: Sendable, Equatable {
  /// The share of the time that speeding up takes, and slowing down again.
  static let ramp = 0.25
  /// Between two positions of the servo: one 50 Hz frame, because the servo reads no more often.
  package static let tick: Int64 = 20
  /// For how long a motion may go on without a turn of the controller, or without the servo having taken its last
  /// position. The servo holds that position meanwhile, so ten frames are no danger; a longer gap is a fault.
  package static let longestGap: Int64 = 200

  /// From one end to the other.
  package let travel: Int64
  /// When a motion that has not ended is given up.
  package let limit: Int64

  package init(travel: Int64, limit: Int64) {
    self.travel = travel
    self.limit = limit
  }

  /// The longest way between two positions that follow one another, as a share of the whole way.
  package var longestStride: Double {
    min(1, Double(MotionProfile.tick) / Double(travel) / (1 - MotionProfile.ramp))
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

/// How a step whose place nobody knows is brought to an end. Times in milliseconds.
///
/// A servo turns at full speed to whatever pulse it is given, so the first pulse would throw the step. Therefore it
/// gets single pulses with pauses: at each it turns a few degrees towards the end that the rider asked for, never the
/// other way, and rests. After as many as the whole way can take, the pulse stays on. That takes as long as the
/// slowest travel that can be configured.
package enum Approach {
  package static let duration: Int64 = 20_000
  package static let pulses: Int64 = 40
  /// The longest that riders' programs wait for the end of a motion.
  static let limit: Int64 = 60_000
}

/// One motion of one step, from the moment it began. Times in milliseconds, on the controller's clock.
struct Motion: Sendable {
  let undertaking: Undertaking
  /// Where the servo was when it began, 0 closed, 1 open; nil when nobody knows.
  let origin: Double?
  let began: Int64
  let travel: Int64
  let limit: Int64
  /// The last tick.
  private(set) var turned: Int64
  /// How much of `travel` is done. It counts ticks and not time, so that a pause makes a motion late and never fast.
  private var done: Int64 = 0
  private var inches: Int64 = 0
  /// When the order was given that the servo has not reported on yet.
  var ordered: Int64?
  private(set) var isAtEnd = false

  init(_ undertaking: Undertaking, from origin: Double?, at clock: Int64, _ profile: MotionProfile) {
    self.undertaking = undertaking
    self.origin = origin
    began = clock
    turned = clock
    let target = undertaking.move.target.extension
    if let origin {
      // A servo that was held beyond its ends has a longer way, and takes longer.
      travel = Int64((Double(profile.travel) * max(1, abs(target - origin))).rounded(.up))
      limit = profile.limit
    } else {
      travel = Approach.duration
      limit = min(Approach.duration + profile.limit, Approach.limit)
    }
  }

  var target: Double { undertaking.move.target.extension }

  /// Where the step is by now, as far as that is known.
  var place: Double? {
    guard let origin else { return nil }
    return isAtEnd ? target : origin + (target - origin) * MotionProfile.progress(at: Double(done) / Double(travel))
  }

  /// Takes note of a tick. It advances nothing.
  ///
  /// - Returns: how long it is since the one before.
  mutating func turn(at clock: Int64) -> Int64 {
    defer { turned = clock }
    return clock - turned
  }

  /// Why the motion cannot go on.
  ///
  /// - Parameter gap: how long it is since the tick before.
  func failure(at clock: Int64, gap: Int64) -> (Fault, String)? {
    let silence = clock - (ordered ?? clock)
    if gap > MotionProfile.longestGap { return (.timeout, "the controller was held up for \(gap) ms") }
    if silence > MotionProfile.longestGap { return (.driver, "the servo did not answer for \(silence) ms") }
    if clock - began > limit { return (.timeout, "the motion took longer than \(limit) ms") }
    return nil
  }

  /// What the servo is to do next, one tick's worth further at the most; nil while it is to rest.
  mutating func advance(by time: Int64) -> ServoOrder.Action? {
    done += min(time, MotionProfile.tick)
    if done >= travel {
      isAtEnd = true
      return .move(to: target)
    }
    if let place { return .move(to: place) }
    guard done * Approach.pulses >= inches * travel else { return nil }
    inches += 1
    return .inch(toward: target)
  }
}

extension Command.Move.Target {
  /// 0 closed, 1 open.
  var `extension`: Double { self == .open ? 1 : 0 }
  var position: Position { self == .open ? .open : .close }
}

extension Position {
  /// 0 closed, 1 open.
  var `extension`: Double? {
    switch self {
    case .open: 1
    case .close: 0
    case .unknown: nil
    }
  }
}
