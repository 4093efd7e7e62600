/// Where a vehicle stood when something happened, in whole numbers (PROTOCOL.md, section 9.3, `ext.place`).
public struct ReportedPlace: Sendable, Equatable {
  /// Degrees north of the south pole, in 10^-7 degrees.
  public let north: Int64
  /// Degrees east of the antimeridian, in 10^-7 degrees.
  public let east: Int64
  /// The error that is not exceeded in 95 of 100 cases, decimetres.
  public let error: Int64
  /// How old the place was when the event happened, seconds.
  public let age: Int64

  /// The age up to which a place is told, seconds.
  public static let oldest: Int64 = 60
  private static let perDegree = 1e7
  private static let ranges: (north: ClosedRange<Int64>, east: ClosedRange<Int64>, error: ClosedRange<Int64>) =
    (0...1_800_000_000, 0...3_600_000_000, 0...10_000)

  /// - Parameters:
  ///   - latitude: degrees (WGS 84), north is positive.
  ///   - longitude: degrees, east is positive.
  ///   - error: metres.
  ///   - age: seconds.
  /// - Returns: nil if a number is out of its range.
  public init?(latitude: Double, longitude: Double, error: Double, age: Double) {
    guard let north = Int64(exactly: ((latitude + 90) * Self.perDegree).rounded()),
      let east = Int64(exactly: ((longitude + 180) * Self.perDegree).rounded()),
      let error = Int64(exactly: (error * 10).rounded(.up)), let age = Int64(exactly: age.rounded(.up))
    else { return nil }
    self.init(north: north, east: east, error: error, age: age)
  }

  init?(north: Int64, east: Int64, error: Int64, age: Int64) {
    guard Self.ranges.north.contains(north), Self.ranges.east.contains(east), Self.ranges.error.contains(error),
      (0...Self.oldest).contains(age)
    else { return nil }
    (self.north, self.east, self.error, self.age) = (north, east, error, age)
  }

  /// Degrees (WGS 84), north is positive.
  public var latitude: Double { Double(north) / Self.perDegree - 90 }
  /// Degrees, east is positive.
  public var longitude: Double { Double(east) / Self.perDegree - 180 }
}
