import Domain
import StepProtocol

/// How a step moves: its duration, and its speed at each moment. Times are in milliseconds.
package struct MotionProfile: Sendable, Equatable {
  /// The share of the time for speeding up, and the same for slowing down.
  static let ramp = 0.25
  /// Time between two places of the servo: one 50 Hz frame, because the servo reads no more often.
  package static let tick: Int64 = 20
  /// How long a motion may go on without a tick of the controller, or without the servo's report on its last place. The
  /// servo holds that place meanwhile, so ten frames are safe; a longer gap is a fault.
  package static let longestGap: Int64 = 200

  /// Time from one end to the other.
  package let travel: Int64
  /// When a motion that has not ended is given up.
  package let limit: Int64

  package init(travel: Int64, limit: Int64) {
    self.travel = travel
    self.limit = limit
  }

  /// The slowest profile that can be configured.
  static let slowest = MotionProfile(travel: Inching.duration, limit: Inching.limit)

  /// The longest distance between two successive places, as a share of the whole way.
  package var longestStride: Double {
    min(1, Double(MotionProfile.tick) / Double(travel) / (1 - MotionProfile.ramp))
  }

  /// The share of the way after a share of the time: a trapezoid of speed, so that the step neither jerks at its start
  /// nor hits its end.
  static func progress(at time: Double) -> Double {
    let time = min(max(time, 0), 1)
    let top = 1 / (1 - ramp)
    if time < ramp { return top * time * time / (2 * ramp) }
    if time <= 1 - ramp { return top * (time - ramp / 2) }
    return 1 - top * (1 - time) * (1 - time) / (2 * ramp)
  }
}

/// Brings a step from an unknown place to an end. Times are in milliseconds.
///
/// A servo turns at full speed to any pulse that it gets, so a continuous pulse would throw the step. Therefore the
/// servo gets single pulses with pauses. At each pulse it turns a few degrees towards the requested end, never the
/// other way, and then rests. After enough pulses for the whole way, the pulse stays on. The approach takes as long as
/// the slowest travel that can be configured.
package struct Inching: Sendable {
  package static let duration: Int64 = 20_000
  package static let pulses: Int64 = 40
  /// The longest time that riders' programs wait for the end of a motion.
  static let limit: Int64 = 60_000

  private var done: Int64 = 0
  private var inches: Int64 = 0

  init() {}

  var isDone: Bool { done >= Inching.duration }

  /// The servo's next action, one tick's worth at most; nil while the servo rests.
  mutating func advance(by time: Int64, toward end: Double) -> ServoOrder.Action? {
    done += min(time, MotionProfile.tick)
    if isDone { return .move(to: end) }
    guard done * Inching.pulses >= inches * Inching.duration else { return nil }
    inches += 1
    return .inch(toward: end)
  }
}

/// A motion between two places: slow, fast, slow. Places: 0 closed, 1 open. Times are in milliseconds.
struct Leg: Sendable {
  /// How far a step backs off from an obstacle, as a share of the whole way.
  static let retreat = 0.05

  /// Where the step started. `from` lies behind it if the leg is the last part of a way.
  let start: Double
  let from: Double
  let to: Double
  let travel: Int64
  /// Counts ticks and not time, so that a pause makes a motion late, but never fast.
  private var done: Int64 = 0

  private init(start: Double, from: Double, to: Double, travel: Int64, done: Int64 = 0) {
    (self.start, self.from, self.to, self.travel, self.done) = (start, from, to, travel, done)
  }

  init(from place: Double, to end: Double, _ profile: MotionProfile) {
    // A servo that was held beyond its ends has farther to go, so the travel time grows.
    let travel = Int64((Double(profile.travel) * max(1, abs(end - place))).rounded(.up))
    self.init(start: place, from: place, to: end, travel: travel)
  }

  var isDone: Bool { done >= travel }

  var place: Double { isDone ? to : from + (to - from) * MotionProfile.progress(at: share) }

  private var share: Double { Double(done) / Double(travel) }

  mutating func advance(by time: Int64) { done += min(time, MotionProfile.tick) }

  /// The same leg, slowing down from now on: the last part of the ramp, brought forward.
  var braked: Leg {
    let ramp = MotionProfile.ramp
    let end = share < ramp ? 1 - share : max(share, 1 - ramp)
    let done = Int64((end * Double(travel)).rounded(.up))
    let from = place - (to - from) * MotionProfile.progress(at: Double(done) / Double(travel))
    return Leg(start: start, from: from, to: from + to - self.from, travel: travel, done: done)
  }

  /// A short way back, but not past the start of the step; nil if the step has not left its start.
  ///
  /// It takes the time of one ramp, so the speed stays far below the profile's.
  func retreat(_ profile: MotionProfile) -> Leg? {
    let way = min(Leg.retreat, abs(place - start))
    guard way > 0 else { return nil }
    return Leg(
      start: place, from: place, to: place + (start < place ? -way : way),
      travel: Int64(Double(profile.travel) * MotionProfile.ramp))
  }
}

/// One motion of one step, from its beginning until the step is at rest. Times are in milliseconds, on the controller's
/// clock.
struct Motion: Sendable {
  private enum Course {
    /// The place is known all the way.
    case leg(Leg)
    /// The place is unknown.
    case inching(Inching)
  }

  /// How long the switch at an end may take to see the step.
  static let endPatience: Int64 = 500

  /// The reason for the motion; after it turned round, the newer reason.
  private(set) var undertaking: Undertaking
  /// The senders of its commands: each is told how it ends.
  private(set) var senders: [Sender]
  private let profile: MotionProfile
  private var course: Course
  /// When it began, turned round, or began to back off.
  private var began: Int64
  /// The last tick.
  private var turned: Int64
  /// When the order was given that the servo has not yet reported on.
  var ordered: Int64?
  /// Whether it slows down in order to turn round.
  private(set) var isTurning = false
  /// The obstacle, once the step backs off from it.
  private(set) var obstacle: Hindrance?
  /// Whether the last order of the course was given.
  private(set) var isAtEnd = false
  /// When the servo reached the end, while the switch there does not see the step.
  private var waitsForEnd: Int64?

  /// - Parameter place: where the servo is, 0 closed, 1 open; nil if unknown.
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
  /// Whether the step moves outward, or is about to.
  var extends: Bool { target == .open || isTurning }

  /// The present place of the step, if it is known.
  var place: Double? { if case .leg(let leg) = course { leg.place } else { nil } }

  private var limit: Int64 {
    switch course {
    case .leg: profile.limit
    case .inching: min(Inching.duration + profile.limit, Inching.limit)
    }
  }

  /// Notes a tick. It does not advance the motion.
  ///
  /// - Returns: the time since the tick before.
  mutating func turn(at clock: Int64) -> Int64 {
    defer { turned = clock }
    return clock - turned
  }

  /// Why the motion cannot go on.
  ///
  /// - Parameter gap: the time since the tick before.
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

  /// The servo's next action, one tick's worth at most; nil while the servo rests.
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

  /// Whether this device may turn the motion round: only the device whose command it obeys, and only while nothing is
  /// in the way.
  func canTurnRound(to end: Command.Move.Target, for device: VerificationKey) -> Bool {
    undertaking.sender?.device == device && end != target && obstacle == nil
  }

  /// Turns towards the other end: slows down first, and never goes faster than the profile.
  mutating func turnRound(for undertaking: Undertaking, at clock: Int64) {
    self.undertaking = undertaking
    senders += undertaking.sender.map { [$0] } ?? []
    switch course {
    case .leg(let leg) where leg.isDone: setOut(from: leg.place)
    // It already slows down. Once it stands, it starts towards the end that is then wanted.
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

  /// Moves back a little, away from an obstacle.
  ///
  /// - Returns: false if the place is unknown, or the step has not left its start.
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
