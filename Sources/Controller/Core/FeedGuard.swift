import Domain
package import Geography
import StepProtocol
package import Traffic

/// What a vehicle needs to judge a traffic feed.
package struct TrafficRules: Sendable, Equatable {
  /// Where the vehicle's place comes from.
  package enum Source: Sendable, Equatable {
    /// It was surveyed: metres that it may be off, and the heading in radians clockwise from north.
    case given(Coordinate, error: Double, heading: Double)
    /// A receiver says it. The heading is that of the last drive, or this one before there was any.
    case receiver(heading: Double?)
  }

  package var source: Source
  /// Whether the vehicle is looked for in the feed, near that place.
  package var isInFeed: Bool
  /// Metres.
  package var length: Double
  package var width: Double
  package var steps: [TrafficGuard.StepPlace]
  /// Whether a step that the guard cannot see stays closed.
  package var refusesBlind: Bool

  package init(
    source: Source, isInFeed: Bool = false, length: Double, width: Double, steps: [TrafficGuard.StepPlace],
    refusesBlind: Bool = false
  ) {
    self.source = source
    self.isInFeed = isInFeed
    self.length = length
    self.width = width
    self.steps = steps
    self.refusesBlind = refusesBlind
  }
}

/// What comes from the feed and from the receiver.
package enum RoadEvent: Sendable, Equatable {
  /// A bridge has taken the connection. The time is what the clock of the messages shows when the controller's shows 0:
  /// seconds since 1970.
  case connected(origin: Double)
  /// A frame, and when it came, milliseconds on the controller's clock.
  case frame(FeedFrame, clock: Int64)
  /// There is no connection, or none any more.
  case lost
  /// What a receiver says; nil where it has no fix.
  case fix(VehiclePlace.Fix?)
}

/// What a bridge is asked for, and for how long.
package struct WatchedRoad: Sendable, Equatable {
  /// On the controller's clock, milliseconds.
  package let until: Int64
  package let position: Coordinate
  /// Metres that the position may be off.
  package let error: Double
}

/// The guard that a traffic feed gives: it holds a step back while something comes towards it.
///
/// It never opens anything. A feed that lies, stands or is lost makes it hold, or makes it blind.
package struct FeedGuard: MotionGuard, Sendable {
  /// For how long the feed is watched after somebody asked, milliseconds: all day would be 100 to 300 kB/s.
  package static let patience: Int64 = 60_000
  /// How long a feed may take to begin, milliseconds. Meanwhile a step waits, also where a blind guard allows it: who
  /// asks and commands at once would always be faster than the feed.
  package static let beginning: Int64 = 2_000
  /// Nearer things than that are in every feed of the vehicle's road, metres.
  private static let farAway = 50_000.0

  private let rules: TrafficRules
  private var place: VehiclePlace
  private var traffic: TrafficGuard?
  private var offset = ClockOffset()
  /// Seconds since 1970 when the controller's clock shows 0, of the connection that frames came from last.
  private var origin = 0.0
  /// The origin of a newer connection, from which no frame has come yet.
  private var nextOrigin: Double?
  private var until: Int64 = .min
  /// Since when it has been watched without a pause; nil once a connection was lost, or refused.
  private var begun: Int64?
  private var hasNoted = false

  package init(_ rules: TrafficRules) {
    self.rules = rules
    place =
      switch rules.source {
      case .given(let position, let error, let heading):
        VehiclePlace(
          length: rules.length, width: rules.width, given: .init(position: position, heading: heading, error: error),
          heading: nil, isInFeed: rules.isInFeed)
      case .receiver(let heading):
        VehiclePlace(
          length: rules.length, width: rules.width, given: nil, heading: heading, isInFeed: rules.isInFeed)
      }
  }

  /// Somebody with a valid token asks: the feed is watched from now on.
  ///
  mutating func arm(at clock: Int64) {
    if clock >= until { begun = clock }
    until = clock + Self.patience
  }

  func isWatching(at clock: Int64) -> Bool { clock < until }

  /// Until when the feed is watched, on the controller's clock, and where; nil while it is not, or while the vehicle's
  /// place is not known even roughly.
  func wish(at clock: Int64) -> WatchedRoad? {
    guard clock < until, let here = place.rough(at: seconds(clock)) else { return nil }
    return WatchedRoad(until: until, position: here.position, error: here.error)
  }

  /// - Returns: whether everything in the feed is so far away that its axes may be swapped; once for each connection.
  mutating func take(_ event: RoadEvent, at clock: Int64) -> Bool {
    switch event {
    case .connected(let origin):
      nextOrigin = origin
      hasNoted = false
    // What was on its way stays known for as long as the guard looks ahead.
    case .lost: begun = nil
    case .fix(let fix): place.take(fix, at: seconds(clock))
    case .frame(let frame, let arrival): return take(frame, at: arrival)
    }
    return false
  }

  private mutating func take(_ frame: FeedFrame, at clock: Int64) -> Bool {
    if let next = nextOrigin.take() { (origin, offset) = (next, ClockOffset()) }
    let time = origin + seconds(clock)
    if let bridge = frame.bridge { offset.take(bridge, at: time) }
    place.look(in: frame, at: seconds(clock))
    settle(at: clock)
    // A bridge that says its time will soon have said enough. Of another one the clock is taken to be right.
    let unknown = ClockOffset.Estimate(offset: 0, uncertainty: .infinity)
    traffic?.take(frame, at: time, clock: frame.bridge == nil ? .none : offset.estimate ?? unknown)
    guard !hasNoted, !frame.objects.isEmpty, let here = place.rough(at: seconds(clock))?.position,
      frame.objects.allSatisfy({ $0.position.distance(to: here) > Self.farAway })
    else { return false }
    hasNoted = true
    return true
  }

  private mutating func settle(at clock: Int64) {
    guard let now = place.current(at: seconds(clock)) else { return }
    if traffic == nil {
      traffic = TrafficGuard(
        .init(
          position: now.position, heading: now.heading, length: rules.length, width: rules.width, steps: rules.steps,
          error: now.error))
    } else {
      traffic?.place(at: now.position, heading: now.heading, error: now.error)
    }
  }

  private func seconds(_ clock: Int64) -> Double { Double(clock) / 1000 }

  // MARK: - Judging

  /// What is known now about a step.
  func verdict(for step: StepID, at clock: Int64) -> TrafficGuard.Verdict {
    guard clock < until else { return .blind(.silent) }
    guard let traffic else { return .blind(place.rough(at: seconds(clock)) == nil ? .place : .silent) }
    let verdict = traffic.verdict(for: step, at: origin + seconds(clock))
    // What was on its way, as seen from where the vehicle was, still comes.
    guard !verdict.holds, place.current(at: seconds(clock)) == nil else { return verdict }
    return .blind(place.blindness)
  }

  /// What `verdict` says, as the word that riders are told.
  func watch(of step: StepID, at clock: Int64) -> Watch {
    switch verdict(for: step, at: clock) {
    case .clear: .clear
    case .approaching: .approaching
    case .obstructed: .obstructed
    case .blind: .blind
    }
  }

  /// Only an opening that has not begun is held back: a step that is under way follows the rules of motion.
  package func clearance(for motion: GuardedMotion, at time: ControllerTime) -> Clearance {
    guard motion.target == .open, !motion.hasBegun else { return .go }
    switch verdict(for: motion.step, at: time.clock) {
    case .clear: return .go
    case .approaching(let category, let seconds):
      let oncoming = Oncoming(category: category.rawValue, arrival: Int64((seconds * 1000).rounded()))
      return .hold(
        Hindrance(refusal: Refusal(.approaching, oncoming: oncoming), "\(category.phrase) comes towards the step"))
    case .obstructed(let category):
      return .hold(Hindrance("\(category.phrase) stands at the step"))
    case .blind(let reason):
      let isBeginning = begun.map { time.clock - $0 < Self.beginning } ?? false
      return rules.refusesBlind || isBeginning
        ? .hold(Hindrance(refusal: Refusal(.blind), "the guard is blind: \(reason.rawValue)")) : .go
    }
  }

  /// Why a step opens that the guard cannot see; nil where it can.
  func blindness(at step: StepID, at clock: Int64) -> TrafficGuard.Blindness? {
    if case .blind(let reason) = verdict(for: step, at: clock) { reason } else { nil }
  }
}
