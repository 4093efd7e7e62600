import Foundation
import GeoJSON
import Geography
import TestSupport
import Testing

@Suite("Areas") struct AreaTests {
  private static func place(_ latitude: Double, _ longitude: Double) -> Coordinate {
    Coordinate(latitude: latitude, longitude: longitude)!
  }

  private static func ring(_ degrees: [(Double, Double)]) -> Area.Ring { degrees.map { place($0.0, $0.1) } }

  /// A square around a place near Stuttgart: from the southwest corner, counterclockwise. Offsets and half its side in
  /// units of 1e-5 degrees: 1.1 m to the north, 0.7 m to the east.
  private static func square(_ half: Double, north: Double = 0, east: Double = 0) -> Area.Ring {
    ring(
      [(-half, -half), (-half, half), (half, half), (half, -half)].map {
        (48.7759 + (north + $0.0) * 1e-5, 9.1833 + (east + $0.1) * 1e-5)
      })
  }

  private static func error(_ polygons: Area.Polygon...) -> AreaError? {
    do throws(AreaError) { _ = try Area(polygons) } catch { return error }
    return nil
  }

  @Test("a yard of 24 m by 60 m has 1475 m²")
  func yard() throws {
    let yard = Self.ring([(48.77580, 9.18290), (48.77580, 9.18372), (48.77602, 9.18372), (48.77602, 9.18290)])
    let area = try Area([.init(outer: yard)])
    #expect(area.squareMetres == 1475)
    #expect(area.contains(Self.place(48.7759, 9.1833)) && !area.contains(Self.place(48.7759, 9.1838)))
  }

  /// The areas of Tests/Peers/areas.py.
  private struct Chance {
    private var state: UInt64 = 1

    mutating func below(_ limit: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 32) % limit
    }

    mutating func ring(_ center: (Int, Int), _ smallest: Int, _ largest: Int) -> Area.Ring {
      var ring: Area.Ring = []
      let half = [(10, 0), (9, 4), (7, 7), (4, 9), (0, 10), (-4, 9), (-7, 7), (-9, 4)]
      for (index, way) in (half + half.map { (-$0.0, -$0.1) }).enumerated() {
        let radius = smallest + below(largest - smallest)
        if below(3) != 0 || [0, 5, 11].contains(index) {
          ring.append(place(center.0 + way.0 * radius, center.1 + way.1 * radius))
        }
      }
      return ring
    }

    func place(_ latitude: Int, _ longitude: Int) -> Coordinate {
      Coordinate(latitude: Double(latitude) / 1e7, longitude: Double(longitude) / 1e7)!
    }
  }

  @Test("10,000 areas: sizes as geographiclib has them, and insides as shapely")
  func peers() throws {
    var chance = Chance()
    let lines = try Repository.text("Tests/Fixtures/areas.txt").split(separator: "\n")
    #expect(lines.count == 10_000)
    for (number, line) in lines.enumerated() {
      let answers = line.split(separator: " ")
      let size = try #require(Double(answers[0]))
      let center = (chance.below(1_490_000_000) - 745_000_000, chance.below(3_598_000_000) - 1_799_000_000)
      let unit = 1 << chance.below(8)
      let outer = chance.ring(center, unit * 40, unit * 160)
      let holes = chance.below(2) == 1 ? [chance.ring(center, unit * 4, unit * 12)] : []
      var polygons = [Area.Polygon(outer: outer, holes: holes)]
      if unit <= 32, chance.below(2) == 1 {
        polygons.append(.init(outer: chance.ring((center.0, center.1 + unit * 3600), unit * 40, unit * 160)))
      }
      let area = try Area(polygons)
      // Up to 2 units, the area is not wider than 200 m.
      let allowed = size * (unit <= 2 ? 1e-4 : 2e-3) + 0.5
      #expect(abs(Double(area.squareMetres) - size) <= allowed, "area \(number + 1)")
      let inside = (0..<4).map { _ in
        let north = center.0 + chance.below(unit * 3200) - unit * 1600
        let east = center.1 + chance.below(unit * 6800) - unit * 1600
        return area.contains(chance.place(north, east)) ? "1" : "0"
      }
      #expect(inside.joined() == answers[1], "area \(number + 1)")
    }
  }

  @Test("a hole is outside, and what is in a hole may be a polygon of its own")
  func holes() throws {
    let (outer, hole, island) = (Self.square(50), Self.square(30), Self.square(10))
    let area = try Area([.init(outer: outer, holes: [hole]), .init(outer: island)])
    #expect(area.contains(Self.place(48.7759 + 40e-5, 9.1833)))
    #expect(!area.contains(Self.place(48.7759 + 20e-5, 9.1833)))
    #expect(area.contains(Self.place(48.7759, 9.1833)))
    let (whole, inner) = (try Area([.init(outer: outer)]), try Area([.init(outer: hole)]))
    let islandAlone = try Area([.init(outer: island)])
    #expect(abs(area.squareMetres - (whole.squareMetres - inner.squareMetres + islandAlone.squareMetres)) <= 1)
  }

  @Test("the distance is that to the nearest edge, also of a hole, and 0 inside")
  func distances() throws {
    let area = try Area([.init(outer: Self.square(50), holes: [Self.square(30)])])
    let metre = 1 / 111_200.0
    #expect(area.distance(to: Self.place(48.7759 + 40e-5, 9.1833)) == 0)
    #expect(abs(area.distance(to: Self.place(48.7759 + 50e-5 + 340 * metre, 9.1833)) - 340) < 2)
    #expect(abs(area.distance(to: Self.place(48.7759 + 30e-5 - 10 * metre, 9.1833)) - 10) < 0.1)
    // Far away, and at the other side of the earth.
    for far in [Self.place(52.52, 13.405), Self.place(48.7758, -170.8167), Self.place(-48.7758, -170.8167)] {
      #expect(abs(area.distance(to: far) / far.distance(to: Self.place(48.7759, 9.1833)) - 1) < 0.001)
    }
  }

  @Test("an area that is cut at the antimeridian is one")
  func antimeridian() throws {
    let west = Self.ring([(10, 179.999), (10, 180), (10.001, 180), (10.001, 179.999)])
    let east = Self.ring([(10, -180), (10, -179.999), (10.001, -179.999), (10.001, -180)])
    let area = try Area([.init(outer: west), .init(outer: east)])
    #expect(area.contains(Self.place(10.0005, 179.9995)) && area.contains(Self.place(10.0005, -179.9995)))
    #expect(!area.contains(Self.place(10.0005, -179.9985)))
    #expect(abs(area.distance(to: Self.place(10.0005, -179.998)) - 109.6) < 1)
  }

  @Test("what is no area is refused with its ring and vertex")
  func errors() {
    let square = Self.square(50)
    func location(_ polygon: Int, _ ring: Int, _ vertex: Int? = nil) -> Area.Location {
      .init(polygon: polygon, ring: ring, vertex: vertex)
    }
    // A bow tie.
    let bow = [square[0], square[2], square[1], square[3]]
    #expect(Self.error(.init(outer: bow)) == AreaError(location(1, 1, 1), .crosses(location(1, 1, 3))))
    // The third vertex lies on the first edge.
    let onEdge = [square[0], square[1], Self.place(square[0].latitude, 9.1833), square[3]]
    #expect(Self.error(.init(outer: onEdge))?.location == location(1, 1, 1))
    let spike = square + [Self.place(48.7759, square[3].longitude), square[3]]
    #expect(Self.error(.init(outer: spike)) != nil)
    #expect(
      Self.error(.init(outer: [square[0], square[0]] + square[1...])) == AreaError(location(1, 1, 1), .repeated))
    #expect(Self.error(.init(outer: Array(square[..<2]))) == AreaError(location(1, 1), .tooFew))
    #expect(Self.error() == AreaError(location(1, 1), .tooFew))
    // A hole that leaves its polygon, one beside it, one in another hole, and two polygons in one another.
    let leaving = Self.square(10, north: 50)
    #expect(Self.error(.init(outer: square, holes: [leaving]))?.reason == .crosses(location(1, 2, 2)))
    let beside = Self.square(10, north: 100)
    #expect(Self.error(.init(outer: square, holes: [beside])) == AreaError(location(1, 2), .holeOutside))
    #expect(
      Self.error(.init(outer: square, holes: [Self.square(30), Self.square(10)]))
        == AreaError(location(1, 3), .inside(location(1, 2))))
    #expect(
      Self.error(.init(outer: square), .init(outer: Self.square(10)))
        == AreaError(location(2, 1), .inside(location(1, 1))))
    let meeting = Self.square(50, north: 100)
    #expect(Self.error(.init(outer: square), .init(outer: meeting))?.location.polygon == 1)
    // Sizes.
    #expect(Self.error(.init(outer: Self.square(0.05)))?.reason == .tooSmall)
    #expect(Self.error(.init(outer: Self.square(1800)))?.reason == nil)
    #expect(Self.error(.init(outer: Self.square(3000)))?.reason == .tooLarge)
    var mistyped = Self.square(50)
    mistyped[2] = Self.place(47.7759, 9.1833)
    #expect(Self.error(.init(outer: mistyped)) == AreaError(location(1, 1, 3), .tooLarge))
    let round = (0..<201).map { number in
      let angle = Double(number) / 201 * 2 * .pi
      return Self.place(48.7 + 0.01 * sin(angle), 9.1 + 0.01 * cos(angle))
    }
    #expect(Self.error(.init(outer: round)) == AreaError(location(1, 1, 201), .tooMany))
    #expect(Self.error(.init(outer: Array(round.dropLast()))) == nil)
    let polar = Self.ring([(74.9999, 0), (74.9999, 0.001), (75.0001, 0.001)])
    #expect(Self.error(.init(outer: polar)) == AreaError(location(1, 1, 3), .polar))
    let around = Self.ring([(10, 179.999), (10, -179.999), (10.001, -179.999), (10.001, 179.999)])
    #expect(Self.error(.init(outer: around)) == AreaError(location(1, 1, 1), .antimeridian))
  }
}
