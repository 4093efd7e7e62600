import Domain

/// How often the correct zone was named.
public struct ZoneCount: Hashable, Sendable {
  public private(set) var right = 0
  public private(set) var all = 0

  /// From 0 to 1; nil when there was no decision.
  public var share: Double? { all == 0 ? nil : Double(right) / Double(all) }

  mutating func add(_ zone: Zone, expected: Zone) {
    all += 1
    if zone == expected { right += 1 }
  }

  static func + (a: ZoneCount, b: ZoneCount) -> ZoneCount {
    var sum = a
    sum.right += b.right
    sum.all += b.all
    return sum
  }
}
