import Foundation
import Geography
import Testing

@Suite("Geography") struct GeographyTests {
  /// Points that PROJ 9.5.1 gives: `+proj=topocentric +ellps=WGS84 +lat_0=LAT +lon_0=LON`, of places at height 0.
  /// Made with pyproj 3.7.2; each is the origin, the place, and north and east in metres.
  static let projected: [(Double, Double, Double, Double, north: Double, east: Double)] = [
    (48.7758, 9.1829, 48.7767, 9.1829, 100.0849, 0.0),
    (48.7758, 9.1829, 48.7758, 9.1843, 0.0009, 102.8995),
    (48.7758, 9.1829, 48.7740, 9.1802, -200.1662, -198.4562),
    (-33.9, 18.4, -33.9015, 18.4012, -166.3815, 110.9895),
    (65.0, -18.0, 65.001, -18.002, 111.4941, -94.3475),
  ]

  @Test("the plane is the topocentric one of PROJ to 1 cm at 300 m", arguments: projected)
  func plane(
    _ latitude: Double, _ longitude: Double, _ toLatitude: Double, _ toLongitude: Double, north: Double, east: Double
  ) throws {
    let plane = LocalPlane(at: try #require(Coordinate(latitude: latitude, longitude: longitude)))
    let place = try #require(Coordinate(latitude: toLatitude, longitude: toLongitude))
    let point = plane.point(of: place)
    #expect((point - Vector(x: north, y: east)).length < 0.01)
    let back = try #require(plane.place(of: point))
    #expect(back.distance(to: place) < 1e-6)
  }

  @Test("the plane goes on over the 180th meridian")
  func dateLine() throws {
    let plane = LocalPlane(at: try #require(Coordinate(latitude: 0, longitude: 179.9999)))
    let point = plane.point(of: try #require(Coordinate(latitude: 0, longitude: -179.9999)))
    #expect(abs(point.y - 22.26) < 0.01)
    #expect(try #require(plane.place(of: point)).longitude < 0)
  }

  @Test("what is no place is refused")
  func coordinates() {
    for (latitude, longitude) in [(90.1, 0), (-91, 0), (0, 180.5), (.nan, 0), (0, .infinity), (0, .nan)] {
      #expect(Coordinate(latitude: latitude, longitude: longitude) == nil)
    }
    #expect(Coordinate(latitude: -90, longitude: 180) != nil)
  }

  @Test("distance and bearing go the short way")
  func bearing() throws {
    let here = try #require(Coordinate(latitude: 48.7758, longitude: 9.1829))
    let there = try #require(Coordinate(latitude: 48.7758, longitude: 9.1843))
    #expect(abs(here.distance(to: there) - 102.88) < 0.6)
    #expect(abs(here.bearing(to: there) - 90) < 0.01)
    #expect(abs(there.bearing(to: here) - 270) < 0.01)
    #expect(here.distance(to: here) == 0)
  }

  @Test("a pose turns ways and back")
  func pose() {
    // A vehicle that points east: what is north of it is at its left.
    let pose = Pose(position: Vector(x: 10, y: 20), heading: .pi / 2)
    let inner = pose.inner(point: Vector(x: 11, y: 20))
    #expect((inner - Vector(x: 0, y: -1)).length < 1e-12)
    #expect((pose.outer(point: inner) - Vector(x: 11, y: 20)).length < 1e-12)
  }

  @Test("boxes touch where they have a point in common, and their distance is that of the nearest points")
  func boxes() {
    var dice = SystemRandomNumberGenerator()
    func box() -> Box {
      func some(_ range: ClosedRange<Double>) -> Double { .random(in: range, using: &dice) }
      return Box(
        center: Vector(x: some(-5...5), y: some(-5...5)), heading: some(-4...4), length: some(0.5...5),
        width: some(0.2...3))
    }
    for _ in 0..<200 {
      let (a, b) = (box(), box())
      // Points of one box, as a grid, and how far the nearest one is from the other.
      var nearest = Double.infinity
      let corners = a.corners
      let (along, aside) = (corners[3] - corners[0], corners[1] - corners[0])
      for i in 0...40 {
        for j in 0...40 {
          nearest = min(nearest, b.distance(to: corners[0] + along * (Double(i) / 40) + aside * (Double(j) / 40)))
        }
      }
      #expect(a.distance(to: b) <= nearest + 1e-9)
      #expect(a.distance(to: b) >= nearest - 0.15)
      #expect(abs(a.distance(to: b) - b.distance(to: a)) < 1e-9)
      #expect(a.touches(b) == b.touches(a))
      if nearest == 0 { #expect(a.touches(b)) }
    }
  }
}
