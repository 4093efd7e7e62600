public import Domain

/// A step's measured power, fitted to what was heard at several positions in front of it.
///
/// The model has one unknown: RSSI = power − 20·log₁₀(distance). Each position suggests a power by itself, the robust
/// mean of its packets less the law's level, so that one with many packets, or with bad ones, has no more say than
/// another. The least-squares solution is the mean of these, first of those in hand and of those in a pocket, and
/// then of these two with equal weight: nobody knows how a rider carries the phone.
///
/// The thresholds of `RangingModel` are relative to the measured power, and stay.
public struct StepCalibration: Sendable {
  /// The share of positions in hand in the result; those in a pocket have the rest.
  static let handWeight = 0.5
  /// With fewer positions each of them decides too much: shadowing at one is 5 dB and more.
  public static let leastPositions = 3
  /// By how many decibels the level must fall from 0.3 m to 3 m, where the law says 20.
  public static let leastFall = 3.0

  public enum Problem: Error, Hashable, Sendable {
    case fewPositions(Int)
    /// All at the same distance.
    case oneDistance
    /// The level at 3 m is hardly below that at 0.3 m, by decibels.
    case noFall(CalibrationPosition.Carry, by: Int)
    /// dBm.
    case implausible(Int)
  }

  public let step: Step
  public let recordings: [PositionRecording]
  /// The RSSI at 1 m, dBm.
  public let measuredPower: Int8
  /// What has been assumed so far, dBm: what the step has, or else what the frames give.
  public let previousPower: Int8
  /// Decibels by which each position lies above the fitted law.
  public let residuals: [Double]
  /// With the power so far.
  public let before: ZoneCount
  /// With a power fitted to all other positions, so that none is judged by itself.
  public let after: ZoneCount

  /// - Parameter recordings: of this step, each of another position, and none with a fatal flaw.
  public init(of step: Step, from recordings: [PositionRecording]) throws(Problem) {
    guard recordings.count >= Self.leastPositions else { throw .fewPositions(recordings.count) }
    guard Set(recordings.map(\.position.distance)).count > 1 else { throw .oneDistance }
    for carry in CalibrationPosition.Carry.allCases {
      func rssi(_ distance: CalibrationPosition.Distance) -> Double? {
        recordings.first { $0.position == CalibrationPosition(distance, carry) }?.rssi
      }
      if let near = rssi(.short), let far = rssi(.long), near - far < Self.leastFall {
        throw .noFall(carry, by: Int((near - far).rounded()))
      }
    }
    let power = Self.fit(recordings)
    guard RangingModel.measuredPowers.contains(power) else { throw .implausible(Int(power.rounded())) }
    self.step = step
    self.recordings = recordings
    measuredPower = Int8(power.rounded())
    // That nothing was heard is a fatal flaw.
    previousPower = step.measuredPower ?? recordings.last!.announcedPower!
    residuals = recordings.map { ($0.power ?? power) - power }
    before = recordings.compactMap { $0.zones() }.reduce(ZoneCount(), +)
    after = recordings.indices.compactMap { left in
      let others = recordings.indices.filter { $0 != left }.map { recordings[$0] }
      return recordings[left].zones(measuredPower: Int8(clamping: Int(Self.fit(others).rounded())))
    }.reduce(ZoneCount(), +)
  }

  /// Whether the right zone is named less often than before.
  public var isWorse: Bool { (after.share ?? 0) < (before.share ?? 0) }

  private static func fit(_ recordings: [PositionRecording]) -> Double {
    var sum = 0.0
    var weights = 0.0
    for carry in CalibrationPosition.Carry.allCases {
      let powers = recordings.filter { $0.position.carry == carry }.compactMap(\.power)
      guard !powers.isEmpty else { continue }
      let weight = carry == .hand ? handWeight : 1 - handWeight
      sum += weight * powers.reduce(0, +) / Double(powers.count)
      weights += weight
    }
    return weights > 0 ? sum / weights : 0
  }
}

extension StepCalibration.Problem: CustomStringConvertible {
  public var description: String {
    switch self {
    case .fewPositions(let count):
      "it takes \(StepCalibration.leastPositions) positions, and \(count) can be used"
    case .oneDistance: "all positions are at the same distance"
    case .noFall(let carry, let fall):
      "the level falls by only \(fall) dB from 0.3 m to 3 m (\(carry.rawValue)): were the distances kept?"
    case .implausible(let power): "\(power) dBm at 1 m is what no beacon has"
    }
  }
}
