import Booking
import Domain
import Encoding
import FleetTestSupport
import Operator
import StepProtocol
import Store
import Testing
import Web

@testable import API

@Suite struct StatisticsTests {
  @Test func `a month begins on its first day, and another follows`() {
    let december = Month(of: Timestamp.read("2027-12-31T23:59:59Z")!)
    #expect(december.text == "2027-12" && december.begin == Timestamp.read("2027-12-01T00:00:00Z"))
    #expect(december.next.text == "2028-01" && december.previous.text == "2027-11")
    #expect(Month(of: Timestamp.read("2028-02-01T00:00:00Z")!).next.text == "2028-03")
    #expect(Month(of: 0).previous.text == "1970-01")
  }

  /// The bench's clock begins on 2027-01-15 at 08:00.
  @Test(arguments: Engine.forRules)
  func `use is counted by vehicle and month`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let key = SigningKey()
    var last: EventPlace?
    func report(_ kind: VehicleEvent.Kind, token: String? = nil, code: String? = nil) async throws {
      let event = VehicleEvent(
        vehicle: UUID(try await bench.id(of: "car"))!, sequence: (last?.sequence ?? 0) + 1,
        previous: last?.digest ?? .random(),
        .init(kind, time: 1, step: StepID("left"), position: .open, token: token, code: code))
      let signed = try SignedEvent(kept: Array(event.signed(by: key).utf8))
      last = signed.place
      let now = bench.now
      try await bench.store.write { _ = try EventTable.take(signed, at: now, in: $0) }
    }
    #expect(try await bench.service.statistics(since: nil) == [])
    let ride = try await bench.ride(TestDevice())
    try await report(.began, token: "a")
    try await report(.ended)
    // By the controller itself.
    try await report(.began)
    for code in ["wrong_step", "wrong_step", "stale"] { try await report(.refused, code: code) }
    bench.wait(5400)
    let january: JSON = [
      "month": "2027-01", "vehicle": "car", "bookings": 1, "hours": .number(1.5), "openings": 1,
      "refusals": ["stale": 1, "wrong_step": 2],
    ]
    #expect(try await bench.service.statistics(since: nil) == [january])
    _ = try await bench.service.change(ride.id, of: "ada", .end)
    // Neither used nor begun.
    _ = try await bench.book("van", 0, 1)
    _ = try await bench.book("car", 24, 25)
    bench.wait(20 * 86_400)
    let other = try await bench.ride(TestDevice(), "van")
    bench.wait(3600)
    _ = try await bench.service.change(other.id, of: "ada", .end)
    let february: JSON = [
      "month": "2027-02", "vehicle": "van", "bookings": 1, "hours": .number(1), "openings": 0, "refusals": [:],
    ]
    #expect(try await bench.service.statistics(since: nil) == [january, february])
    #expect(try await bench.service.statistics(since: bench.now) == [february])
    #expect(try await bench.service.statistics(since: bench.now + 1_000_000_000) == [february])
    bench.wait(400 * 86_400)
    #expect(try await bench.service.statistics(since: nil) == [])
    #expect(try await bench.service.statistics(since: 0) == [january, february])
    bench.wait(3650 * 86_400)
    #expect(try await bench.service.statistics(since: 0) == [])
  }

  @Test(arguments: Engine.forRules)
  func `the export has what vehicles have reported of the account's bookings`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.ride(TestDevice())
    let jti = try await bench.store.read { try $0.run("SELECT jti FROM access")[0].text("jti") }
    for (sequence, token) in [(1, jti), (2, "another's")] as [(Int64, String)] {
      let event = VehicleEvent(
        vehicle: UUID(try await bench.id(of: "car"))!, sequence: sequence, previous: .random(),
        .init(.began, time: 1, step: StepID("left"), position: .open, token: token))
      let signed = try SignedEvent(kept: Array(event.signed(by: SigningKey()).utf8))
      let now = bench.now
      try await bench.store.write { _ = try EventTable.take(signed, isLast: true, at: now, in: $0) }
    }
    let exported = try await bench.service.export("ada").first { $0.name == "events" }?.value
    #expect(
      exported == [
        [
          "booking": .string(ride.id), "time": "1970-01-01T00:00:01Z", "kind": "began", "step": "left",
          "position": "open",
        ]
      ])
    #expect(try await bench.service.export("bob").first { $0.name == "events" }?.value == [])
  }
}

@Suite struct ReissueTests {
  @Test(arguments: Engine.forRules)
  func `a rider's access is made new`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let device = TestDevice()
    let ride = try await bench.ride(device)
    try await bench.tell()
    #expect(try await bench.standings() == ["given"])
    let answer = try await bench.service.support("ada@example.org", reissues: true)
    #expect(answer["reissued"] == .string(ride.id))
    #expect(try await bench.standings() == ["withdrawn"])
    #expect(try await bench.untold() == ["car"])
    // The rider's program asks again.
    _ = try await bench.access(to: ride.id, device)
    #expect(try await bench.standings().sorted() == ["given", "withdrawn"])
    // By the booking, and looked at without that.
    #expect(try await bench.service.support(String(ride.id.prefix(8)), reissues: true)["reissued"] == .string(ride.id))
    #expect(try await bench.service.support("ada")["reissued"] == .null)
  }

  @Test func `it is refused where the rider could fetch nothing`() async throws {
    let bench = try await Bench()
    await #expect(throws: FleetRefusal.notBegunYet) { try await bench.service.support("ada", reissues: true) }
    let later = try await bench.book("van", 1, 2)
    await #expect(throws: FleetRefusal.notBegunYet) { try await bench.service.support(later.id, reissues: true) }
    let (device, ride) = (TestDevice(), try await bench.ride(TestDevice()))
    // Two devices of it have access, and there is room for one.
    for _ in 2..<AccessRules.most { _ = try await bench.access(to: ride.id, device) }
    await #expect {
      try await bench.service.support("ada", reissues: true)
    } throws: { error in
      if case .tooMuchAccess = error as? FleetRefusal { true } else { false }
    }
    #expect(try await bench.standings().allSatisfy { $0 == "given" })
    // A device that gets none any more takes no room.
    _ = try await bench.service.revoke(.device(device.thumbprint))
    #expect(try await bench.service.support("ada", reissues: true)["reissued"] == .string(ride.id))
    try await bench.service.setService(.suspended, of: "car")
    await #expect(throws: FleetRefusal.outOfService) { try await bench.service.support("ada", reissues: true) }
    try await bench.service.setService(.inService, of: "car")
    await #expect(throws: Problem.self) { try await bench.service.support("0f3a12bc", reissues: true) }
    bench.wait(3600)
    await #expect(throws: FleetRefusal.severalBegun(2)) { try await bench.service.support("ada", reissues: true) }
    #expect(try await bench.service.support(later.id, reissues: true)["reissued"] == .string(later.id))
    try await bench.run("UPDATE account SET state = 'suspended' WHERE id = 'ada'")
    await #expect(throws: FleetRefusal.suspended) { try await bench.service.support(ride.id, reissues: true) }
  }
}
