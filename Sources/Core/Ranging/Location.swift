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
  /// Whether the rider is in reach of that step and of no other: enough to open it.
  public let isLocated: Bool

  /// What is heard of one step's beacon.
  public struct Reading: Sendable, Equatable {
    public let step: Step
    public let zone: Zone
    public let distance: Distance?
    /// The level that zone and distance rest on, as an RSSI, dBm.
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
  }

  /// The distance and its bounds, metres. The true distance is within the bounds four times out of five.
  public struct Distance: Sendable, Equatable {
    public let metres: Double
    public let low: Double
    public let high: Double
  }

  public func reading(of step: Step) -> Reading? { readings.first { $0.step == step } }
}

extension Location {
  /// A moment of which nothing is known.
  public init(of steps: [Step], at time: Double) {
    var locator = Locator(steps: steps)
    self = locator.decide(at: time)
  }
}
