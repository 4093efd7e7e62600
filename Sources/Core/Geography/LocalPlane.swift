import func Glibc.cos
import func Glibc.sin

/// The plane that touches the earth at a place: x to the north, y to the east, metres.
///
/// It counts degrees as metres with the two radii of curvature that WGS 84 has there, along the meridian and across it.
/// It differs from the topocentric coordinates of a geodetic library by 1 mm at 100 m, 1 cm at 300 m and 0.1 m at 1 km.
public struct LocalPlane: Equatable, Sendable {
  /// The place where the plane touches the earth: x = 0, y = 0.
  public let origin: Coordinate
  /// Metres a degree.
  private let north: Double
  private let east: Double

  public init(at origin: Coordinate) {
    self.origin = origin
    let (equatorial, flattening) = (6_378_137.0, 1 / 298.257223563)
    let eccentricity = flattening * (2 - flattening)
    let sine = sin(origin.latitude * radian)
    let root = (1 - eccentricity * sine * sine).squareRoot()
    north = equatorial * (1 - eccentricity) / (root * root * root) * radian
    // At a pole every longitude is the same place.
    east = max(equatorial / root * cos(origin.latitude * radian), 1e-6) * radian
  }

  /// Where a place is on the plane, metres; the further it is from the origin, the worse.
  public func point(of place: Coordinate) -> Vector {
    var longitude = place.longitude - origin.longitude
    // The short way around the earth.
    if longitude > 180 { longitude -= 360 } else if longitude < -180 { longitude += 360 }
    return Vector(x: (place.latitude - origin.latitude) * north, y: longitude * east)
  }

  /// - Returns: nil for a point that is further away than the earth is long.
  public func place(of point: Vector) -> Coordinate? {
    var longitude = origin.longitude + point.y / east
    if longitude > 180 { longitude -= 360 } else if longitude < -180 { longitude += 360 }
    return Coordinate(latitude: origin.latitude + point.x / north, longitude: longitude)
  }
}

/// A frame of reference that lies in another one: where its origin is, and how far it is turned.
///
/// A vehicle's frame in its plane: x forward and y to the right of the vehicle's middle.
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

  /// A way of the outer frame as the inner one has it.
  public func inner(way: Vector) -> Vector {
    Vector(x: way.x * forward.x + way.y * forward.y, y: way.y * forward.x - way.x * forward.y)
  }

  /// A point of the outer frame as the inner one has it.
  public func inner(point: Vector) -> Vector { inner(way: point - position) }

  /// A way of the inner frame as the outer one has it.
  public func outer(way: Vector) -> Vector {
    Vector(x: way.x * forward.x - way.y * forward.y, y: way.y * forward.x + way.x * forward.y)
  }

  /// A point of the inner frame as the outer one has it.
  public func outer(point: Vector) -> Vector { outer(way: point) + position }
}
