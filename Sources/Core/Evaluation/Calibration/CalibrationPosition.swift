import Ranging

/// Where a step's beacon is measured: how far in front of it, and how the receiver is carried.
public struct CalibrationPosition: Hashable, Sendable {
  /// The distance from the step, along the ground. The raw value is in metres.
  public enum Distance: String, CaseIterable, Sendable {
    case short = "0.3"
    case one = "1"
    case long = "3"

    /// The distance, metres.
    public var metres: Double {
      switch self {
      case .short: 0.3
      case .one: 1
      case .long: 3
      }
    }
  }

  /// Where the rider carried the device.
  public enum Carry: String, CaseIterable, Sendable {
    case hand, pocket
  }

  public let distance: Distance
  public let carry: Carry

  public init(_ distance: Distance, _ carry: Carry) {
    self.distance = distance
    self.carry = carry
  }

  /// All positions, in the order that needs the shortest walk.
  public static let all = Distance.allCases.flatMap { distance in
    Carry.allCases.map { CalibrationPosition(distance, $0) }
  }

  /// Decibels above the RSSI at 1 m, in free space.
  var level: Double { RangingModel.level(at: distance.metres) }
}
