import StepProtocol

/// A motion whose target is set bit by bit. The servo speeds up, moves and slows down as in a `Leg` of the slowest
/// profile, however the target changes meanwhile.
struct Jog: Sendable {
  /// A distance that a servo may be given at once.
  private static let rest = MotionProfile.slowest.longestStride / 2

  private(set) var place: Double
  private(set) var target: Double
  private var leg: Leg?
  private var isBraking = false

  init(at place: Double) { (self.place, target) = (place, place) }

  var isDone: Bool { place == target && leg == nil }

  /// Where the servo comes to rest if it slows down now.
  private var stoppingPlace: Double { leg.map { isBraking ? $0.to : $0.braked.to } ?? place }

  mutating func go(to target: Double) { self.target = target }

  /// Moves the target by an increment.
  ///
  /// - Parameter lead: how far the target may be ahead. A held key repeats faster than the servo moves, and the servo
  ///   must not go on for long after the key is released.
  mutating func go(by increment: Double, lead: Double) {
    // A change of direction starts from where the servo stops.
    let isOnward = (target - place) * increment >= 0
    let base = isOnward ? target : stoppingPlace
    target =
      increment > 0 ? min(base + increment, max(base, place + lead)) : max(base + increment, min(base, place - lead))
  }

  mutating func limit(to range: ClosedRange<Double>) {
    // A servo that was found beyond the range may stay there.
    target = min(max(target, min(range.lowerBound, place)), max(range.upperBound, place))
  }

  /// - Returns: the next place; nil if it is at its target.
  mutating func advance(by time: Int64) -> Double? {
    if leg == nil {
      guard abs(target - place) > Jog.rest else { return arrive() }
      (leg, isBraking) = (Leg(from: place, to: place + (target > place ? 1 : -1), .slowest), false)
    }
    guard var leg else { return nil }
    if !isBraking {
      var next = leg
      next.advance(by: MotionProfile.tick)
      let end = next.braked.to
      if leg.to > leg.from ? end > target : end < target { (leg, isBraking) = (leg.braked, true) }
    }
    leg.advance(by: time)
    place = leg.place
    self.leg = leg.isDone ? nil : leg
    return place
  }

  private mutating func arrive() -> Double? {
    guard target != place else { return nil }
    place = target
    return place
  }
}
