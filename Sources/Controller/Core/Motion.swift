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

  /// The slowest that can be configured.
  static let slowest = MotionProfile(travel: Inching.duration, limit: Inching.limit)

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
package struct Inching: Sendable {
  package static let duration: Int64 = 20_000
  package static let pulses: Int64 = 40
  /// The longest that riders' programs wait for the end of a motion.
  static let limit: Int64 = 60_000

  private var done: Int64 = 0
  private var inches: Int64 = 0

  init() {}

  var isDone: Bool { done >= Inching.duration }

  /// What the servo is to do next, one tick's worth later at the most; nil while it is to rest.
  mutating func advance(by time: Int64, toward end: Double) -> ServoOrder.Action? {
    done += min(time, MotionProfile.tick)
    if isDone { return .move(to: end) }
    guard done * Inching.pulses >= inches * Inching.duration else { return nil }
    inches += 1
    return .inch(toward: end)
  }
}

/// A way between two places: slow, fast, slow. Places: 0 closed, 1 open. Times in milliseconds.
struct Leg: Sendable {
  /// How far a step backs off from what is in its way, as a share of the whole way.
  static let retreat = 0.05

  /// Where the step set out. `from` lies behind it where the leg is the last part of a way.
  let start: Double
  let from: Double
  let to: Double
  let travel: Int64
  /// It counts ticks and not time, so that a pause makes a motion late and never fast.
  private var done: Int64 = 0

  private init(start: Double, from: Double, to: Double, travel: Int64, done: Int64 = 0) {
    (self.start, self.from, self.to, self.travel, self.done) = (start, from, to, travel, done)
  }

  init(from place: Double, to end: Double, _ profile: MotionProfile) {
    // A servo that was held beyond its ends has a longer way, and takes longer.
    let travel = Int64((Double(profile.travel) * max(1, abs(end - place))).rounded(.up))
    self.init(start: place, from: place, to: end, travel: travel)
  }

  var isDone: Bool { done >= travel }

  var place: Double { isDone ? to : from + (to - from) * MotionProfile.progress(at: share) }

  private var share: Double { Double(done) / Double(travel) }

  mutating func advance(by time: Int64) { done += min(time, MotionProfile.tick) }

  /// The same way, slowing down from now on: it is the last part of the ramp, brought forward.
  var braked: Leg {
    let ramp = MotionProfile.ramp
    let end = share < ramp ? 1 - share : max(share, 1 - ramp)
    let done = Int64((end * Double(travel)).rounded(.up))
    let from = place - (to - from) * MotionProfile.progress(at: Double(done) / Double(travel))
    return Leg(start: start, from: from, to: from + to - self.from, travel: travel, done: done)
  }

  /// A little way back, but not past where the step set out; nil where it has not left that place.
  ///
  /// In the time of one ramp the speed stays far below the profile's.
  func retreat(_ profile: MotionProfile) -> Leg? {
    let way = min(Leg.retreat, abs(place - start))
    guard way > 0 else { return nil }
    return Leg(
      start: place, from: place, to: place + (start < place ? -way : way),
      travel: Int64(Double(profile.travel) * MotionProfile.ramp))
  }
}

/// One motion of one step, from the moment it began until the step is at rest. Times in milliseconds, on the
/// controller's clock.
struct Motion: Sendable {
  private enum Course {
    /// The place is known all the way.
    case leg(Leg)
    /// Nobody knows the place.
    case inching(Inching)
  }

  /// How long the switch at an end may take to see the step.
  static let endPatience: Int64 = 500

  /// What it is for: the last one, if it was turned round.
  private(set) var undertaking: Undertaking
  /// Whose commands it obeys: all are told how it ends.
  private(set) var senders: [Sender]
  private let profile: MotionProfile
  private var course: Course
  /// When it began, or turned round, or began to back off.
  private var began: Int64
  /// The last tick.
  private var turned: Int64
  /// When the order was given that the servo has not reported on yet.
  var ordered: Int64?
  /// Whether it slows down, to go the other way then.
  private(set) var isTurning = false
  /// What was in the way, once it backs off from that.
  private(set) var obstacle: Hindrance?
  /// Whether the last order of the course was given.
  private(set) var isAtEnd = false
  /// Since when the servo has been at the end, and the switch there does not see the step.
  private var waitsForEnd: Int64?

  /// - Parameter place: where the servo is, 0 closed, 1 open; nil when nobody knows.
  init(_ undertaking: Undertaking, from place: Double?, at clock: Int64, _ profile: MotionProfile) {
    self.undertaking = undertaking
    self.profile = profile
    senders = undertaking.sender.map { [$0] } ?? []
    began = clock
    turned = clock
    course = .inching(Inching())
    if let place { course = .leg(Leg(from: place, to: target.extension, profile)) }
  }

  var step: StepID { undertaking.step }
  var target: Command.Move.Target { undertaking.target }
  /// Whether the step goes outward, or is about to.
  var extends: Bool { target == .open || isTurning }

  /// Where the step is by now, as far as that is known.
  var place: Double? { if case .leg(let leg) = course { leg.place } else { nil } }

  private var limit: Int64 {
    switch course {
    case .leg: profile.limit
    case .inching: min(Inching.duration + profile.limit, Inching.limit)
    }
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
    if let waitsForEnd {
      if clock - waitsForEnd <= Motion.endPatience { return nil }
      return (.endMissed, "the servo is at its end, and the switch there does not see the step")
    }
    return clock - began > limit ? (.timeout, "the motion took longer than \(limit) ms") : nil
  }

  /// What the servo is to do next, one tick's worth further at the most; nil while it is to rest.
  mutating func advance(by time: Int64) -> ServoOrder.Action? {
    guard !isAtEnd else { return nil }
    switch course {
    case .leg(var leg):
      leg.advance(by: time)
      course = .leg(leg)
      if leg.isDone, isTurning {
        setOut(from: leg.place)
      } else if leg.isDone {
        isAtEnd = true
      }
      return .move(to: leg.place)
    case .inching(var approach):
      let action = approach.advance(by: time, toward: target.extension)
      isAtEnd = approach.isDone
      course = .inching(approach)
      return action
    }
  }

  private mutating func setOut(from place: Double) {
    course = .leg(Leg(from: place, to: target.extension, profile))
    (isTurning, isAtEnd, waitsForEnd, began) = (false, false, nil, turned)
  }

  /// Whether it may go to the other end for this device: for the one whose command it obeys, while nothing is in its
  /// way.
  func canTurnRound(to end: Command.Move.Target, for device: VerificationKey) -> Bool {
    undertaking.sender?.device == device && end != target && obstacle == nil
  }

  /// Goes to the other end: slows down first, and never goes faster than the profile.
  mutating func turnRound(for undertaking: Undertaking, at clock: Int64) {
    self.undertaking = undertaking
    senders += undertaking.sender.map { [$0] } ?? []
    switch course {
    case .leg(let leg) where leg.isDone: setOut(from: leg.place)
    // It slows down already. Once it stands, it sets out for the end that is wanted by then.
    case .leg where isTurning: break
    case .leg(let leg):
      course = .leg(leg.braked)
      isTurning = true
    case .inching:
      course = .inching(Inching())
      (isAtEnd, waitsForEnd) = (false, nil)
    }
    began = clock
  }

  /// Goes back a little, away from what is in the way.
  ///
  /// - Returns: false where nobody knows the place, or the step has not left where it set out.
  mutating func backOff(from obstacle: Hindrance, at clock: Int64) -> Bool {
    guard self.obstacle == nil, case .leg(let leg) = course, let retreat = leg.retreat(profile) else { return false }
    course = .leg(retreat)
    self.obstacle = obstacle
    (isTurning, isAtEnd, waitsForEnd, began) = (false, false, nil, clock)
    return true
  }

  mutating func waitForEnd(since clock: Int64) { waitsForEnd = clock }
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
