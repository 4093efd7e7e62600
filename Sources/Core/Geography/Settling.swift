import func Glibc.atan2

/// What a receiver of satellites says of its place.
public struct Fix: Equatable, Sendable {
  /// Seconds of any clock that goes on steadily.
  public var time: Double
  public var position: Coordinate
  /// Metres that it is off at most, in 95 of 100 cases; nil where the receiver does not say.
  public var accuracy: Double?
  /// The direction of its motion, degrees clockwise from north; nil where the receiver does not say.
  public var course: Double?
  /// Metres a second; nil where the receiver does not say.
  public var speed: Double?

  public init(time: Double, position: Coordinate, accuracy: Double?, course: Double? = nil, speed: Double? = nil) {
    self.time = time
    self.position = position
    self.accuracy = accuracy
    self.course = course
    self.speed = speed
  }
}

/// Whether what a receiver says can be relied on yet.
///
/// A receiver that was just switched on gives places that wander by tens of metres for half a minute, and what it says
/// of their accuracy is no better. So it counts only when it has said much the same for a while.
public struct Settling: Equatable, Sendable {
  /// What is known of the place.
  public enum State: Equatable, Sendable {
    /// There is no place.
    case none
    /// There is one, which is not to be relied on yet.
    case wandering(Fix)
    case settled(Fix)
  }

  private var fixes: [Fix] = []

  /// Seconds for which a receiver has to say much the same.
  public static let window = 8.0
  /// Seconds without a place after which it begins again.
  public static let patience = 5.0
  /// Metres of accuracy that are good enough to find a vehicle by.
  public static let enough = 50.0
  /// Metres that a place may wander by within the window.
  public static let drift = 5.0

  public init() {}

  /// Takes what the receiver says.
  ///
  /// - Parameter fix: nil when it says that it has no place.
  public mutating func take(_ fix: Fix?) {
    guard let fix else {
      fixes = []
      return
    }
    if let last = fixes.last, !(0...Self.patience).contains(fix.time - last.time) { fixes = [] }
    fixes.append(fix)
    // One that is older than the window stays, so that the others can be seen to fill it.
    while fixes.count > 1, fix.time - fixes[1].time >= Self.window { fixes.removeFirst() }
  }

  /// What can be said after the last fix.
  public var state: State {
    guard let last = fixes.last, let first = fixes.first else { return .none }
    guard let accuracy = last.accuracy, accuracy <= Self.enough, fixes.count >= 4,
      last.time - first.time >= Self.window, fixes.allSatisfy({ isPossible($0, before: last, accuracy) })
    else { return .wandering(last) }
    return .settled(last)
  }

  /// Whether somebody who moves as the receiver says can have come from there.
  private func isPossible(_ fix: Fix, before last: Fix, _ accuracy: Double) -> Bool {
    // Who walks is not always seen to move.
    let speed = max(fixes.compactMap(\.speed).max() ?? 0, 2)
    return fix.position.distance(to: last.position)
      <= max(Self.drift, accuracy / 2) + 1.2 * speed * (last.time - fix.time)
  }
}

/// The way from a place to another one.
public struct Way: Equatable, Sendable {
  /// Metres, and how far that can be off.
  public let distance: Double
  public let accuracy: Double
  /// Degrees clockwise from north, and how far that can be off; nil where it could be any direction.
  public let direction: Direction?
  /// Degrees to turn from the present course: clockwise, -180 up to 180; nil for who stands, and without a direction.
  public let turn: Double?

  /// Degrees clockwise from north, and by how many degrees that can be off.
  public struct Direction: Equatable, Sendable {
    public let bearing: Double
    public let accuracy: Double
  }

  /// Metres a second below which a course says nothing.
  public static let walking = 0.7
  /// Degrees beyond which a direction would lead astray.
  public static let mostDeviation = 45.0

  public init(from fix: Fix, to goal: Coordinate) {
    distance = fix.position.distance(to: goal)
    accuracy = fix.accuracy ?? .infinity
    // Seen from a place that is off by that much across the way.
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
