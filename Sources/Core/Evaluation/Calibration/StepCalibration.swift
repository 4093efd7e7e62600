public import Domain
import Ranging

/// A step's measured power, fitted to recordings at several positions in front of it.
///
/// The model has one unknown: RSSI = power − 20·log₁₀(distance). Each position gives one power: the robust mean of its
/// packets minus the law's level. So a position with many packets, or with bad ones, counts no more than another. The
/// least-squares solution is a mean. The positions in hand and those in a pocket are averaged separately, and the two
/// means then have equal weight, because nobody knows how a rider carries the phone.
///
/// The thresholds of `RangingModel` are relative to the measured power, so they need no fit.
public struct StepCalibration: Sendable {
  /// The weight of the positions in hand. Those in a pocket have the rest.
  static let handWeight = 0.5
  /// With fewer positions, each has too much weight: the shadowing at one position is 5 dB or more.
  public static let leastPositions = 3
  /// The least fall of the level from 0.3 m to 3 m, decibels. The law says 20.
  public static let leastFall = 3.0

  /// Why the positions give no calibration.
  public enum Problem: Error, Hashable, Sendable {
    case fewPositions(Int)
    /// All at the same distance.
    case oneDistance
    /// The level at 3 m is only this many decibels below the level at 0.3 m.
    case noFall(CalibrationPosition.Carry, by: Int)
    /// dBm.
    case implausible(Int)
  }

  public let step: Step
  /// What was measured, one recording for each position.
  public let recordings: [PositionRecording]
  /// The RSSI at 1 m, dBm.
  public let measuredPower: Int8
  /// The power in use until now, dBm: the step's, or else the frames'.
  public let previousPower: Int8
  /// How many decibels each position is above the fitted law.
  public let residuals: [Double]
  /// How often the zone was correct with the previous power.
  public let before: ZoneCount
  /// How often the zone is correct with a power fitted to all other positions, so that no position judges itself.
  public let after: ZoneCount

  /// - Parameter recordings: of this step, each at a different position, none with a fatal flaw.
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
    // A recording in which nothing was heard has a fatal flaw.
    previousPower = step.measuredPower ?? recordings.last!.announcedPower!
    residuals = recordings.map { ($0.power ?? power) - power }
    before = recordings.compactMap { $0.zones() }.reduce(ZoneCount(), +)
    after = recordings.indices.compactMap { left in
      let others = recordings.indices.filter { $0 != left }.map { recordings[$0] }
      return recordings[left].zones(measuredPower: Int8(clamping: Int(Self.fit(others).rounded())))
    }.reduce(ZoneCount(), +)
  }

  /// Whether the zone is correct less often than before.
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
      "calibration needs \(StepCalibration.leastPositions) positions, and only \(count) can be used"
    case .oneDistance: "all positions are at the same distance"
    case .noFall(let carry, let fall):
      "the level falls by only \(fall) dB from 0.3 m to 3 m (\(carry.rawValue)): were the distances kept?"
    case .implausible(let power): "no beacon has \(power) dBm at 1 m"
    }
  }
}
