public import Domain
public import Ranging

/// What was heard of a vehicle's beacons at one position in front of a step.
public struct PositionRecording: Sendable {
  public let step: Step
  public let position: CalibrationPosition
  /// All steps of the vehicle.
  public let steps: [Step]
  /// The frames of all beacons, in order of arrival.
  public private(set) var frames: [(beacon: IBeacon, rssi: Int8, time: Double)] = []

  public init(of step: Step, at position: CalibrationPosition, among steps: [Step]) {
    self.step = step
    self.position = position
    self.steps = steps
  }

  /// - Parameter time: seconds of the radio's clock, not before the last frame's. A frame without RSSI is ignored.
  public mutating func hear(_ beacon: IBeacon, rssi: Int8?, at time: Double) {
    if let rssi { frames.append((beacon, rssi, time)) }
  }

  // MARK: - What it says

  /// How many frames of the step's own beacon were heard.
  public var packets: Int { levels(of: step).count }

  /// The RSSI, dBm, by the statistic that also decides the zone. It ignores outliers.
  public var rssi: Double? { Self.center(levels(of: step)) }

  /// Decibels between the first and the third quartile of the RSSI.
  public var spread: Double? {
    let levels = levels(of: step).sorted()
    return levels.isEmpty ? nil : levels[levels.count * 3 / 4] - levels[levels.count / 4]
  }

  /// By how many decibels the second half of the recording exceeds the first.
  public var drift: Double? {
    let levels = levels(of: step)
    guard let first = Self.center(levels.prefix(levels.count / 2)),
      let second = Self.center(levels.suffix(levels.count / 2))
    else { return nil }
    return second - first
  }

  /// The RSSI at 1 m that this position alone would give, dBm.
  var power: Double? { rssi.map { $0 - position.level } }

  /// The RSSI at 1 m that the frames give.
  public var announcedPower: Int8? { frames.last { $0.beacon.major == step.major }?.beacon.measuredPower }

  private func levels(of step: Step) -> [Double] {
    frames.filter { $0.beacon.major == step.major }.map { Double($0.rssi) }
  }

  private static func center(_ levels: some Collection<Double>) -> Double? {
    levels.isEmpty ? nil : interquartileMean(levels.sorted())
  }

  // MARK: - Its quality

  /// The mean of this many frames is accurate to 1.6 dB (two standard errors; a single packet has 4.5 dB).
  public static let leastPackets = 30
  /// With this many, the mean is accurate to 1.2 dB. More frames from the same place tell little, because shadowing
  /// stays.
  public static let enoughPackets = 60
  /// Twice the spread that a still receiver sees: 80 % of packets are within 5.8 dB of their place's mean.
  public static let largestSpread = 12.0
  /// How much stronger another step's beacon may be, because it may send with more power. On the wrong side it is 15 dB
  /// or more.
  public static let largestExcess = 6.0
  /// The change when someone walks from 1 m to 2 m.
  public static let largestDrift = 6.0

  /// What is wrong with the recording, worst first.
  public var flaws: [PositionFlaw] {
    var flaws: [PositionFlaw] = []
    if packets < Self.leastPackets { flaws.append(.fewPackets(packets)) }
    if let rssi, packets >= Self.leastPackets {
      let others = steps.filter { $0 != step }.compactMap { other in
        Self.center(levels(of: other)).map { (step: other, difference: $0 - rssi) }
      }
      if let stronger = others.max(by: { $0.difference < $1.difference }), stronger.difference > Self.largestExcess {
        flaws.append(.otherStep(stronger.step.id, by: stronger.difference))
      }
      if let drift, abs(drift) > Self.largestDrift { flaws.append(.drift(drift)) }
      if let spread, spread > Self.largestSpread { flaws.append(.spread(spread)) }
    }
    for other in steps where levels(of: other).isEmpty && other != step { flaws.append(.silent(other.id)) }
    return flaws
  }

  // MARK: - Zones

  /// Decides every half second, and counts the decisions that name this position's zone.
  ///
  /// - Parameter power: the power that levels are relative to, dBm; nil for the step's own, or else the frames'.
  /// - Returns: nil at 3 m, the edge between near and far, where either answer is good.
  public func zones(measuredPower power: Int8? = nil) -> ZoneCount? {
    let zone: Zone
    switch position.distance {
    case .short: zone = .immediate
    case .one: zone = .near
    case .long: return nil
    }
    var assumed = step
    if let power { assumed.measuredPower = power }
    var locator = Locator(steps: [assumed])
    var count = ZoneCount()
    guard let first = frames.first?.time else { return count }
    var tick = first + 0.5
    for frame in frames {
      // A capture's clock may jump: by years when it is set for the first time.
      if !(tick - RangingModel.backwards...tick + RangingModel.silence).contains(frame.time) { tick = frame.time + 0.5 }
      while frame.time >= tick {
        count.add(locator.decide(at: tick).readings[0].zone, expected: zone)
        tick += 0.5
      }
      locator.hear(frame.beacon, rssi: frame.rssi, at: frame.time)
    }
    return count
  }
}
