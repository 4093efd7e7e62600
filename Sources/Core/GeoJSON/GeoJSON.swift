public import Encoding
import Geography

/// Areas as RFC 7946 writes them.
public enum GeoJSON {
  /// Reads a Polygon or a MultiPolygon, alone, as a Feature, or as the only Feature of a FeatureCollection.
  ///
  /// A ring may go round in either direction (3.1.6: a parser should not refuse one). Altitudes, properties and
  /// bounding boxes are ignored.
  ///
  /// - Throws: `GeoJSONError`.
  public static func area(in json: JSON) throws(GeoJSONError) -> Area {
    try checkSystem(json)
    switch json["type"]?.string {
    case "Feature":
      guard let geometry = json["geometry"], geometry != .null else { throw .noGeometry }
      try checkSystem(geometry)
      return try area(ofGeometry: geometry)
    case "FeatureCollection":
      let features = json["features"]?.array ?? []
      guard features.count == 1 else { throw .features(features.count) }
      guard features[0]["type"] == "Feature" else { throw .type }
      return try area(in: features[0])
    default: return try area(ofGeometry: json)
    }
  }

  /// Outer rings are counterclockwise, holes are clockwise (3.1.6). Degrees have seven decimals: 1 cm.
  public static func json(of area: Area) -> JSON {
    let polygons = area.polygons.map { polygon in
      JSON.array(
        [json(of: polygon.outer, clockwise: false)] + polygon.holes.map { json(of: $0, clockwise: true) })
    }
    return polygons.count == 1
      ? ["type": "Polygon", "coordinates": polygons[0]]
      : ["type": "MultiPolygon", "coordinates": .array(polygons)]
  }

  private static func json(of ring: Area.Ring, clockwise: Bool) -> JSON {
    // The shoelace formula in degrees: only its sign counts.
    let turn = ring.indices.reduce(0) { sum, index in
      let (a, b) = (ring[index], ring[(index + 1) % ring.count])
      return sum + (b.longitude - a.longitude) * (b.latitude + a.latitude)
    }
    let ordered = (turn > 0) == clockwise ? ring : ring.reversed()
    return .array(
      (ordered + ordered.prefix(1)).map { place in
        [.rounded(place.longitude, places: 7), .rounded(place.latitude, places: 7)]
      })
  }

  // MARK: - Reading

  private static func area(ofGeometry json: JSON) throws(GeoJSONError) -> Area {
    guard let coordinates = json["coordinates"]?.array else { throw .type }
    let written: [JSON]
    switch json["type"]?.string {
    case "Polygon": written = [.array(coordinates)]
    case "MultiPolygon": written = coordinates
    default: throw .type
    }
    var vertices = 0
    var polygons: [Area.Polygon] = []
    for (polygon, value) in written.enumerated() {
      var rings: [Area.Ring] = []
      for (ring, value) in (value.array ?? []).enumerated() {
        rings.append(try read(value, at: .init(polygon: polygon + 1, ring: ring + 1), &vertices))
      }
      guard let outer = rings.first else { throw .ring(.init(polygon: polygon + 1, ring: 1)) }
      polygons.append(Area.Polygon(outer: outer, holes: Array(rings.dropFirst())))
    }
    do { return try Area(polygons) } catch { throw .area(error) }
  }

  /// - Parameter vertices: how many the area has so far.
  private static func read(
    _ json: JSON, at location: Area.Location, _ vertices: inout Int
  ) throws(GeoJSONError) -> Area.Ring {
    // 3.1.6: a ring is closed and has four or more positions.
    guard let positions = json.array, positions.count >= 4 else { throw .ring(location) }
    vertices += positions.count - 1
    guard vertices <= Area.mostVertices else { throw .area(AreaError(location, .tooMany)) }
    var ring: Area.Ring = []
    for (vertex, position) in positions.enumerated() {
      let location = Area.Location(polygon: location.polygon, ring: location.ring, vertex: vertex + 1)
      guard let numbers = position.array?.map(\.double), numbers.count >= 2, let longitude = numbers[0],
        let latitude = numbers[1]
      else { throw .position(location) }
      guard let place = Coordinate(latitude: latitude, longitude: longitude) else {
        throw (90...180).contains(abs(latitude)) && abs(longitude) <= 90 ? .swapped(location) : .position(location)
      }
      ring.append(place)
    }
    guard ring.first == ring.last else { throw .open(location) }
    return ring.dropLast()
  }

  /// Degrees of WGS 84 are the only ones (4). An older GeoJSON may say so.
  private static func checkSystem(_ json: JSON) throws(GeoJSONError) {
    guard let system = json["crs"], system != .null else { return }
    guard system["properties"]?["name"] == "urn:ogc:def:crs:OGC:1.3:CRS84" else { throw .system }
  }
}

extension JSON {
  fileprivate var double: Double? {
    switch self {
    case .integer(let whole): Double(whole)
    case .number(let number): number
    default: nil
    }
  }
}

/// Why GeoJSON has no area that can be used.
public enum GeoJSONError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The type is not one of those that `GeoJSON.area` reads.
  case type
  case noGeometry
  /// A FeatureCollection with that number of features.
  case features(Int)
  /// A coordinate reference system other than WGS 84.
  case system
  /// Not a list of four or more positions.
  case ring(Area.Location)
  /// The last position is not the first one.
  case open(Area.Location)
  case position(Area.Location)
  case swapped(Area.Location)
  case area(AreaError)

  public var description: String {
    switch self {
    case .type: "it is neither a Polygon nor a MultiPolygon, nor a Feature of one"
    case .noGeometry: "the feature has no geometry"
    case .features(let count): "it has \(count) features; a zone has exactly one"
    case .system: "crs is another system than WGS 84 (RFC 7946, 4)"
    case .ring(let location): "\(location): a ring is a list of four or more positions"
    case .open(let location): "\(location): the last position has to be the first one again"
    case .position(let location): "\(location): a position is [longitude, latitude] in degrees"
    case .swapped(let location): "\(location): the axes are swapped: a position is [longitude, latitude]"
    case .area(let error): error.description
    }
  }
}
