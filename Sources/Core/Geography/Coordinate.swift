import func Glibc.atan2
import func Glibc.cos
import func Glibc.hypot
import func Glibc.sin

/// A place on the earth (WGS 84), in degrees.
public struct Coordinate: Equatable, Sendable {
  /// From -90, the south pole, to 90.
  public let latitude: Double
  /// From -180 to 180, east of Greenwich.
  public let longitude: Double

  /// - Returns: nil if the numbers are not a place: not finite, latitude beyond ±90, or longitude beyond ±180.
  public init?(latitude: Double, longitude: Double) {
    // A comparison with NaN is false.
    guard abs(latitude) <= 90, abs(longitude) <= 180 else { return nil }
    self.latitude = latitude
    self.longitude = longitude
  }

  /// The distance to another place, metres, on a sphere with the earth's mean radius: at most 0.6 % off.
  public func distance(to other: Coordinate) -> Double {
    let (a, b) = (latitude * radian, other.latitude * radian)
    let (north, east) = (b - a, (other.longitude - longitude) * radian)
    // The haversine formula has small rounding errors for small distances.
    let part = sin(north / 2) * sin(north / 2) + cos(a) * cos(b) * sin(east / 2) * sin(east / 2)
    return 2 * 6_371_008.8 * atan2(part.squareRoot(), max(0, 1 - part).squareRoot())
  }

  /// The initial direction of the shortest way to another place: degrees clockwise from north, 0 up to 360.
  public func bearing(to other: Coordinate) -> Double {
    let (a, b) = (latitude * radian, other.latitude * radian)
    let east = (other.longitude - longitude) * radian
    let degrees = atan2(sin(east) * cos(b), cos(a) * sin(b) - sin(a) * cos(b) * cos(east)) / radian
    return degrees < 0 ? degrees + 360 : degrees
  }
}

/// A point or a displacement in a plane, metres. The plane defines the directions of its axes.
public struct Vector: Equatable, Sendable {
  public var x: Double
  public var y: Double

  public init(x: Double, y: Double) {
    self.x = x
    self.y = y
  }

  public static let zero = Vector(x: 0, y: 0)

  /// Metres.
  public var length: Double { hypot(x, y) }

  /// A unit vector.
  ///
  /// - Parameter angle: radians from the x axis towards the y axis.
  public init(direction angle: Double) { self.init(x: cos(angle), y: sin(angle)) }

  /// Radians from the x axis towards the y axis, from -π to π.
  public var direction: Double { atan2(y, x) }

  public static func + (a: Vector, b: Vector) -> Vector { Vector(x: a.x + b.x, y: a.y + b.y) }
  public static func - (a: Vector, b: Vector) -> Vector { Vector(x: a.x - b.x, y: a.y - b.y) }
  public static func * (a: Vector, factor: Double) -> Vector { Vector(x: a.x * factor, y: a.y * factor) }

  /// The component along another vector, which has length 1.
  public func along(_ other: Vector) -> Double { x * other.x + y * other.y }
}

let radian = Double.pi / 180
