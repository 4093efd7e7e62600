public import Domain

/// What the locator has decided for one moment.
public struct Location: Sendable, Equatable {
  /// Seconds, as given to `decide(at:)`.
  public let time: Double
  /// One for every step, in the vehicle's order.
  public let readings: [Reading]
  /// The step on the rider's side; nil when the side is not decided.
  public let facing: Step?
  /// For how many seconds it has been that step.
  public let facedFor: Double
  /// What is missing for the rider to be located; nil when nothing is.
  public let missing: Missing?

  /// Whether the rider is in reach of that step and of no other: enough to open it.
  public var isLocated: Bool { missing == nil }

  /// The first condition of being located that is not met, in the order in which a rider can meet them.
  ///
  /// `facing` says which step it is about, if any. Levels are of RANGING.md: RSSI above the measured power.
  public enum Missing: Sendable, Equatable {
    /// No beacon is heard.
    case silent
    /// Two beacons claim to be one step's.
    case contested
    /// A beacon is heard without a level, so nothing can be compared with it.
    case unlevelled
    /// Too few frames are heard, in the window or in its last moment.
    case frames
    /// The level is too low by so many decibels: the rider has to come closer.
    case tooFar(by: Double)
    /// The side is clear, and the level is too low by what a body takes: the rider who has come close has to hold the
    /// phone towards the step.
    case bodyBetween(by: Double)
    /// No beacon is far enough ahead of the others: the rider has to stand in front of one step.
    case undecidedSide
    /// The level falls, or only some frames are strong: the rider has to stand still.
    case steadiness
  }

  /// What is heard of one step's beacon.
  public struct Reading: Sendable, Equatable {
    public let step: Step
    /// How far the beacon is; `unknown` where too little is heard, or the level is close to an edge of two zones.
    public let zone: Zone
    /// Nil where too little is heard.
    public let distance: Distance?
    /// The level that the distance rests on, as an RSSI, dBm.
    public let rssi: Int?
    /// Frames in `RangingModel.window`, which is shorter than what the zone rests on.
    public let packets: Int
    /// Seconds since the last frame; nil when there was none.
    public let age: Double?
    /// The last frame's.
    public let minor: UInt16?
    /// The RSSI at 1 m that the level is relative to, dBm: the step's own, or else the last frame's.
    public let measuredPower: Int8?
    /// Whether two beacons claim to be this step's, so that neither can be believed.
    public let isContested: Bool
    /// Whether frames come whose level nobody can know: without an RSSI, or with a measured power that no beacon has.
    public let isUnlevelled: Bool
  }

  /// The distance and its bounds, metres. The true distance is within the bounds four times out of five.
  public struct Distance: Sendable, Equatable {
    /// The most likely distance.
    public let metres: Double
    public let low: Double
    public let high: Double
  }

  /// What was heard of a step's beacon; nil for a step of another vehicle.
  public func reading(of step: Step) -> Reading? { readings.first { $0.step == step } }
}

extension Location {
  /// A moment of which nothing is known.
  public init(of steps: [Step], at time: Double) {
    var locator = Locator(steps: steps)
    self = locator.decide(at: time)
  }
}
