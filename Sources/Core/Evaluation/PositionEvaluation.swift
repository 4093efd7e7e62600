package import Domain
package import Ranging

/// What was heard of a vehicle's beacons at one position, and what was decided from it.
package struct PositionEvaluation: Sendable {
  package let position: SurveyedPosition
  /// The step on the position's side.
  package let step: Step
  private let vehicle: Vehicle

  /// The levels of each step's frames, in order of arrival: decibels above the measured power.
  private var levels: [[Double]]
  /// The measured power of the step's last frame, dBm.
  package private(set) var measuredPower: Int8?
  /// The number of the vehicle's frames, with or without an RSSI.
  package private(set) var frames = 0
  /// Equal for two captures with the same frames.
  package private(set) var fingerprint = 0

  package private(set) var decisions = 0
  /// The number of decisions for each of `Zone.allCases`; the last is unknown.
  package private(set) var zones = [Int](repeating: 0, count: Zone.allCases.count)
  /// The number of decisions for each of `Side.allCases`, and then of those that leave the side open.
  package private(set) var sides = [Int](repeating: 0, count: Side.allCases.count + 1)
  /// How many decisions locate the rider at this step, and how many at another.
  package private(set) var located = 0
  package private(set) var locatedElsewhere = 0
  /// When the rider was first located at this step, seconds after the capture's beginning.
  package private(set) var firstLocated: Double?
  /// Why the rider was not located, and how often.
  private var reasons: [PositionFault.Reason: Int] = [:]
  private var wasContested = false
  /// The number of the step's frames without a level.
  private var unlevelled = 0
  /// The time of the last decision, seconds.
  private var duration = 0.0

  package init(_ position: SurveyedPosition, _ step: Step, of vehicle: Vehicle) {
    self.position = position
    self.step = step
    self.vehicle = vehicle
    levels = vehicle.steps.map { _ in [] }
  }

  /// Records a frame of the vehicle.
  package mutating func hear(_ beacon: IBeacon, rssi: Int8?, at time: UnixTime) {
    frames += 1
    var hasher = Hasher()
    for value in [fingerprint, Int(time.microseconds), Int(beacon.major), Int(rssi ?? 0)] { hasher.combine(value) }
    fingerprint = hasher.finalize()
    guard let index = vehicle.steps.firstIndex(where: { $0.major == beacon.major }) else { return }
    let power = vehicle.steps[index].measuredPower ?? beacon.measuredPower
    guard let rssi, (-127..<0).contains(rssi), RangingModel.measuredPowers.contains(Double(power)) else {
      if vehicle.steps[index] == step { unlevelled += 1 }
      return
    }
    levels[index].append(Double(rssi) - Double(power))
    if vehicle.steps[index] == step { measuredPower = power }
  }

  /// Records a decision. There is one every half second.
  package mutating func take(_ location: Location) {
    decisions += 1
    duration = location.time
    // `allCases` has every case.
    zones[Zone.allCases.firstIndex(of: location.reading(of: step)?.zone ?? .unknown)!] += 1
    sides[location.facing.flatMap { Side.allCases.firstIndex(of: $0.side) } ?? Side.allCases.count] += 1
    if let missing = location.missing {
      reasons[PositionFault.Reason(missing), default: 0] += 1
      if missing == .contested { wasContested = true }
    } else if location.facing == step {
      located += 1
      if firstLocated == nil { firstLocated = location.time }
    } else {
      locatedElsewhere += 1
    }
  }

  // MARK: - What it says

  /// The true zone; nil within 10 % of the edge of a zone. A distance measured by hand is no more accurate, so either
  /// answer is good.
  package var zone: Zone? {
    for edge in Zone.allCases.compactMap(\.end) where abs(position.distance / edge - 1) <= 0.1 { return nil }
    return Zone.allCases.first { zone in zone.end.map { position.distance <= $0 } ?? true }
  }

  /// The number of the step's frames with an RSSI.
  package var packets: Int { own.count }

  /// Packets per second.
  package var rate: Double { Double(packets) / max(duration, 1) }

  /// Decibels above the measured power, by the statistic that also decides the zone. It ignores outliers.
  package var level: Double? { Self.center(own) }

  /// The level as an RSSI, dBm; nil if nothing was heard.
  package var rssi: Double? { level.flatMap { level in measuredPower.map { level + Double($0) } } }

  /// The first and the third quartile of the levels.
  package var quartiles: ClosedRange<Double>? {
    let sorted = own.sorted()
    guard let low = sorted.quantile(0.25), let high = sorted.quantile(0.75) else { return nil }
    return low...high
  }

  /// By how many decibels the second half exceeds the first.
  package var drift: Double? {
    guard let first = Self.center(own.prefix(own.count / 2)), let second = Self.center(own.suffix(own.count / 2)) else {
      return nil
    }
    return second - first
  }

  /// The levels of `step`, which belongs to the vehicle.
  private var own: [Double] { levels[vehicle.steps.firstIndex(of: step)!] }

  private static func center(_ levels: some Collection<Double>) -> Double? {
    levels.isEmpty ? nil : interquartileMean(levels.sorted())
  }

  // MARK: - What is wrong with it

  /// Within `reach` of the step a rider should be located. Beyond `away` no rider should be. In metres (RANGING.md:
  /// available, away).
  package static let reach = 1.0
  package static let away = 2.1

  /// What is wrong with the position, the cause before the consequence; nil if nothing is.
  ///
  /// - Parameters:
  ///   - law: fitted to the other positions, so that a bad position does not bend the law that judges it.
  ///   - residual: the distance from the law of all positions, which people read.
  func fault(_ law: DistanceLaw?, residual: Double?) -> PositionFault? {
    guard let level else { return unlevelled > 0 ? .unlevelled : .silent }
    if wasContested { return .contested }
    if rate < RangingModel.leastRate { return .fewPackets(rate) }
    let others = vehicle.steps.indices.filter { vehicle.steps[$0] != step }.compactMap { index in
      Self.center(levels[index]).map { (step: vehicle.steps[index].id, level: $0) }
    }
    if let other = others.max(by: { $0.level < $1.level }), other.level - level > PositionRecording.largestExcess {
      return .otherStep(other.step, by: other.level - level)
    }
    // A person this far away could have moved the step. No fault is worse, so it is reported first.
    if position.distance > Self.away, located > 0 { return .locatedAway(Double(located) / Double(decisions)) }
    if let law, let residual {
      let off = level - law.level(at: position.distance)
      // Positions scatter about every law, mostly without harm.
      let isUnusual = abs(off) > 2 * law.sigma || failure != nil
      if abs(off) >= PositionFault.largestResidual, abs(off) > 2 * law.error(at: position.distance), isUnusual {
        return off > 0 ? .aboveLaw(by: residual) : .belowLaw(by: residual, hasBody: position.hasBody)
      }
    }
    if let drift, abs(drift) > PositionRecording.largestDrift { return .drift(drift) }
    if let quartiles, quartiles.upperBound - quartiles.lowerBound > PositionRecording.largestSpread {
      return .spread(quartiles.upperBound - quartiles.lowerBound)
    }
    return failure
  }

  private var mostlyMissing: PositionFault.Reason? {
    reasons.max { ($0.value, $1.key.rawValue) < ($1.value, $0.key.rawValue) }?.key
  }

  /// What the decisions got wrong.
  private var failure: PositionFault? {
    let all = Double(max(decisions, 1))
    if locatedElsewhere > 0 { return .locatedElsewhere(Double(locatedElsewhere) / all) }
    if position.distance <= Self.reach, located * 2 < decisions, let reason = mostlyMissing {
      return .notLocated(Double(located) / all, reason)
    }
    let decided = decisions - zones[zones.count - 1]
    if let zone, let said = zones.indices.dropLast().max(by: { zones[$0] < zones[$1] }), zones[said] * 2 > decided,
      Zone.allCases[said] != zone
    {
      return .wrongZone(Zone.allCases[said], not: zone)
    }
    return nil
  }
}

/// What is wrong with a position, for the people who can fix it.
package enum PositionFault: Sendable {
  case silent
  case contested
  /// The frames have no level: their measured power is one that no beacon has, or the radio gives no RSSI.
  case unlevelled
  /// Packets per second.
  case fewPackets(Double)
  /// Decibels.
  case otherStep(StepID, by: Double)
  case belowLaw(by: Double, hasBody: Bool)
  case aboveLaw(by: Double)
  case drift(Double)
  case spread(Double)
  /// The share of the decisions, 0 to 1.
  case locatedElsewhere(Double)
  case locatedAway(Double)
  case notLocated(Double, Reason)
  case wrongZone(Zone, not: Zone)

  /// Decibels: the least that a body takes (ITU-R P.1238), and more than the scatter at a good site.
  package static let largestResidual = 6.0

  /// Why a rider is usually not located.
  package enum Reason: Int, Sendable {
    case silent, contested, unlevelled, frames, tooFar, bodyBetween, undecidedSide, steadiness

    init(_ missing: Location.Missing) {
      switch missing {
      case .silent: self = .silent
      case .contested: self = .contested
      case .unlevelled: self = .unlevelled
      case .frames: self = .frames
      case .tooFar: self = .tooFar
      case .bodyBetween: self = .bodyBetween
      case .undecidedSide: self = .undecidedSide
      case .steadiness: self = .steadiness
      }
    }

    fileprivate var sentence: String {
      switch self {
      case .silent: "no beacon is heard"
      case .contested: "two senders claim one beacon"
      case .unlevelled: "a beacon has no level"
      case .frames: "too few packets are heard"
      case .tooFar: "it is too weak"
      case .bodyBetween: "it is as weak as with a body in between"
      case .undecidedSide: "no step is clearly stronger"
      case .steadiness: "the level keeps changing"
      }
    }
  }

  /// The word for the fault in JSON.
  package var word: String {
    switch self {
    case .silent: "silent"
    case .contested: "contested"
    case .unlevelled: "unlevelled"
    case .fewPackets: "few_packets"
    case .otherStep: "other_step"
    case .belowLaw: "below_law"
    case .aboveLaw: "above_law"
    case .drift: "drift"
    case .spread: "spread"
    case .locatedElsewhere: "located_elsewhere"
    case .locatedAway: "located_away"
    case .notLocated: "not_located"
    case .wrongZone: "wrong_zone"
    }
  }

  /// A plain sentence without a full stop.
  package var sentence: String {
    func decibels(_ value: Double) -> String { "\(Int(abs(value).rounded())) dB" }
    func share(_ value: Double) -> String { "\(max(1, Int((value * 100).rounded()))) %" }
    switch self {
    case .silent: return "the step's beacon is not heard: is it on?"
    case .unlevelled:
      return "the step's beacon has no level: is its measured power set?"
    case .contested: return "two senders claim to be the step's beacon: turn one off"
    case .fewPackets(let rate):
      let count = Int((rate * 10).rounded())
      return "only \(count) \(count == 1 ? "packet" : "packets") in 10 s: is the battery low?"
    case .otherStep(let id, let excess): return "the \(id) step is \(decibels(excess)) stronger: is the side correct?"
    case .belowLaw(let off, true): return "the level is \(decibels(off)) below the law: the body takes it"
    case .belowLaw(let off, false): return "the level is \(decibels(off)) below the law: something stands between"
    case .aboveLaw(let off): return "the level is \(decibels(off)) above the law: is the distance correct?"
    case .drift(let drift): return "the level changed by \(decibels(drift)): was the device held still?"
    case .spread(let spread): return "the level scatters by \(decibels(spread)): was someone moving nearby?"
    case .locatedElsewhere(let part): return "located at the other step \(share(part)) of the time"
    case .locatedAway(let part): return "located \(share(part)) of the time, though too far away"
    case .notLocated(let part, let reason):
      return "\(part == 0 ? "never located" : "located only \(share(part)) of the time"): \(reason.sentence)"
    case .wrongZone(let said, let zone): return "the zone is mostly \(said.rawValue), but should be \(zone.rawValue)"
    }
  }
}
