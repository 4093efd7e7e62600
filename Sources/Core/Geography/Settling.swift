import func Glibc.atan2

/// A satellite receiver's report of its place.
public struct Fix: Equatable, Sendable {
  /// Seconds, on any steady clock.
  public var time: Double
  public var position: Coordinate
  /// The error in metres that is not exceeded in 95 of 100 cases; nil if the receiver does not report it.
  public var accuracy: Double?
  /// The direction of motion, degrees clockwise from north; nil if the receiver does not report it.
  public var course: Double?
  /// Metres per second; nil if the receiver does not report it.
  public var speed: Double?
  /// Whether the receiver says that it only plays this place.
  public var isSimulated: Bool

  public init(
    time: Double, position: Coordinate, accuracy: Double?, course: Double? = nil, speed: Double? = nil,
    isSimulated: Bool = false
  ) {
    self.time = time
    self.position = position
    self.accuracy = accuracy
    self.course = course
    self.speed = speed
    self.isSimulated = isSimulated
  }
}

/// Decides when a receiver's reports can be relied on.
///
/// Right after it is switched on, a receiver reports places that wander by tens of metres for half a minute, and its
/// accuracy figures are no better. So its reports count only once they have agreed for a while.
public struct Settling: Equatable, Sendable {
  /// What is known about the place.
  public enum State: Equatable, Sendable {
    /// No place is known.
    case none
    /// A place is reported, but it cannot be relied on yet.
    case wandering(Fix)
    case settled(Fix)
  }

  private var fixes: [Fix] = []

  /// How long reports must agree, seconds.
  public static let window = 8.0
  /// After this long without a place, settling begins again, seconds.
  public static let patience = 5.0
  /// An accuracy good enough to find a vehicle, metres.
  public static let enough = 50.0
  /// The accuracy of a receiver that reports none, metres. It is a guess: twice what GPS promises in 95 of 100 cases at
  /// the worst place under an open sky (GPS Standard Positioning Service, 5th edition, table 3.8-3).
  public static let assumed = 30.0
  /// How far places may wander within the window, metres.
  public static let drift = 5.0

  public init() {}

  /// Takes the receiver's report.
  ///
  /// - Parameter fix: nil if the receiver reports no place.
  public mutating func take(_ fix: Fix?) {
    guard let fix else {
      fixes = []
      return
    }
    if let last = fixes.last, !(0...Self.patience).contains(fix.time - last.time) { fixes = [] }
    fixes.append(fix)
    // One fix older than the window is kept, because it shows that the others fill the window.
    while fixes.count > 1, fix.time - fixes[1].time >= Self.window { fixes.removeFirst() }
  }

  /// The state after the last fix.
  public var state: State {
    guard let last = fixes.last, let first = fixes.first else { return .none }
    let accuracy = last.accuracy ?? Self.assumed
    guard accuracy <= Self.enough, fixes.count >= 4,
      last.time - first.time >= Self.window, fixes.allSatisfy({ isPossible($0, before: last, accuracy) })
    else { return .wandering(last) }
    return .settled(last)
  }

  /// Whether the receiver can have come from there, at its reported speed.
  private func isPossible(_ fix: Fix, before last: Fix, _ accuracy: Double) -> Bool {
    // A receiver does not always notice walking.
    let speed = max(fixes.compactMap(\.speed).max() ?? 0, 2)
    return fix.position.distance(to: last.position)
      <= max(Self.drift, accuracy / 2) + 1.2 * speed * (last.time - fix.time)
  }
}

/// The way from one place to another.
public struct Way: Equatable, Sendable {
  /// Metres, and the possible error: `Settling.assumed` if the receiver reports none.
  public let distance: Double
  public let accuracy: Double
  /// The direction; nil if it could be any.
  public let direction: Direction?
  /// Degrees to turn clockwise from the present course, -180 up to 180; nil while standing, or without a direction.
  public let turn: Double?

  /// Degrees clockwise from north, and the possible error in degrees.
  public struct Direction: Equatable, Sendable {
    public let bearing: Double
    public let accuracy: Double
  }

  /// Below this speed, a course is meaningless, metres per second.
  public static let walking = 0.7
  /// With a larger error than this, a direction would mislead, degrees.
  public static let mostDeviation = 45.0

  public init(from fix: Fix, to goal: Coordinate) {
    distance = fix.position.distance(to: goal)
    accuracy = fix.accuracy ?? Settling.assumed
    // The angle under which a sideways error of that size is seen.
    let deviation = distance > 0 ? atan2(accuracy, distance) / radian : 180
    direction =
      deviation <= Self.mostDeviation
      ? Direction(bearing: fix.position.bearing(to: goal), accuracy: deviation) : nil
    if let bearing = direction?.bearing, let course = fix.course, fix.speed ?? 0 >= Self.walking {
      let turn = (bearing - course).truncatingRemainder(dividingBy: 360)
      self.turn = turn >= 180 ? turn - 360 : turn < -180 ? turn + 360 : turn
    } else {
      turn = nil
    }
  }
}
