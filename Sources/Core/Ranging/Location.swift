public import Domain

/// What the locator has decided for one moment.
public struct Location: Sendable, Equatable {
  /// Seconds, as given to `decide(at:)`.
  public let time: Double
  /// One for each step, in the vehicle's order.
  public let readings: [Reading]
  /// The step on the rider's side; nil when the side is not decided.
  public let facing: Step?
  /// How long it has been that step, seconds.
  public let facedFor: Double
  /// What is missing for the rider to be located; nil if nothing is.
  public let missing: Missing?

  /// Whether the rider is in reach of the `facing` step and of no other. This is enough to open it.
  public var isLocated: Bool { missing == nil }

  /// The first condition of being located that is not met, in the order in which a rider can meet them.
  ///
  /// If `facing` is set, the condition is about that step. A level is the RSSI minus the measured power (RANGING.md).
  public enum Missing: Sendable, Equatable {
    /// No beacon is heard.
    case silent
    /// Two beacons claim to be the same step's.
    case contested
    /// A beacon is heard without a level, so no other beacon can be compared with it.
    case unlevelled
    /// Too few frames are heard, in the window or in its last part.
    case frames
    /// The level is too low by this many decibels: the rider must come closer.
    case tooFar(by: Double)
    /// The side is clear, but the level is too low, by no more than a body takes. A rider who is already close must
    /// hold the phone towards the step.
    case bodyBetween(by: Double)
    /// No beacon is far enough ahead of the others: the rider must stand in front of one step.
    case undecidedSide
    /// The level falls, or too few frames are strong: the rider must stand still.
    case steadiness
  }

  /// What is known about one step's beacon.
  public struct Reading: Sendable, Equatable {
    public let step: Step
    /// How far away the beacon is; `unknown` if too little is heard, or if the level is close to the edge of a zone.
    public let zone: Zone
    /// Nil if too little is heard.
    public let distance: Distance?
    /// The level that the distance is computed from, as an RSSI, dBm.
    public let rssi: Int?
    /// Frames in `RangingModel.window`, which is shorter than the window for the zone.
    public let packets: Int
    /// Seconds since the last frame; nil when there was none.
    public let age: Double?
    /// The last frame's minor.
    public let minor: UInt16?
    /// The RSSI at 1 m that the level is relative to, dBm: the step's own if it has one, or else the last frame's.
    public let measuredPower: Int8?
    /// Whether two beacons claim to be this step's, so that neither can be believed.
    public let isContested: Bool
    /// Whether some frames have no usable level: no RSSI, or a measured power that no beacon has.
    public let isUnlevelled: Bool
  }

  /// The distance and its bounds, metres. The true distance is within the bounds in four cases out of five.
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
  /// A location at which nothing has been heard.
  public init(of steps: [Step], at time: Double) {
    var locator = Locator(steps: steps)
    self = locator.decide(at: time)
  }
}
