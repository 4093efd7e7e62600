import Booking
import Domain
import Encoding
import FleetTestSupport
import GeoJSON
import Geography
import HTTPTypes
import Operator
import StepProtocol
import Store
import Testing

@testable import API

private typealias Corner = (latitude: Double, longitude: Double)

private let corners: [Corner] = [
  (48.77580, 9.18290), (48.77580, 9.18372), (48.77602, 9.18372), (48.77602, 9.18290),
]

private func polygon(_ corners: [Corner]) -> JSON {
  let ring = (corners + corners.prefix(1)).map { JSON.array([.number($0.longitude), .number($0.latitude)]) }
  return ["type": "Polygon", "coordinates": .array([.array(ring)])]
}

/// A yard of 24 m by 60 m, and places: in it, and 100 m to the north of it.
private let yard = polygon(corners)
private let inYard = Coordinate(latitude: 48.7759, longitude: 9.1833)!
private let outside = Coordinate(latitude: 48.77602 + 100 / 111_200.0, longitude: 9.1833)!

@Suite struct ZoneTests {
  @Test(arguments: Engine.forRules)
  func `a zone is added, found by its name, and removed`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let made = try await bench.service.addZone("Yard", isParking: true, yard)
    #expect(made.area.squareMetres == 1475 && made.isParking)
    _ = try await bench.service.addZone("Area 2", isParking: false, yard)
    #expect(try await bench.service.zones().map(\.name) == ["Area 2", "Yard"])
    #expect(try await bench.service.zone(named: "yard") == made)
    #expect(try await bench.service.zone(made.id) == made)
    await #expect(throws: FleetRefusal.zoneTaken) {
      try await bench.service.addZone("Yard", isParking: false, yard)
    }
    await #expect(throws: FleetRefusal.badZoneName) {
      try await bench.service.addZone("a\nb", isParking: false, yard)
    }
    _ = try await bench.service.removeZone(named: "Yard")
    await #expect(throws: FleetRefusal.noSuchZone) { try await bench.service.zone(named: "Yard") }
    #expect(try await bench.service.zones().map(\.name) == ["Area 2"])
    _ = try await bench.service.addZone("AREA 2", isParking: false, yard)
    await #expect(throws: FleetRefusal.severalZones("area 2")) { try await bench.service.zone(named: "area 2") }
    await #expect(throws: FleetRefusal.severalZones("area 2")) { try await bench.service.removeZone(named: "area 2") }
    #expect(try await bench.service.removeZone(named: "Area 2") == "Area 2")
  }

  @Test func `there are only so many zones`() async throws {
    let bench = try await Bench()
    for number in 0..<ZoneTable.most {
      try await bench.run(
        "INSERT INTO zone (id, name, is_parking, area, created) VALUES (?, ?, 0, '', 0)",
        [.text("\(number)"), .text("zone \(number)")])
    }
    await #expect(throws: FleetRefusal.tooManyZones(500)) {
      try await bench.service.addZone("Yard", isParking: true, yard)
    }
  }

  @Test func `an area whose axes are exchanged is refused where vehicles tell`() async throws {
    let bench = try await Bench()
    let swapped = polygon(corners.map { ($0.longitude, $0.latitude) })
    // No vehicle has a place: nobody can know.
    _ = try await bench.service.addZone("Somewhere", isParking: false, swapped)
    try await bench.service.setPlace(inYard, of: "car")
    await #expect {
      try await bench.service.addZone("Yard", isParking: false, swapped)
    } throws: { error in "\(error)".contains("polygon 1, ring 1, vertex 1: the axes are swapped") }
    _ = try await bench.service.addZone("Yard", isParking: false, yard)
  }

  /// What a bench says of the end of a booking: its parking, without the time.
  private func parked(_ booking: FleetBooking) -> String? { booking.parking.map { "\($0.zone) \($0.metres)" } }

  @Test(arguments: Engine.forRules)
  func `a booking ends anywhere, and says how far the parking zone is`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    func end(placed place: Coordinate?, wait: Int64 = 0) async throws -> String? {
      bench.wait(60)
      let booking = try await bench.ride(TestDevice())
      bench.wait(60)
      try await bench.service.setPlace(place, of: "car")
      bench.wait(wait)
      let ended = try await bench.service.change(booking.id, of: "ada", .end)
      #expect(ended.booking.state(at: bench.now) == .ended)
      // Asked again, it says the same, wherever the vehicle is by then, and the log says it once.
      let lines = bench.log.text.count { $0 == "\n" }
      try await bench.service.setPlace(nil, of: "car")
      let again = try await bench.service.change(booking.id, of: "ada", .end)
      #expect(again.parking == ended.parking && again.booking == ended.booking)
      #expect(bench.log.text.count { $0 == "\n" } == lines)
      #expect(try await bench.service.booking(booking.id, of: "ada").parking == ended.parking)
      return parked(ended)
    }
    #expect(try await end(placed: inYard) == nil)
    _ = try await bench.service.addZone("Park", isParking: false, yard)
    #expect(try await end(placed: inYard) == nil)
    _ = try await bench.service.addZone("Yard", isParking: true, yard)
    #expect(try await end(placed: inYard) == "Yard 0")
    #expect(!bench.log.text.contains("outside the parking zones"))
    #expect(try await end(placed: outside) == "Yard 100")
    #expect(bench.log.text.contains("outside the parking zones booking="))
    #expect(try await end(placed: nil) == nil)
    // Who knows where it was driven in a quarter of an hour?
    #expect(try await end(placed: inYard, wait: 900) == "Yard 0")
    #expect(try await end(placed: inYard, wait: 901) == nil)
  }

  @Test(arguments: Engine.forRules)
  func `a place says nothing where the vehicle may have been driven since`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    _ = try await bench.service.addZone("Yard", isParking: true, yard)
    // From before the booking.
    try await bench.service.setPlace(inYard, of: "car")
    bench.wait(1)
    let first = try await bench.ride(TestDevice())
    #expect(parked(try await bench.service.change(first.id, of: "ada", .end)) == nil)
    // A step has come to rest later, and no place was told with that.
    bench.wait(60)
    let second = try await bench.ride(TestDevice())
    try await bench.service.setPlace(inYard, of: "car")
    bench.wait(1)
    let (vehicle, now) = (UUID(try await bench.id(of: "car"))!, bench.now)
    let event = VehicleEvent(
      vehicle: vehicle, sequence: 1, previous: .random(),
      .init(.ended, time: now, step: StepID("left"), position: .open))
    let signed = try SignedEvent(kept: Array(event.signed(by: SigningKey()).utf8))
    try await bench.store.write { _ = try EventTable.take(signed, at: now, in: $0) }
    #expect(parked(try await bench.service.change(second.id, of: "ada", .end)) == nil)
    // It is forgotten with what vehicles have reported.
    bench.wait(60)
    let third = try await bench.ride(TestDevice())
    try await bench.service.setPlace(inYard, of: "car")
    #expect(parked(try await bench.service.change(third.id, of: "ada", .end)) == "Yard 0")
    bench.wait((FleetService.retentionDays + 1) * 86_400)
    try await bench.service.tidy()
    #expect(try await bench.service.booking(third.id, of: "ada").parking == nil)
  }

  @Test func `while somebody uses a vehicle, no other account sees where it is`() async throws {
    let bench = try await Bench()
    _ = try await bench.service.addZone("Yard", isParking: true, yard)
    let id = try await bench.id(of: "car")
    let booking = try await bench.ride(TestDevice())
    try await bench.service.setPlace(inYard, of: "car")
    func seen(by account: String) async throws -> [Bool] {
      let listed = try await bench.ask(.get, "/v1/vehicles", by: "\(account) phone").json["vehicles"]?.array ?? []
      let shown = try await bench.ask(.get, "/v1/vehicles/\(id)", by: "\(account) phone").json
      let found = try await bench.ask(.get, "/v1/vehicles?zone=Yard", by: "\(account) phone").json["vehicles"]?.array
      return [
        listed.first { $0["name"] == "car" }?["place"] != nil, shown["place"] != nil, shown["placed_at"] != nil,
        found?.count == 1,
      ]
    }
    #expect(try await seen(by: "ada") == [true, true, true, true])
    #expect(try await seen(by: "bob") == [false, false, false, false])
    _ = try await bench.service.change(booking.id, of: "ada", .end)
    #expect(try await seen(by: "bob") == [true, true, true, true])
    // While the rider's access is made new, or was longer than it lasts.
    let again = try await bench.ride(TestDevice())
    _ = try await bench.service.support("ada", reissues: true)
    #expect(try await bench.standings().contains("given") == false)
    #expect(try await seen(by: "bob") == [false, false, false, false])
    _ = try await bench.service.change(again.id, of: "ada", .end)
    // One that ends by time: its access opens a step for a while, in front of its rider's home.
    _ = try await bench.ride(TestDevice())
    bench.wait(3 * hour + 600)
    try await bench.service.tidy()
    #expect(try await seen(by: "bob") == [false, false, false, false])
    bench.wait(600)
    #expect(try await seen(by: "bob") == [true, true, true, true])
  }

  @Test func `a zone that cannot be read keeps no booking from ending, and can be removed`() async throws {
    let bench = try await Bench()
    let device = TestDevice()
    _ = try await bench.service.addZone("Yard", isParking: true, yard)
    _ = try await bench.service.addZone("Other yard", isParking: true, yard)
    try await bench.run("UPDATE zone SET area = '{}' WHERE name = 'Yard'")
    bench.service.known.forget()
    let booking = try await bench.ride(device)
    try await bench.service.setPlace(inYard, of: "car")
    let ended = try await bench.service.change(booking.id, of: "ada", .end)
    #expect(ended.booking.state(at: bench.now) == .ended && parked(ended) == "Other yard 0")
    #expect(try await bench.service.removeZone(named: "Yard") == "Yard")
    #expect(try await bench.service.zones().map(\.name) == ["Other yard"])
  }

  @Test func `riders read zones, and find the vehicles in one`() async throws {
    let bench = try await Bench()
    let zone = try await bench.service.addZone("The Yard", isParking: true, yard)
    let listed = try await bench.ask(.get, "/v1/zones")
    #expect(
      listed.json["zones"]?.array == [
        [
          "id": .string(zone.id), "name": "The Yard", "parking": true, "square_metres": 1475,
          "middle": ["latitude": .number(48.77591), "longitude": .number(9.18331)],
        ]
      ])
    let shown = try await bench.ask(.get, "/v1/zones/\(zone.id)")
    #expect(try GeoJSON.area(in: #require(shown.json["area"])) == zone.area)
    func inZone(_ name: String = "The%20Yard") async throws -> [String?] {
      let answer = try await bench.ask(.get, "/v1/vehicles?zone=\(name)")
      return (answer.json["vehicles"]?.array ?? []).map { $0["name"]?.string }
    }
    #expect(try await inZone() == [])
    try await bench.service.setPlace(inYard, of: "car")
    try await bench.service.setPlace(outside, of: "van")
    #expect(try await inZone() == ["car"])
    #expect(try await bench.ask(.get, "/v1/vehicles?zone=Nowhere").status == 404)
    _ = try await bench.service.addZone("THE YARD", isParking: true, yard)
    #expect(try await bench.ask(.get, "/v1/vehicles?zone=the%20yard").code == "ambiguous")
    _ = try await bench.service.removeZone(named: "THE YARD")
    #expect(try await bench.ask(.get, "/v1/zones/\(UUID.random())").status == 404)
    #expect(try await bench.ask(.get, "/v1/zones", by: nil).status == 401)
    for number in 1...100 {
      _ = try await bench.service.addZone("zone \(number)", isParking: false, yard)
    }
    let page = try await bench.ask(.get, "/v1/zones")
    #expect(page.json["zones"]?.array?.count == 100)
    let next = try #require(page.json["next"]?.string?.replacing(" ", with: "%20"))
    #expect(try await bench.ask(.get, "/v1/zones?after=\(next)").json["zones"]?.array?.count == 1)
  }

  @Test func `the operator's answers to what is no zone have one line each`() async throws {
    let bench = try await Bench()
    let router = bench.router(isOperators: true)
    func add(_ body: JSON) async throws -> Bench.Answer { try await bench.ask(.post, "/zones", body, router: router) }
    let bow = polygon([corners[0], corners[2], corners[1], corners[3]])
    for (body, status, detail) in [
      (["name": "Yard", "parking": true], 400, "area is GeoJSON"),
      (["name": "Yard", "parking": 1, "area": yard], 400, "parking is true or false"),
      (["name": "", "parking": true, "area": yard], 400, "name is a text"),
      (["name": "Yard", "parking": true, "area": [:]], 422, "neither a Polygon"),
      (["name": "Yard", "parking": true, "area": bow], 422, "polygon 1, ring 1, vertex"),
    ] as [(JSON, Int, String)] {
      let answer = try await add(body)
      #expect(answer.status == status && answer.detail?.contains(detail) == true, "\(answer.text)")
    }
    #expect(try await add(["name": "Yard", "parking": true, "area": yard]).status == 201)
    #expect(try await add(["name": "Yard", "parking": true, "area": yard]).code == "taken")
    try await bench.service.setPlace(outside, of: "car")
    let status = try await bench.ask(.get, "/status", router: router).json["vehicles"]?.array ?? []
    #expect(status.map { $0["parking"]?["zone"] } == ["Yard", nil])
    #expect(try await bench.ask(.post, "/zone/remove", ["name": "yard"], router: router).status == 200)
    #expect(try await bench.ask(.post, "/zone", ["name": "Yard"], router: router).status == 404)
  }
}
