package import Domain

/// What the locator says of one moment.
package struct Location: Sendable, Equatable {
  /// Seconds, as it was asked.
  package let time: Double
  /// Of every step, in the vehicle's order.
  package let readings: [Reading]
  /// The step on the rider's side; nil when that is open.
  package let facing: Step?
  /// For how many seconds it has been that step.
  package let facedFor: Double
  /// Whether the rider is in reach of that step and of no other: enough to open it.
  package let isLocated: Bool

  /// What is heard of one step's beacon.
  package struct Reading: Sendable, Equatable {
    package let step: Step
    package let zone: Zone
    package let distance: Distance?
    /// The level that zone and distance rest on, as an RSSI, dBm.
    package let rssi: Int?
    /// Frames in `RangingModel.window`, which is shorter than what the zone rests on.
    package let packets: Int
    /// Seconds since the last frame; nil when there was none.
    package let age: Double?
    /// Of the last frame.
    package let minor: UInt16?
    /// The RSSI at 1 m that the level is relative to, dBm: the step's own, or else the last frame's.
    package let measuredPower: Int8?
    /// Whether two beacons send as this step's, so that nothing can be said of either.
    package let isContested: Bool
  }

  /// How far, and between which bounds it is four times out of five; metres.
  package struct Distance: Sendable, Equatable {
    package let metres: Double
    package let low: Double
    package let high: Double
  }

  package func reading(of step: Step) -> Reading? { readings.first { $0.step == step } }
}

extension Location {
  /// That nothing is known of a moment.
  package init(of steps: [Step], at time: Double) {
    var locator = Locator(steps: steps)
    self = locator.decide(at: time)
  }
}
