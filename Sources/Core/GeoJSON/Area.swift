public import Geography

/// A part of the earth's surface with straight borders: polygons, each with an outer ring and holes.
///
/// Borders neither cross nor touch, so every place is either inside or outside. An area is small (`largestExtent`):
/// it is measured in one plane, with an error of its size of less than 0.2 %.
public struct Area: Equatable, Sendable {
  /// A closed line of straight edges: the last vertex is joined with the first one.
  public typealias Ring = [Coordinate]

  public struct Polygon: Equatable, Sendable {
    public let outer: Ring
    public let holes: [Ring]

    public init(outer: Ring, holes: [Ring] = []) {
      self.outer = outer
      self.holes = holes
    }

    fileprivate var rings: [Ring] { [outer] + holes }
  }

  /// A vertex of an area, or a ring, counted from 1. A polygon's ring 1 is its outer ring.
  public struct Location: Equatable, Sendable, CustomStringConvertible {
    public let polygon, ring: Int
    /// nil for the ring itself.
    public let vertex: Int?

    public init(polygon: Int, ring: Int, vertex: Int? = nil) {
      self.polygon = polygon
      self.ring = ring
      self.vertex = vertex
    }

    public var description: String {
      "polygon \(polygon), ring \(ring)" + (vertex.map { ", vertex \($0)" } ?? "")
    }
  }

  public let polygons: [Polygon]
  /// Touches the earth in the middle of the area.
  private let plane: LocalPlane
  /// The rings of all polygons, in that plane.
  private let outlines: [Outline]

  /// The maximum number of vertices, of all rings together.
  public static let mostVertices = 200
  /// The maximum distance between two vertices, metres.
  public static let largestExtent = 5000.0
  /// Nearer to a pole than this latitude, the plane is too inexact, degrees.
  public static let highestLatitude = 75.0
  /// Borders this near touch, metres.
  static let touching = 0.001

  /// - Throws: `AreaError` if the polygons are no area, or a too large one.
  public init(_ polygons: [Polygon]) throws(AreaError) {
    let vertices = Self.vertices(of: polygons)
    guard let first = vertices.first else { throw AreaError(.init(polygon: 1, ring: 1), .tooFew) }
    try Self.check(polygons, vertices)
    let middle = try Self.middle(of: vertices) ?? first.place
    let plane = LocalPlane(at: middle)
    let outlines = polygons.enumerated().flatMap { polygon, value in
      value.rings.enumerated().map { ring, places in
        Outline(
          at: Location(polygon: polygon + 1, ring: ring + 1), isHole: ring > 0, points: places.map(plane.point),
          meridian: places.map(\.longitude).first { abs($0) == 180 } ?? 0)
      }
    }
    try Self.checkBorders(outlines)
    try Self.checkNesting(outlines)
    self.polygons = polygons
    self.plane = plane
    self.outlines = outlines
    guard squareMetres >= 1 else { throw AreaError(outlines[0].location, .tooSmall) }
  }

  /// The size without the holes.
  public var squareMetres: Int {
    Int(outlines.reduce(0) { $0 + ($1.isHole ? -$1.size : $1.size) }.rounded())
  }

  public func contains(_ place: Coordinate) -> Bool {
    let point = plane.point(of: place)
    // Within a hole, a point is inside two rings.
    return outlines.count { $0.contains(point) } % 2 == 1
  }

  /// The place in the middle of the area.
  public var middle: Coordinate { plane.origin }

  /// The distance to the border, metres; 0 inside. It is at most 0.6 % off, as `Coordinate.distance` is.
  public func distance(to place: Coordinate) -> Double {
    let point = plane.point(of: place)
    if contains(place) { return 0 }
    let points = outlines.lazy.flatMap(\.edges).map { $0.nearest(to: point) }
    let nearest = points.min { ($0 - point).length < ($1 - point).length }
    return place.distance(to: nearest.flatMap(plane.place) ?? middle)
  }

  // MARK: - Checks

  private typealias Vertex = (location: Location, place: Coordinate)

  private static func vertices(of polygons: [Polygon]) -> [Vertex] {
    var vertices: [Vertex] = []
    for (polygon, value) in polygons.enumerated() {
      for (ring, places) in value.rings.enumerated() {
        for (vertex, place) in places.enumerated() {
          let location = Location(polygon: polygon + 1, ring: ring + 1, vertex: vertex + 1)
          vertices.append((location: location, place: place))
        }
      }
    }
    return vertices
  }

  /// Checks what can be checked in degrees.
  private static func check(_ polygons: [Polygon], _ vertices: [Vertex]) throws(AreaError) {
    if vertices.count > mostVertices { throw AreaError(vertices[mostVertices].location, .tooMany) }
    if let polar = vertices.first(where: { abs($0.place.latitude) > highestLatitude }) {
      throw AreaError(polar.location, .polar)
    }
    for (polygon, value) in polygons.enumerated() {
      for (ring, places) in value.rings.enumerated() {
        if places.count < 3 { throw AreaError(.init(polygon: polygon + 1, ring: ring + 1), .tooFew) }
        for (vertex, place) in places.enumerated() {
          let next = places[(vertex + 1) % places.count]
          // RFC 7946, 3.1.9: cut in two there, so no edge is longer than half of the way around the earth.
          if abs(next.longitude - place.longitude) > 180 {
            throw AreaError(.init(polygon: polygon + 1, ring: ring + 1, vertex: vertex + 1), .antimeridian)
          }
        }
      }
    }
  }

  /// The place in the middle of the vertices.
  private static func middle(of vertices: [Vertex]) throws(AreaError) -> Coordinate? {
    // A vertex that was mistyped does not move the median.
    let reference = vertices[0].place.longitude
    let longitudes = vertices.map { vertex in
      let east = vertex.place.longitude - reference
      return east > 180 ? east - 360 : east < -180 ? east + 360 : east
    }
    var longitude = reference + median(longitudes)
    if longitude > 180 { longitude -= 360 } else if longitude < -180 { longitude += 360 }
    guard let center = Coordinate(latitude: median(vertices.map(\.place.latitude)), longitude: longitude) else {
      return nil
    }
    let plane = LocalPlane(at: center)
    let points = vertices.map { plane.point(of: $0.place) }
    for (index, point) in points.enumerated()
    where points[..<index].contains(where: { ($0 - point).length > largestExtent }) {
      let farthest = points.indices.max { points[$0].length < points[$1].length } ?? index
      throw AreaError(vertices[farthest].location, .tooLarge)
    }
    let (north, east) = (points.map(\.x), points.map(\.y))
    return plane.place(
      of: Vector(x: (north.min()! + north.max()!) / 2, y: (east.min()! + east.max()!) / 2))
  }

  private static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

  /// Checks that no two edges cross or touch, except neighbours at their common vertex.
  private static func checkBorders(_ outlines: [Outline]) throws(AreaError) {
    for (index, outline) in outlines.enumerated() {
      let edges = outline.edges
      for (number, edge) in edges.enumerated() {
        func fail(_ reason: AreaError.Reason) -> AreaError { AreaError(outline.location(of: number), reason) }
        if edge.length <= touching { throw fail(.repeated) }
        for (other, second) in edges.enumerated().dropFirst(number + 1) {
          let isNext = other == number + 1
          let touches =
            isNext
            ? edge.foldsBack(to: second)
            : number == 0 && other == edges.count - 1 ? second.foldsBack(to: edge) : edge.touches(second)
          if touches { throw fail(.crosses(outline.location(of: other))) }
        }
        for second in outlines[(index + 1)...] where !outline.isContinued(by: second) {
          if let other = second.edges.firstIndex(where: edge.touches) {
            throw fail(.crosses(second.location(of: other)))
          }
        }
      }
    }
  }

  /// Checks that holes are inside their polygon's outer ring, and that nothing else is inside anything.
  private static func checkNesting(_ outlines: [Outline]) throws(AreaError) {
    for outline in outlines {
      // No borders cross, so one vertex is as good as all.
      let around = outlines.filter {
        $0 != outline && !$0.isContinued(by: outline) && $0.contains(outline.points[0])
      }
      let isInOwn = around.contains { !$0.isHole && $0.location.polygon == outline.location.polygon }
      if outline.isHole {
        guard isInOwn else { throw AreaError(outline.location, .holeOutside) }
        if let other = around.first(where: { $0.isHole && $0.location.polygon == outline.location.polygon }) {
          throw AreaError(outline.location, .inside(other.location))
        }
      } else if around.count % 2 == 1 {
        throw AreaError(outline.location, .inside(around[0].location))
      }
    }
  }
}

/// A ring in a plane.
private struct Outline: Equatable, Sendable {
  let location: Area.Location
  let isHole: Bool
  let points: [Vector]
  /// 180 or -180 if it reaches the antimeridian from that side, or else 0.
  let meridian: Double

  init(at location: Area.Location, isHole: Bool, points: [Vector], meridian: Double) {
    self.location = location
    self.isHole = isHole
    self.points = points
    self.meridian = meridian
  }

  /// Whether one is to the west of the antimeridian, the other is to the east of it, and both reach it: an area that is
  /// cut there (RFC 7946, 3.1.9). They may touch, and cannot cross.
  func isContinued(by other: Outline) -> Bool { meridian * other.meridian < 0 }

  func location(of vertex: Int) -> Area.Location {
    Area.Location(polygon: location.polygon, ring: location.ring, vertex: vertex + 1)
  }

  var edges: [Edge] { Self.edges(points) }

  static func edges(_ points: [Vector]) -> [Edge] {
    points.indices.map { Edge(from: points[$0], to: points[($0 + 1) % points.count]) }
  }

  /// Square metres, by the shoelace formula.
  var size: Double { abs(edges.reduce(0) { $0 + cross($1.start, $1.end) }) / 2 }

  /// Whether a half-line from the point crosses the ring an odd number of times.
  func contains(_ point: Vector) -> Bool {
    edges.count { edge in
      let (a, b) = (edge.start - point, edge.end - point)
      // An edge includes its lower end and not its upper one, so a vertex counts once.
      guard (a.x <= 0) != (b.x <= 0) else { return false }
      return (cross(a, b) > 0) == (b.x > a.x)
    } % 2 == 1
  }
}

/// A straight line between two points of a plane.
private struct Edge: Equatable {
  let start, end: Vector

  init(from start: Vector, to end: Vector) {
    self.start = start
    self.end = end
  }

  var length: Double { (end - start).length }

  /// The nearest of the edge's points.
  func nearest(to point: Vector) -> Vector {
    let way = end - start
    let square = way.x * way.x + way.y * way.y
    guard square > 0 else { return start }
    let from = point - start
    return start + way * min(max((from.x * way.x + from.y * way.y) / square, 0), 1)
  }

  private func isNear(_ point: Vector) -> Bool { (nearest(to: point) - point).length <= Area.touching }

  func touches(_ other: Edge) -> Bool {
    crosses(other) || isNear(other.start) || isNear(other.end) || other.isNear(start) || other.isNear(end)
  }

  /// Whether the edge that begins where this one ends lies on it.
  func foldsBack(to next: Edge) -> Bool { isNear(next.end) || next.isNear(start) }

  /// Whether each edge has its ends on both sides of the other.
  private func crosses(_ other: Edge) -> Bool {
    separates(other.start, other.end) && other.separates(start, end)
  }

  private func separates(_ a: Vector, _ b: Vector) -> Bool {
    let way = end - start
    return (cross(way, a - start) > 0) != (cross(way, b - start) > 0)
  }
}

/// Twice the area of the triangle between the origin and two points, with a sign.
private func cross(_ a: Vector, _ b: Vector) -> Double { a.x * b.y - a.y * b.x }

/// Why polygons are no area that can be used.
public struct AreaError: Error, Equatable, Sendable, CustomStringConvertible {
  public let location: Area.Location
  public let reason: Reason

  public enum Reason: Equatable, Sendable {
    /// A ring has less than three vertices.
    case tooFew
    case tooMany
    case tooSmall
    /// The vertex is too far from the others.
    case tooLarge
    case polar
    case antimeridian
    /// The next vertex is the same place.
    case repeated
    /// The edge that begins at this vertex crosses, or touches, the edge that begins there.
    case crosses(Area.Location)
    case holeOutside
    /// The ring is inside that one.
    case inside(Area.Location)
  }

  public init(_ location: Area.Location, _ reason: Reason) {
    self.location = location
    self.reason = reason
  }

  public var description: String {
    let text =
      switch reason {
      case .tooFew: "a ring has at least three different vertices"
      case .tooMany: "an area has at most \(Area.mostVertices) vertices"
      case .tooSmall: "the area is smaller than 1 m²"
      case .tooLarge: "it is more than \(Int(Area.largestExtent / 1000)) km from another vertex"
      case .polar: "an area is between \(Int(Area.highestLatitude))° south and \(Int(Area.highestLatitude))° north"
      case .antimeridian: "the edge crosses the antimeridian: cut the polygon in two there (RFC 7946, 3.1.9)"
      case .repeated: "the next vertex is the same place"
      case .crosses(let other): "the edge that begins here crosses or touches the one that begins at \(other)"
      case .holeOutside: "the hole is not inside its polygon"
      case .inside(let other): "it is inside \(other)"
      }
    return "\(location): \(text)"
  }
}
