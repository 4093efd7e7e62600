import Domain
package import Geography
import StepProtocol
package import Traffic

/// What a vehicle needs in order to judge a traffic feed.
package struct TrafficRules: Sendable, Equatable {
  /// How the vehicle's place is known.
  package enum Source: Sendable, Equatable {
    /// Surveyed: its error in metres, and the heading in radians clockwise from north.
    case given(Coordinate, error: Double, heading: Double)
    /// From a receiver. The heading is that of the last drive; before the first drive it is this one.
    case receiver(heading: Double?)
  }

  package var source: Source
  /// Whether to look for the vehicle in the feed, near that place.
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

/// A report from the feed or from the receiver.
package enum RoadEvent: Sendable, Equatable {
  /// A bridge has accepted the connection. The origin is the time on the messages' clock when the controller's clock
  /// shows 0: seconds since 1970.
  case connected(origin: Double)
  /// A frame and its arrival time, milliseconds on the controller's clock.
  case frame(FeedFrame, clock: Int64)
  /// There is no connection, or no longer one.
  case lost
  /// A receiver's report; nil if it has no fix.
  case fix(VehiclePlace.Fix?)
}

/// The place that a bridge is asked to watch, and for how long.
package struct WatchedRoad: Sendable, Equatable {
  /// On the controller's clock, milliseconds.
  package let until: Int64
  package let position: Coordinate
  /// The error of the position, metres.
  package let error: Double
}

/// The guard that uses a traffic feed: it delays a step while something approaches the step.
///
/// It never opens anything. If the feed is wrong, stalled or lost, the guard only holds or is blind.
package struct FeedGuard: MotionGuard, Sendable {
  /// How long the feed is watched after a request, milliseconds. Watching all day would take 100 to 300 kB/s.
  package static let patience: Int64 = 60_000
  /// How long a feed may take to begin, milliseconds. Meanwhile a step waits, even if a blind guard may open it.
  /// Otherwise a rider who asks and commands at once would always be faster than the feed.
  package static let beginning: Int64 = 2_000
  /// Every feed of the vehicle's road has something nearer than this, metres.
  private static let farAway = 50_000.0

  private let rules: TrafficRules
  private var place: VehiclePlace
  private var traffic: TrafficGuard?
  private var offset = ClockOffset()
  /// Seconds since 1970 when the controller's clock shows 0, according to the connection of the last frames.
  private var origin = 0.0
  /// The origin of a newer connection, from which no frame has come yet.
  private var nextOrigin: Double?
  private var until: Int64 = .min
  /// Start of the watch without a gap; nil once a connection was lost or refused.
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

  /// Watches the feed from now on, because a holder of a valid token has asked.
  mutating func arm(at clock: Int64) {
    if clock >= until { begun = clock }
    until = clock + Self.patience
  }

  func isWatching(at clock: Int64) -> Bool { clock < until }

  /// Where the feed is watched, and until when, on the controller's clock; nil while it is not watched, or while not
  /// even a rough place of the vehicle is known.
  func wish(at clock: Int64) -> WatchedRoad? {
    guard clock < until, let here = place.rough(at: seconds(clock)) else { return nil }
    return WatchedRoad(until: until, position: here.position, error: here.error)
  }

  /// - Returns: whether everything in the feed is so far away that its axes may be swapped; true once per connection at
  ///   most.
  mutating func take(_ event: RoadEvent, at clock: Int64) -> Bool {
    switch event {
    case .connected(let origin):
      nextOrigin = origin
      hasNoted = false
    // Approaching objects stay known for as long as the guard looks ahead.
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
    // A bridge that sends its time soon gives an estimate. Without that, the bridge's clock is taken as correct.
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

  /// The present verdict for a step.
  func verdict(for step: StepID, at clock: Int64) -> TrafficGuard.Verdict {
    guard clock < until else { return .blind(.silent) }
    guard let traffic else { return .blind(place.rough(at: seconds(clock)) == nil ? .place : .silent) }
    let verdict = traffic.verdict(for: step, at: origin + seconds(clock))
    // Something that approached the vehicle's former place still counts as approaching.
    guard !verdict.holds, place.current(at: seconds(clock)) == nil else { return verdict }
    return .blind(place.blindness)
  }

  /// The `verdict` as the word that riders receive.
  func watch(of step: StepID, at clock: Int64) -> Watch {
    switch verdict(for: step, at: clock) {
    case .clear: .clear
    case .approaching: .approaching
    case .obstructed: .obstructed
    case .blind: .blind
    }
  }

  /// Delays only an opening that has not begun: a step that moves follows the rules of motion.
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

  /// Why the guard cannot see a step that opens; nil if the guard can see it.
  func blindness(at step: StepID, at clock: Int64) -> TrafficGuard.Blindness? {
    if case .blind(let reason) = verdict(for: step, at: clock) { reason } else { nil }
  }
}
