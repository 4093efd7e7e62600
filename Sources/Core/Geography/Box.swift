/// A rectangle in a plane: a vehicle seen from above.
public struct Box: Equatable, Sendable {
  /// The middle of the rectangle, metres.
  public var center: Vector
  /// The unit vector along its length.
  public let forward: Vector
  /// Half its length and half its width, metres.
  public var half: Vector

  /// - Parameter heading: radians from the plane's x axis to the box's length axis.
  public init(center: Vector, heading: Double, length: Double, width: Double) {
    self.init(center: center, forward: Vector(direction: heading), half: Vector(x: length / 2, y: width / 2))
  }

  public init(center: Vector, forward: Vector, half: Vector) {
    self.center = center
    self.forward = forward
    self.half = half
  }

  /// Whether two boxes have a common point: no line parallel to a side of either box separates them.
  public func touches(_ other: Box) -> Bool { !isApart(from: other) && !other.isApart(from: self) }

  private func isApart(from other: Box) -> Bool {
    let way = other.center - center
    let (cosine, sine) = (abs(forward.along(other.forward)), abs(across.along(other.forward)))
    return abs(way.along(forward)) > half.x + other.half.x * cosine + other.half.y * sine
      || abs(way.along(across)) > half.y + other.half.x * sine + other.half.y * cosine
  }

  /// The distance from a point to the box, metres; 0 within it.
  public func distance(to point: Vector) -> Double {
    let way = point - center
    return Vector(
      x: max(0, abs(way.along(forward)) - half.x), y: max(0, abs(way.along(across)) - half.y)
    ).length
  }

  /// The distance between two boxes, metres; 0 if they touch.
  public func distance(to other: Box) -> Double {
    if touches(other) { return 0 }
    // If two convex polygons are apart, a corner of one of them is among the nearest points.
    return min(other.corners.lazy.map(distance).min() ?? 0, corners.lazy.map(other.distance).min() ?? 0)
  }

  private var across: Vector { Vector(x: -forward.y, y: forward.x) }

  /// The four corners, in order around the rectangle.
  public var corners: [Vector] {
    let (ahead, aside) = (forward * half.x, across * half.y)
    return [center + ahead + aside, center + ahead - aside, center - ahead - aside, center - ahead + aside]
  }
}
