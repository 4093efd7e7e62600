import func Glibc.cos
import func Glibc.sin

/// The plane that touches the earth at a place: x to the north, y to the east, metres.
///
/// Degrees become metres by the two radii of curvature of WGS 84 at that place, along the meridian and across it. The
/// result differs from a geodetic library's topocentric coordinates by 1 mm at 100 m, 1 cm at 300 m and 0.1 m at 1 km.
public struct LocalPlane: Equatable, Sendable {
  /// The place where the plane touches the earth: x = 0, y = 0.
  public let origin: Coordinate
  /// Metres per degree.
  private let north: Double
  private let east: Double

  public init(at origin: Coordinate) {
    self.origin = origin
    let (equatorial, flattening) = (6_378_137.0, 1 / 298.257223563)
    let eccentricity = flattening * (2 - flattening)
    let sine = sin(origin.latitude * radian)
    let root = (1 - eccentricity * sine * sine).squareRoot()
    north = equatorial * (1 - eccentricity) / (root * root * root) * radian
    // At a pole, all longitudes are the same place.
    east = max(equatorial / root * cos(origin.latitude * radian), 1e-6) * radian
  }

  /// The point of a place on the plane, metres. The error grows with the distance from the origin.
  public func point(of place: Coordinate) -> Vector {
    var longitude = place.longitude - origin.longitude
    // Take the short way around the earth.
    if longitude > 180 { longitude -= 360 } else if longitude < -180 { longitude += 360 }
    return Vector(x: (place.latitude - origin.latitude) * north, y: longitude * east)
  }

  /// - Returns: nil if no place on the earth has this point.
  public func place(of point: Vector) -> Coordinate? {
    var longitude = origin.longitude + point.y / east
    if longitude > 180 { longitude -= 360 } else if longitude < -180 { longitude += 360 }
    return Coordinate(latitude: origin.latitude + point.x / north, longitude: longitude)
  }
}

/// A frame of reference within another one: the place of its origin, and its rotation.
///
/// A vehicle's frame has its origin in the vehicle's middle, x forward and y to the right.
public struct Pose: Equatable, Sendable {
  public let position: Vector
  /// Radians from the outer x axis to the inner one: a vehicle's heading, clockwise from north.
  public let heading: Double
  private let forward: Vector

  public init(position: Vector, heading: Double) {
    self.position = position
    self.heading = heading
    forward = Vector(direction: heading)
  }

  /// Converts a displacement from the outer frame to the inner one.
  public func inner(way: Vector) -> Vector {
    Vector(x: way.x * forward.x + way.y * forward.y, y: way.y * forward.x - way.x * forward.y)
  }

  /// Converts a point from the outer frame to the inner one.
  public func inner(point: Vector) -> Vector { inner(way: point - position) }

  /// Converts a displacement from the inner frame to the outer one.
  public func outer(way: Vector) -> Vector {
    Vector(x: way.x * forward.x - way.y * forward.y, y: way.y * forward.x + way.x * forward.y)
  }

  /// Converts a point from the inner frame to the outer one.
  public func outer(point: Vector) -> Vector { outer(way: point) + position }
}
