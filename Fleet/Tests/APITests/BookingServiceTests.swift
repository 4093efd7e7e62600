import Booking
import Domain
import Encoding
import FleetTestSupport
import HTTPTypes
import StepProtocol
import Store
import Testing
import Web

@testable import API

@Suite struct BookingServiceTests {
  @Test(arguments: Engine.forRules)
  func `an operator names a booking by how its id begins`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let id = try await bench.book().id
    for text in [
      id, id.uppercased(), String(id.prefix(4)), String(id.prefix(8)), String(id.prefix(9)), String(id.prefix(35)),
      "(\(id.prefix(8)))", " \(id.prefix(8)) ",
    ] {
      #expect(try await bench.service.bookingMeant(by: text) == id, "\(text)")
    }
    // These are nobody's.
    for text in ["", "%", "________", "%%%%%%%%", String(id.prefix(3)), "x" + id.dropFirst()] {
      await #expect(throws: FleetRefusal.noSuchBooking, "\(text)") { try await bench.service.bookingMeant(by: text) }
    }
    try await bench.run(
      "UPDATE booking SET id = ? WHERE id = ?", [.text("0f3a12bc-1"), .text(try await bench.book("van").id)])
    try await bench.run(
      "UPDATE booking SET id = ? WHERE id = ?", [.text("0f3a12bc-2"), .text(try await bench.book("van", 4, 5).id)])
    await #expect(throws: FleetRefusal.severalBookings("0f3a12bc")) {
      try await bench.service.bookingMeant(by: "0F3A12BC")
    }
    #expect(try await bench.service.bookingMeant(by: "0f3a12bc-2") == "0f3a12bc-2")
    #expect(try await bench.service.openBookings().map(\.email) == Array(repeating: "ada@example.org", count: 3))
  }

  @Test(arguments: Engine.forRules)
  func `bookings come in pages, each once`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let open = try await bench.book("car", 1, 3)
    let count = 2 * BookingTable.page + 50
    for number in 0..<count {
      try await bench.run(
        """
        INSERT INTO booking (id, vehicle, account, subject, begins, ends, steps, state, has_access, version, created)
        SELECT ?, id, 'ada', 'b', ?, ?, 'left', 'ended', 1, 1, 0 FROM vehicle WHERE name = 'car'
        """,
        // Some begin at the same time.
        [.text(UUID.random().description), .integer(Int64(number / 3 * 100)), .integer(Int64(number / 3 * 100 + 60))])
    }
    var (found, last, pages) = ([FleetBooking](), String?.none, 0)
    repeat {
      let (page, next) = try await bench.service.bookings(of: "ada", after: last)
      found += page
      last = next
      pages += 1
    } while last != nil
    #expect(pages == 3 && found.count == count + 1 && Set(found.map(\.id)).count == count + 1)
    #expect(found.first?.id == open.id)
    #expect(
      found.dropFirst().map(\.booking.interval.begin) == found.dropFirst().map(\.booking.interval.begin).sorted(by: >))
    #expect(try await bench.service.bookings(of: "bob").0.isEmpty)
    // Another's booking is no place to go on from.
    #expect(try await bench.ask(.get, "/v1/bookings?after=\(open.id)", by: "bob phone").status == 404)
    #expect(try await bench.ask(.get, "/v1/bookings?after=x").status == 400)
    let first = try await bench.ask(.get, "/v1/bookings")
    let next = try #require(first.json["next"]?.string)
    #expect(try await bench.ask(.get, "/v1/bookings?after=\(next)").json["bookings"]?.array?.count == BookingTable.page)
  }

  @Test(arguments: Engine.forRules)
  func `a booking is made, found and listed`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let made = try await bench.book("car", 1, 3, steps: [StepID("left")!])
    #expect(made.state == .booked && made.version == 1 && made.name == "car")
    #expect(made.steps == [StepID("left")!] && made.interval == bench.interval(1, 3))
    let found = try await bench.service.booking(made.id, of: "ada")
    #expect(BookingForm(found, at: bench.now) == made)
    #expect(found.subject.wholeMatch(of: /b-[0-9A-F]{16}/) != nil)
    let later = try await bench.book("van", 5, 6)
    #expect(try await bench.service.bookings(of: "ada").0.map(\.id) == [later.id, made.id])
    #expect(try await bench.service.bookings(of: "bob").0.isEmpty)
    #expect(try await bench.service.openBookings().map(\.booking.id) == [made.id, later.id])
    #expect(await refusal { _ = try await bench.service.booking(made.id, of: "bob") } == .noSuchBooking)
    #expect(await refusal { _ = try await bench.service.booking("none", of: nil) } == .noSuchBooking)
    #expect(try await bench.events(of: "car") == ["provider_drop_off", "reservation_start"])
  }

  @Test(arguments: Engine.forRules)
  func `who comes too late is told the next three times`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.book("car", 1, 3)
    #expect(
      await refusal { try await bench.book("car", 2, 4, by: "bob") }
        == .taken(next: [bench.interval(3, 5), bench.interval(5, 7), bench.interval(7, 9)]))
    #expect(await refusal { try await bench.book("car", 3, 5, by: "bob") } == nil)
    #expect(await refusal { try await bench.book("van", 2, 4, by: "bob") } == nil)
  }

  @Test(arguments: Engine.forRules)
  func `of all who want one hour at once, one gets it`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let won = await withTaskGroup(of: Bool.self) { group in
      for number in 0..<16 {
        group.addTask { await refusal { try await bench.book(by: number.isMultiple(of: 2) ? "ada" : "bob") } == nil }
      }
      return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(won == 1)
    #expect(try await bench.service.openBookings().count == 1)
  }

  @Test(arguments: Engine.forRules)
  func `a request that comes twice is one booking, as it was when it was made`(_ engine: Engine) async throws {
    let bench = try await Bench(engine, limit: 1)
    let repeatable = Repeatable(key: "one", body: [1])
    let first = try await bench.book(repeatable: repeatable)
    _ = try await bench.service.change(first.id, of: "ada", .cancel)
    let again = try await bench.book(repeatable: repeatable)
    #expect(first == again && again.state == .booked)
    #expect(
      await refusal { try await bench.book("van", repeatable: Repeatable(key: "one", body: [2])) } == .keyReused)
    // Another account has keys of its own.
    #expect(try await bench.book(by: "bob", repeatable: repeatable).id != first.id)
    #expect(try await bench.service.bookings(of: "ada").0.count == 1)
  }

  @Test(arguments: Engine.forRules)
  func `the rules say what is booked`(_ engine: Engine) async throws {
    let bench = try await Bench(engine, limit: 2)
    let service = bench.service
    let caller = Caller(account: "ada", device: "none")
    #expect(await refusal { try await bench.book("car", 3, 1) } == .backwards)
    #expect(await refusal { try await bench.book(steps: [StepID("roof")!]) } == .noSuchStep(StepID("roof")!))
    #expect(
      await refusal {
        _ = try await service.book(
          BookingRequest(vehicle: "none", bench.interval(1, 2)), for: caller, repeatable: nil)
      } == .noSuchVehicle)
    try await service.setService(.suspended, of: "car")
    #expect(await refusal { try await bench.book() } == .outOfService)
    try await service.setService(.inService, of: "car")
    let first = try await bench.book("car", 1, 2)
    try await bench.book("car", 2, 3)
    #expect(await refusal { try await bench.book("car", 3, 4) } == .tooManyBookings(2))
    // What is cancelled does not count, nor what is over, nor what others have.
    #expect(await refusal { try await bench.book("car", 3, 4, by: "bob") } == nil)
    _ = try await service.change(first.id, of: "ada", .cancel)
    #expect(await refusal { try await bench.book("car", 1, 2) } == nil)
    bench.wait(2 * hour)
    #expect(await refusal { try await bench.book("car", 3, 4) } == nil)
    try await bench.run("UPDATE account SET state = 'suspended' WHERE id = 'bob'")
    #expect(await refusal { try await bench.book("van", by: "bob") } == .suspended)
  }

  @Test(arguments: Engine.forRules)
  func `an end is moved, once for each version that was read`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let made = try await bench.book("car", 1, 3)
    func moves(_ hours: Double, _ version: Int64) async throws -> FleetBooking {
      try await bench.service.change(
        made.id, of: "ada", .extend(to: bench.interval(0, hours).end, ifVersion: .versions([version])))
    }
    #expect(try await moves(3, 1).version == 1)
    let moved = try await moves(4, 1)
    #expect(moved.version == 2 && moved.booking.interval == bench.interval(1, 4))
    #expect(await refusal { _ = try await moves(5, 1) } == .changed)
    try await bench.book("car", 5, 6, by: "bob")
    #expect(
      await refusal { _ = try await moves(5.5, 2) }
        == .takenUntil(bench.interval(5, 6).begin))
    #expect(
      await refusal {
        _ = try await bench.service.change(made.id, of: "bob", .extend(to: bench.now + hour, ifVersion: .any))
      } == .noSuchBooking)
  }

  @Test(arguments: Engine.forRules)
  func `what is cancelled is free again, and a ride is ended`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let made = try await bench.book("car", 0, 3)
    #expect(await refusal { _ = try await bench.service.change(made.id, of: "ada", .end) } == .notBegun)
    for _ in 0..<2 {
      #expect(try await bench.service.change(made.id, of: "ada", .cancel).booking.written == .cancelled)
    }
    let ride = try await bench.ride(TestDevice(), by: "bob")
    #expect(await refusal { _ = try await bench.service.change(ride.id, of: "bob", .cancel) } == .active)
    bench.wait(600)
    let ended = try await bench.service.change(ride.id, of: "bob", .end)
    #expect(ended.booking.written == .ended && ended.booking.interval.end == bench.now)
    #expect(try await bench.revoked() == [.token("token 1")])
    #expect(try await bench.book("car", 0, 3).state == .booked)
    #expect(
      try await bench.events(of: "car").sorted() == [
        "customer_cancellation", "provider_drop_off", "reservation_start", "reservation_start", "reservation_start",
        "trip_end", "trip_start",
      ])
  }

  @Test(arguments: Engine.forRules)
  func `a shorter booking takes the longer access back, and a longer one keeps it`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.ride(TestDevice())
    let longer = try await bench.service.change(
      ride.id, of: "ada", .extend(to: bench.interval(0, 4).end, ifVersion: .any))
    #expect(try await bench.revoked().isEmpty)
    _ = try await bench.service.change(
      ride.id, of: "ada", .extend(to: bench.interval(0, 1).end, ifVersion: .versions([longer.version])))
    #expect(try await bench.revoked() == [.token("token 1")])
  }
}
