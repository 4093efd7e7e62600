import Domain
import Geography
import Testing
import Traffic

/// Where the vehicle is, as it was surveyed, as a receiver says, or as the feed shows it.
@Suite("Vehicle's place") struct VehiclePlaceTests {
  static let here = Coordinate(latitude: 48.7758, longitude: 9.1829)!
  static let plane = LocalPlane(at: here)

  private func box(
    _ id: String = "own", at point: Vector = .zero, heading: Double = 0.4, length: Double? = 4.6, width: Double? = 1.9,
    speed: Double = 0
  ) -> RoadObject {
    RoadObject(
      id: id, category: .car, position: Self.plane.place(of: point)!, velocity: Vector(x: speed, y: 0),
      heading: heading, length: length, width: width)
  }

  private func frame(_ objects: [RoadObject], section: String = "S1", at time: Double) -> FeedFrame {
    FeedFrame(section: section, time: UnixTime(microseconds: Int64(time * 1e6)), objects: objects)
  }

  private func searching(error: Double = 10) -> VehiclePlace {
    VehiclePlace(
      length: 4.6, width: 1.9, given: .init(position: Self.here, heading: 0, error: error), heading: nil,
      isInFeed: true)
  }

  @Test("a surveyed place is just that, and neither a receiver nor a feed changes it")
  func given() {
    let survey = VehiclePlace.Place(position: Self.here, heading: 1, error: 0.25)
    var place = VehiclePlace(length: 4.6, width: 1.9, given: survey, heading: nil, isInFeed: false)
    place.take(.init(position: Coordinate(latitude: 1, longitude: 1)!, error: 1, course: 2), at: 1)
    for index in 0..<5 { place.look(in: frame([box(at: Vector(x: 3, y: 0))], at: Double(index)), at: Double(index)) }
    #expect(place.current(at: 1e6) == survey)
  }

  @Test("the box is found by its size, among those that stand near enough, and its place is the mean of what was seen")
  func own() throws {
    var place = searching()
    let others = [
      box("long", at: Vector(x: 4, y: 0), length: 5.2), box("wide", at: Vector(x: -4, y: 0), width: 2.5),
      box("drives", at: Vector(x: 0, y: 4), speed: 1), box("unknown", at: Vector(x: 0, y: -4), length: nil),
      box("far", at: Vector(x: 11, y: 0)),
    ]
    for index in 0..<50 {
      let time = Double(index) * 0.04
      let noise = Vector(x: index % 2 == 0 ? 0.4 : -0.4, y: index % 4 < 2 ? 0.3 : -0.3)
      place.look(in: frame(others + [box(at: Vector(x: 2, y: 1) + noise, length: 4.2, width: 2.3)], at: time), at: time)
      #expect((place.current(at: time) == nil) == (time < 0.7))
    }
    let found = try #require(place.current(at: 2))
    #expect((Self.plane.point(of: found.position) - Vector(x: 2, y: 1)).length < 0.05)
    #expect(abs(found.heading - 0.4) < 1e-9)
  }

  @Test("a heading that the feed does not know is none", arguments: [(10, true), (3, false), (2, false)])
  func reversedNowAndThen(every: Int, isKnown: Bool) {
    var place = searching()
    for index in 0..<300 {
      let time = Double(index) * 0.04
      place.look(in: frame([box(heading: index % every == 0 ? 0.4 + .pi : 0.4)], at: time), at: time)
    }
    let found = place.current(at: 12)
    #expect((found != nil) == isKnown)
    if let found { #expect(abs(found.heading - 0.4) < 1e-6) }
  }

  @Test("where the feed and the last drive disagree about front and rear, the sides are not known", arguments: [0, 1])
  func reversed(turned: Double) throws {
    var place = VehiclePlace(length: 4.6, width: 1.9, given: nil, heading: nil, isInFeed: true)
    place.take(.init(position: Self.here, error: 5, course: 0.5 + turned * .pi), at: 0)
    for index in 0..<50 {
      let time = Double(index) * 0.04
      place.look(in: frame([box()], at: time), at: time)
    }
    let found = try #require(place.current(at: 2))
    #expect((found.error > TrafficGuard.sidesError) == (turned == 1))
  }

  @Test("two that fit are one too many, unless they are the same one in two sections")
  func twins() {
    var place = searching()
    for index in 0..<5 {
      let time = Double(index) * 0.04
      place.look(in: frame([box(), box("b", at: Vector(x: 3, y: 3))], at: time), at: time)
    }
    #expect(place.current(at: 0.2) == nil && place.blindness == .twins)
    // The other one drives away.
    for index in 5..<50 {
      let time = Double(index) * 0.04
      place.look(in: frame([box(), box("b", at: Vector(x: 3, y: 3), speed: 2)], at: time), at: time)
    }
    #expect(place.current(at: 2) != nil)

    place = searching()
    for index in 0..<20 {
      let time = Double(index) * 0.04
      let section = index % 2 == 0 ? "S1" : "S2"
      place.look(in: frame([box(at: Vector(x: index % 2 == 0 ? 0 : 0.4, y: 0))], section: section, at: time), at: time)
    }
    #expect(place.current(at: 1) != nil)
  }

  @Test(
    "another section's box is not the vehicle while one section shows another", arguments: [-2.0, -0.02, 0, 0.02, 2])
  func rival(after head: Double) {
    var place = searching()
    func look(_ section: String, from begin: Double, at point: Vector, _ time: Double) {
      if time >= begin { place.look(in: frame([box(at: point)], section: section, at: time), at: time) }
    }
    // Which one begins first, and by how much, does not matter.
    for index in 0..<100 {
      let time = Double(index) * 0.04
      look("S1", from: max(0, head), at: .zero, time)
      look("S3", from: max(0, -head), at: Vector(x: -6, y: 6), time + 0.01)
      let begun = abs(head)
      #expect(place.current(at: time + 0.02) == nil || time < begun, "\(time)")
      if time > begun + 0.1 { #expect(place.blindness == .twins) }
    }
    // A section that has shown none says nothing by one that comes: it parks there.
    place = searching()
    for index in 0..<100 {
      let time = Double(index) * 0.04
      let parked = time < 2 ? [] : [box("b", at: Vector(x: -6, y: 6))]
      place.look(in: frame([box()], at: time), at: time)
      place.look(in: frame(parked, section: "S3", at: time), at: time)
      #expect((place.current(at: time) != nil) == (time >= 0.7))
    }
  }

  @Test("a vehicle that drives away is lost at once, and one that the feed loses after a while")
  func gone() {
    var place = searching()
    for index in 0..<20 { place.look(in: frame([box()], at: Double(index) * 0.04), at: Double(index) * 0.04) }
    #expect(place.current(at: 0.8) != nil)
    var driven = place
    driven.look(in: frame([box(speed: 3)], at: 0.84), at: 0.84)
    #expect(driven.current(at: 0.84) == nil)
    place.look(in: frame([], at: 1), at: 1)
    #expect(place.current(at: 1) != nil)
    place.look(in: frame([], at: 3), at: 3)
    #expect(place.current(at: 3) == nil)
  }

  @Test("a receiver's fix is good for ten seconds, and its course for as long as the vehicle stands")
  func receiver() {
    var place = VehiclePlace(length: 4.6, width: 1.9, given: nil, heading: nil, isInFeed: false)
    #expect(place.current(at: 0) == nil && place.rough(at: 0) == nil)
    place.take(.init(position: Self.here, error: 3, course: nil), at: 0)
    #expect(place.current(at: 0) == nil && place.rough(at: 0) != nil)
    place.take(.init(position: Self.here, error: 3, course: 2), at: 1)
    place.take(.init(position: Self.here, error: 3, course: nil), at: 2)
    #expect(place.current(at: 11) == .init(position: Self.here, heading: 2, error: 3))
    #expect(place.current(at: 13) == nil)
    place.take(.init(position: Self.here, error: 10.5, course: 2), at: 13)
    place.take(nil, at: 13)
    #expect(place.current(at: 13) == nil)
    #expect(
      VehiclePlace(length: 1, width: 1, given: nil, heading: 0.5, isInFeed: false).current(at: 0) == nil)
  }
}
