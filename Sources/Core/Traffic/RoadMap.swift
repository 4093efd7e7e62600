import Encoding
public import Geography

/// The places of a road's sections. A section counts as straight from one end to the other.
public struct RoadMap: Equatable, Sendable {
  /// A straight part of a road, with its name in the feed.
  public struct Section: Equatable, Sendable {
    public var name: String
    public var from: Coordinate
    public var to: Coordinate

    public init(name: String, from: Coordinate, to: Coordinate) {
      self.name = name
      self.from = from
      self.to = to
    }
  }

  private let sections: [Section]

  /// The distance within which a client is on a section, metres.
  public static let reach = 500.0
  /// The distance within which the ends of two sections join, metres.
  public static let joint = 30.0
  /// The distance from a section's line to the outermost lane of a wide road, metres.
  public static let halfWidth = 30.0
  public static let mostSections = 1000

  public init(_ sections: [Section]) { self.sections = sections }

  /// Reads a map from JSON in the form of FEED.md.
  public init(parsing bytes: [UInt8]) throws(FeedFlaw) {
    let json: JSON
    do { json = try JSON(parsing: bytes, maximumDepth: 5) } catch { throw FeedFlaw("map", error) }
    guard let list = try FeedReader(json, "map").member("sections").array, (1...Self.mostSections).contains(list.count)
    else { throw FeedFlaw("map.sections", "1 to \(Self.mostSections) sections") }
    var sections: [Section] = []
    for (index, section) in list.enumerated() {
      let reader = FeedReader(section, "map.sections[\(index)]")
      let name = try reader.text("section")
      guard !sections.contains(where: { $0.name == name }) else {
        throw FeedFlaw("\(reader.place).section", "each section once")
      }
      sections.append(
        Section(name: name, from: try reader.object("from").coordinate(), to: try reader.object("to").coordinate()))
    }
    self.sections = sections
  }

  /// The sections to show to a client at a place.
  ///
  /// - Parameter radius: metres around the place; nil for the section there and those that join it.
  public func sections(at place: Coordinate, radius: Double?) -> Set<String> {
    let plane = LocalPlane(at: place)
    let lines = sections.map { (from: plane.point(of: $0.from), to: plane.point(of: $0.to)) }
    let distances = lines.map { Self.distance(from: $0.from, to: $0.to) }
    if let radius {
      return Set(sections.indices.lazy.filter { distances[$0] <= radius + Self.halfWidth }.map { sections[$0].name })
    }
    guard let current = sections.indices.min(by: { distances[$0] < distances[$1] }), distances[current] <= Self.reach
    else { return [] }
    let ends = [lines[current].from, lines[current].to]
    return Set(
      sections.indices.lazy.filter { index in
        [lines[index].from, lines[index].to].contains { end in
          ends.contains { ($0 - end).length <= Self.joint }
        }
      }.map { sections[$0].name })
  }

  /// The distance from the origin to the nearest point of a line, metres.
  private static func distance(from: Vector, to: Vector) -> Double {
    let way = to - from
    let square = way.along(way)
    let part = square > 0 ? min(max(-from.along(way) / square, 0), 1) : 0
    return (from + way * part).length
  }
}
