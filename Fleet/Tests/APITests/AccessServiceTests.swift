import Booking
import Domain
import Encoding
import FleetTestSupport
import Logging
import Operator
import StepProtocol
import Store
import Testing
import Web

@testable import API

@Suite struct AccessServiceTests {
  private let phone = TestDevice()

  @Test(arguments: Engine.forRules)
  func `access is for the booking and the device alone`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let made = try await bench.book("car", 1, 3, steps: [StepID("left")!])
    #expect(try await bench.access(to: made.id, phone) == "access 1")
    let known = try await bench.service.booking(made.id, of: "ada")
    let request = try phone.request(at: bench.now)
    #expect(
      bench.issuer.now.grants == [
        Grant(
          vehicle: bench.issuer.now.vehicles["car"]!, subject: known.subject, steps: [StepID("left")!],
          validity: bench.interval(1, 3).begin..<bench.interval(1, 3).end + 900, request: request)
      ])
    #expect(known.booking.hasAccess && known.version == 1)
    #expect(try await bench.state(of: made.id) == .booked)
    bench.wait(hour)
    #expect(try await bench.state(of: made.id) == .active)
    let other = TestDevice()
    #expect(
      await refusal {
        _ = try await bench.service.access(to: made.id, for: other.caller("ada"), request)
      } == .otherDevice)
    #expect(await refusal { _ = try await bench.access(to: made.id, phone, by: "bob") } == .noSuchBooking)
  }

  @Test(arguments: Engine.forRules)
  func `the beginning of a trip is noted once, with its time`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let made = try await bench.book("car", 1, 3)
    for _ in 0..<2 { _ = try await bench.access(to: made.id, phone) }
    let times = try await bench.store.read { transaction in
      try transaction.run("SELECT time FROM vehicle_event WHERE event = 'trip_start'").map { $0.integer("time") }
    }
    #expect(times == [bench.interval(1, 3).begin])
  }

  @Test(arguments: Engine.forRules)
  func `access that the rules refuse is not made`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let early = try await bench.book("car", 30, 31)
    let from = bench.interval(30, 31).begin - 86_400 + 1
    #expect(await refusal { _ = try await bench.access(to: early.id, phone) } == .tooEarly(from: from))
    let made = try await bench.book("car", 1, 3)
    try await bench.service.setService(.suspended, of: "car")
    #expect(await refusal { _ = try await bench.access(to: made.id, phone) } == .outOfService)
    try await bench.service.setService(.inService, of: "car")
    try await bench.run("UPDATE account SET state = 'suspended' WHERE id = 'ada'")
    #expect(await refusal { _ = try await bench.access(to: made.id, phone) } == .suspended)
    try await bench.run("UPDATE account SET state = 'active' WHERE id = 'ada'")
    _ = try await bench.service.revoke(.device(phone.thumbprint))
    #expect(await refusal { _ = try await bench.access(to: made.id, phone) } == .deviceRevoked)
    _ = try await bench.service.change(made.id, of: "ada", .cancel)
    #expect(await refusal { _ = try await bench.access(to: made.id, TestDevice()) } == .over)
    #expect(bench.issuer.now.grants.isEmpty)
  }

  @Test(arguments: Engine.forRules)
  func `an account gets eight tokens for a vehicle, and more when one has ended`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let made = try await bench.book("car", 0, 3)
    for _ in 0..<8 { _ = try await bench.access(to: made.id, phone) }
    let end = bench.interval(0, 3).end + 900
    #expect(await refusal { _ = try await bench.access(to: made.id, phone) } == .tooMuchAccess(until: end))
    // Another vehicle remembers its own, and another account has its own.
    let van = try await bench.book("van", 0, 3)
    #expect(try await bench.access(to: van.id, phone) == "access 9")
    let later = try await bench.book("car", 3, 5)
    bench.wait(end - bench.now)
    #expect(try await bench.access(to: later.id, phone) == "access 10")
  }

  @Test(arguments: Engine.forRules)
  func `simultaneous requests get no more than eight`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let made = try await bench.book("car", 0, 3)
    let given = await withTaskGroup(of: Bool.self) { [phone] group in
      for _ in 0..<12 {
        group.addTask {
          do {
            _ = try await bench.access(to: made.id, phone)
            return true
          } catch {
            #expect(error is FleetRefusal, "\(error)")
            return false
          }
        }
      }
      return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(given == 8)
  }

  @Test(arguments: Engine.forRules)
  func `what the operator does not make is not kept`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let made = try await bench.book("car", 0, 3)
    func refused(_ error: IssuerError) async -> FleetRefusal? {
      bench.issuer.fail(error)
      defer { bench.issuer.fail(nil) }
      return await refusal { _ = try await bench.access(to: made.id, phone) }
    }
    #expect(await refused(.request("damaged")) == .badRequest("damaged"))
    bench.issuer.fail(IssuerError.failed("/srv/fleet/ledger.json: damaged"))
    await #expect(throws: OperatorFailure.access) {
      try await bench.access(to: made.id, phone)
    }
    #expect(bench.log.text.contains("ledger.json: damaged"))
    let rows = try await bench.store.read { try $0.run("SELECT jti FROM access").count }
    #expect(rows == 0)
    #expect(try await bench.service.booking(made.id, of: nil).booking.hasAccess == false)
  }

  @Test(arguments: Engine.forRules)
  func `a token that was made while something changed is not given`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let made = try await bench.book("car", 0, 3)
    func refused(_ change: @escaping @Sendable (Bench) async throws -> Void) async -> FleetRefusal? {
      bench.issuer.meanwhile { [unowned bench] in try await change(bench) }
      return await refusal { _ = try await bench.access(to: made.id, phone) }
    }
    #expect(await refused { try await $0.service.setService(.suspended, of: "car") } == .outOfService)
    try await bench.service.setService(.inService, of: "car")
    #expect(
      await refused { bench in
        _ = try await bench.service.change(
          made.id, of: "ada", .extend(to: bench.interval(0, 2).end, ifVersion: .any))
      } == .changedMeanwhile)
    let device = phone.thumbprint
    let revoked = await refused { bench in _ = try await bench.service.revoke(.device(device)) }
    #expect(revoked == .deviceRevoked)
    #expect(bench.issuer.now.grants.count == 3)
    #expect(try await bench.standings().isEmpty)
    #expect(try await bench.revoked().isEmpty)
    #expect(try await bench.service.booking(made.id, of: nil).booking.hasAccess == false)
  }
}

@Suite struct RevocationTests {
  private let phone = TestDevice()

  @Test(arguments: Engine.forRules)
  func `a token without a row is not said to be revoked, until it has one`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let rides = [try await bench.ride(phone), try await bench.ride(phone, "van", by: "bob")]
    // A server of an earlier version gave it, and its ledger is lost.
    try await bench.run("DELETE FROM token WHERE jti = 'token 1'")
    #expect(try await bench.service.revoke(.booking(rides[0].id)) == 0)
    let now = bench.now
    func left() async throws -> [String] {
      try await bench.store.read { try AccessTable.notWithdrawn(at: now, in: $0) }
    }
    #expect(try await left() == ["token 1"])
    #expect(try await bench.store.read { try AccessTable.unknown(at: now, in: $0) } == ["token 1"])
    // It keeps no other one.
    #expect(try await bench.service.revoke(.booking(rides[1].id)) == 1)
    #expect(try await bench.untold() == ["van"])
    #expect(await bench.service.takeInFolder())
    #expect(try await left() == [])
    #expect(try await bench.untold() == ["car", "van"])
    #expect(try await bench.revoked() == [.token("token 1"), .token("token 2")])
    #expect(try await bench.store.read { try AccessTable.unknown(at: now, in: $0) } == [])
  }

  @Test(arguments: Engine.forRules)
  func `a booking's access is taken back, and the booking is cancelled`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.ride(phone)
    #expect(try await bench.service.revoke(.booking(ride.id)) == 1)
    #expect(try await bench.state(of: ride.id) == .cancelled)
    #expect(try await bench.revoked() == [.token("token 1")])
    #expect(try await bench.untold() == ["car"])
    #expect(try await bench.service.revoke(.booking(ride.id)) == 0)
    #expect(await refusal { _ = try await bench.service.revoke(.booking("none")) } == .noSuchBooking)
    #expect(try await bench.events(of: "car").contains("provider_cancellation"))
  }

  @Test(arguments: Engine.forRules)
  func `an account's access is taken back, and nobody else's`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.ride(phone)
    let next = try await bench.book("van", 5, 6)
    let other = try await bench.ride(TestDevice(), "van", by: "bob")
    #expect(try await bench.service.revoke(.account("ada", isTold: true)) == 1)
    #expect(try await bench.state(of: ride.id) == .cancelled)
    #expect(try await bench.state(of: next.id) == .cancelled)
    #expect(try await bench.state(of: other.id) == .active)
    #expect(try await bench.revoked() == [.token("token 1")])
  }

  @Test(arguments: Engine.forRules)
  func `a device's access is taken back for ever, everywhere`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.ride(phone)
    _ = try await bench.ride(TestDevice(), "van", by: "bob")
    #expect(try await bench.service.revoke(.device(phone.thumbprint)) == 1)
    #expect(try await bench.revoked() == [.device(phone.thumbprint)])
    #expect(try await bench.untold() == ["car"])
    #expect(try await bench.state(of: ride.id) == .active)
    bench.wait(40 * 86_400)
    let later = try await bench.book("car", 0, 1)
    #expect(await refusal { _ = try await bench.access(to: later.id, phone) } == .deviceRevoked)
  }

  @Test(arguments: Engine.forRules)
  func `a revocation does not wait for the operator's folder`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.ride(phone)
    let failure = IssuerError.failed("/srv/fleet/ledger.json: no space left")
    bench.issuer.fail(failure)
    #expect(try await bench.service.revoke(.booking(ride.id)) == 1)
    #expect(try await bench.revoked() == [.token("token 1")])
    #expect(try await bench.untold() == ["car"])
    #expect(bench.log.text.contains("error: the operator's ledger is not kept error=/srv/fleet/ledger.json"))
    await #expect(throws: failure) { try await bench.service.tidy() }
    #expect(bench.issuer.now.ledger.withdrawals.isEmpty)
    bench.issuer.fail(nil)
    try await bench.service.tidy()
    #expect(bench.issuer.now.ledger.withdrawals.map(\.subject) == [.token("token 1")])
  }

  @Test(arguments: Engine.forRules)
  func `an export has everything about an account`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.ride(phone)
    let made = try await bench.book("van", 5, 6)
    _ = try await bench.service.revoke(.booking(ride.id))
    let export = JSON.object(try await bench.service.export("ada"))
    #expect(export["bookings"]?.array?.map { $0["id"]?.string } == [made.id, ride.id])
    #expect(export["bookings"]?.array?.map { $0["state"]?.string } == ["booked", "cancelled"])
    #expect(
      export["access"] == [
        [
          "booking": .string(ride.id), "device": .string(phone.thumbprint.description),
          "ends": .string(Timestamp.text(bench.interval(0, 3).end + 900)), "revoked": true,
        ]
      ])
    #expect(try await bench.service.export("bob") == [.init("bookings", []), .init("access", []), .init("events", [])])
  }
}

@Suite struct HousekeepingTests {
  private let phone = TestDevice()

  @Test(arguments: Engine.forRules)
  func `bookings end with their time`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.ride(phone)
    let unused = try await bench.book("van", 0, 1)
    let later = try await bench.book("van", 5, 6)
    bench.wait(4 * hour)
    try await bench.service.tidy()
    let written = try await bench.store.read { transaction in
      try transaction.run("SELECT id, state FROM booking").map { ($0.text("id"), $0.text("state")) }
    }
    #expect(
      Dictionary(uniqueKeysWithValues: written) == [ride.id: "ended", unused.id: "expired", later.id: "booked"])
    #expect(try await bench.events(of: "car").last == "trip_end")
    #expect(try await bench.events(of: "van").last == "reservation_stop")
    try await bench.service.tidy()
    #expect(try await bench.events(of: "car").filter { $0 == "trip_end" }.count == 1)
  }

  @Test(arguments: Engine.forRules)
  func `an answer is remembered for a day`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let repeatable = Repeatable(key: "one", body: [1])
    let first = try await bench.book("car", 1, 2, repeatable: repeatable)
    bench.wait(86_399)
    try await bench.service.tidy()
    #expect(try await bench.book("car", 1, 2, repeatable: repeatable) == first)
    bench.wait(1)
    try await bench.service.tidy()
    #expect(try await bench.book("car", 1, 2, repeatable: repeatable) != first)
  }

  @Test(arguments: Engine.forRules)
  func `interrupted work is completed`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.ride(phone)
    // The server stopped after it had suspended the account, and before it took back what the account has.
    try await bench.run("UPDATE account SET state = 'suspended' WHERE id = 'ada'")
    let now = bench.now
    #expect(try await bench.store.read { try AccessTable.notWithdrawn(at: now, in: $0) } == ["token 1"])
    try await bench.service.tidy()
    #expect(try await bench.state(of: ride.id) == .cancelled)
    #expect(try await bench.revoked() == [.token("token 1")])
  }

  @Test(arguments: Engine.forRules)
  func `a removed vehicle is forgotten as soon as the operator can`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    bench.issuer.fail(IssuerError.failed("no space left"))
    try await bench.service.setService(.removed, of: "car")
    #expect(bench.log.text.contains("no space left"))
    #expect(bench.issuer.now.vehicles["car"] != nil)
    bench.issuer.fail(nil)
    try await bench.service.tidy()
    #expect(bench.issuer.now.removed == ["car"])
  }

  @Test func `the database answers, or not`() async throws {
    try await Bench().service.checkStore()
    let service = FleetService(
      store: BrokenStore(), issuer: PlayedIssuer(), logger: Logger(label: "test") { _ in Log().handler() }, clock: { 0 }
    )
    await #expect(throws: BrokenStore.failure) { try await service.checkStore() }
    await #expect(throws: BrokenStore.failure) { try await service.tidy() }
  }
}

/// A database that cannot be reached.
private struct BrokenStore: Store {
  static let failure = StoreError.unavailable("no route to it")

  func read<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing Transaction) throws -> Result
  ) async throws -> Result { throw Self.failure }

  func write<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing Transaction) throws -> Result
  ) async throws -> Result { throw Self.failure }

  func announcements() -> AsyncStream<Announcement> { AsyncStream { $0.finish() } }
  func defects() async throws -> [String] { throw Self.failure }
  func close() async {}
}
