import Access
import Booking
import Domain
import Encoding
import FleetTestSupport
import Geography
import HTTPTypes
import Logging
import Operator
import StepProtocol
import Store
import Synchronization
import Testing

@testable import API

/// A vehicle's controller: it signs events, and seals them for the operator.
private struct Controller {
  let vehicle: UUID
  let key = SigningKey()
  private(set) var last: EventPlace?

  init(_ vehicle: UUID) { self.vehicle = vehicle }

  /// - Parameter skipping: how many numbers before it were used for what could not be written.
  mutating func event(
    _ kind: VehicleEvent.Kind, skipping: Int64 = 0, after place: EventPlace?? = nil, token: String? = nil,
    step: String = "left", notice: Int64? = nil, time: Int64 = 1, place standing: ReportedPlace? = nil
  ) throws -> SignedEvent {
    let before = place ?? last
    let event = VehicleEvent(
      vehicle: vehicle, sequence: (before?.sequence ?? 0) + 1 + skipping, previous: before?.digest ?? .random(),
      .init(kind, time: time, step: StepID(step), position: .open, token: token, notice: notice, place: standing))
    let signed = try SignedEvent(kept: Array(event.signed(by: key).utf8))
    last = signed.place
    return signed
  }
}

@Suite struct EventTests {
  private func take(_ bench: Bench, _ events: SignedEvent..., isLast: Bool = false) async throws -> [EventTable.Outcome]
  {
    let now = bench.now
    return try await bench.store.write { transaction in
      try EventTable.place(events, at: now, in: transaction)
      return try events.map { try EventTable.take($0, isLast: isLast, at: now, in: transaction) }
    }
  }

  @Test(arguments: Engine.forRules)
  func `an event is kept once, and after the one before`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    var car = Controller(.random())
    let (first, second, third) = (try car.event(.started), try car.event(.began), try car.event(.ended))
    #expect(try await take(bench, second, third) == [.waits, .waits])
    let outcomes = try await take(bench, first, first, second, third, second)
    #expect(outcomes == [.kept([]), .known, .kept([]), .kept([]), .known])
    let name = car.vehicle.description
    #expect(try await bench.store.read { try EventTable.end(of: name, in: $0) } == third.place)
    let kept = { (place: EventPlace?) in
      try await bench.store.read { try EventTable.kept(after: place, of: name, upTo: 10, in: $0) }
    }
    #expect(try await kept(nil) == [first, second, third])
    #expect(try await kept(first.place) == [second, third])
    #expect(try await kept(third.place) == [])
    // The folder has another one, or one that is no row any more.
    #expect(try await kept(EventPlace(9, .random())) == [])
    #expect(try await kept(EventPlace(2, .random())) == [third])
    #expect(try await kept(EventPlace(0, .random())) == [first, second, third])
  }

  @Test(arguments: Engine.forRules)
  func `the place that a vehicle tells counts unless a newer one is known`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    var car = Controller(UUID(try await bench.id(of: "car"))!)
    func place(_ latitude: Double) -> ReportedPlace {
      ReportedPlace(latitude: latitude, longitude: -70, error: 2.5, age: 10)!
    }
    func known() async throws -> (latitude: Double?, since: Int64?) {
      bench.service.known.forget()
      let place = try await bench.service.named("car").vehicle.place
      return (place?.position.latitude, place.map { $0.since - bench.now })
    }
    #expect(try await known() == (nil, nil))
    let started = try car.event(.started, time: bench.now - 100, place: place(-33.5))
    #expect(try await take(bench, started) == [.kept([])])
    #expect(try await known() == (-33.5, -110))
    // A later one, and one that came late.
    try await bench.service.setPlace(Coordinate(latitude: 1, longitude: 2), of: "car")
    let late = try car.event(.ended, time: bench.now - 1, place: place(-33.6))
    #expect(try await take(bench, late) == [.kept([])])
    #expect(try await known() == (1, 0))
    let next = try car.event(.ended, time: bench.now + 20, place: place(-33.7))
    #expect(try await take(bench, next) == [.kept([])])
    // A clock that is ahead: the place is as old as it was heard.
    #expect(try await known() == (-33.7, 0))
    let ahead = try car.event(.ended, time: bench.now + 1_000_000, place: place(-33.8))
    #expect(try await take(bench, ahead) == [.kept([])])
    bench.wait(10)
    let after = try car.event(.ended, time: bench.now + 10, place: place(-33.9))
    #expect(try await take(bench, after, try car.event(.began)) == [.kept([]), .kept([])])
    #expect(try await known() == (-33.9, 0))
    // What the operator has said to be unknown is not told again by an event from before.
    let before = bench.now
    bench.wait(100)
    try await bench.service.setPlace(nil, of: "car")
    let delayed = try car.event(.ended, time: before, place: place(-34))
    #expect(try await take(bench, delayed) == [.kept([])])
    #expect(try await known() == (nil, nil))
    // Nor by one that comes again.
    #expect(try await take(bench, ahead, after) == [.known, .known])
    #expect(try await known() == (nil, nil))
    // What was told stays with its event.
    let told = try await bench.service.history(.init(vehicle: "car")).map { $0["place"] }
    #expect(told.count == 7 && told[5] == .null)
    #expect(told.first == ["latitude": .number(-33.5), "longitude": .number(-70), "error_m": .number(2.5)])
  }

  @Test(arguments: Engine.forRules)
  func `what is wrong with a vehicle's events is kept with them`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    var car = Controller(.random())
    let first = try car.event(.started)
    let jumped = try car.event(.began, skipping: 2)
    #expect(try await take(bench, first, jumped) == [.kept([]), .kept([.unwritten(2...3)])])
    // Files that were put back, and somebody else with the key, look alike.
    let other = try car.event(.began, after: .some(first.place))
    #expect(try await take(bench, other) == [.kept([.wentBack(to: 1, from: 4)])])
    let lost = try car.event(.ended)
    let after = try car.event(.ended)
    #expect(try await take(bench, after) == [.waits])
    #expect(try await take(bench, after, isLast: true) == [.kept([.missing(3...3)])])
    // It comes late, and stands before what is kept.
    #expect(try await take(bench, lost, isLast: true) == [.kept([.wentBack(to: 2, from: 4)])])
    let new = try car.event(.started, after: .some(nil))
    #expect(try await take(bench, new) == [.kept([.beganAgain(after: 3)])])
  }

  @Test(arguments: Engine.forRules)
  func `the first event follows what commands by hand have fetched`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    var car = Controller(.random())
    let (by, next) = (try car.event(.started), try car.event(.began))
    let name = car.vehicle.description
    try await bench.store.write { try EventTable.begin(name, after: by.place, in: $0) }
    #expect(try await take(bench, by, next) == [.known, .kept([])])
    // Only what has no begin gets one.
    try await bench.store.write { try EventTable.begin(name, after: by.place, in: $0) }
    #expect(try await bench.store.read { try EventTable.end(of: name, in: $0) } == next.place)
  }

  @Test(arguments: Engine.forRules)
  func `every thirty-second event wants a notice, whoever counts`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    var car = Controller(UUID(try await bench.id(of: "car"))!)
    let wanted = { try await bench.store.read { try NoticeTable.waiting(in: $0) }.count }
    for _ in 1..<32 { _ = try await take(bench, car.event(.notice)) }
    #expect(try await wanted() == 0)
    _ = try await take(bench, car.event(.notice))
    #expect(try await wanted() == 1)
  }

  @Test(arguments: Engine.forRules)
  func `who has not heard the newest notice is listed`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let id = try await bench.id(of: "car")
    var car = Controller(UUID(id)!)
    func state() async throws -> String? { try await bench.service.status()[0]["notice"]?.string }
    func unconfirmed() async throws -> Int64 { try await bench.store.read { try NoticeTable.unconfirmed(in: $0) } }
    #expect(try await state() == nil)
    var number = Int64(0)
    for _ in 1...2 {
      let now = bench.now
      try await bench.store.write { try NoticeTable.want([id], at: now, in: $0) }
      #expect(try await (state(), unconfirmed()) == ("untold", 0))
      let claims = try await bench.store.write { try NoticeTable.claim(upTo: 1, at: now, until: now + 9, in: $0) }
      try await bench.store.write { try NoticeTable.noteSent(claims[0], at: now, in: $0) }
      #expect(try await (state(), unconfirmed()) == ("unconfirmed", 1))
      // It says again that it obeys the one before.
      _ = try await take(bench, car.event(.notice, notice: number))
      #expect(try await state() == "unconfirmed")
      number = claims[0].number
      _ = try await take(bench, car.event(.notice, notice: number), car.event(.notice, notice: number - 1))
      #expect(try await (state(), unconfirmed()) == ("in_force", 0))
    }
  }

  @Test(arguments: Engine.forRules)
  func `what is old is removed, and the chain goes on`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    var car = Controller(UUID(try await bench.id(of: "car"))!)
    let first = try car.event(.started)
    _ = try await take(bench, first, car.event(.began))
    bench.wait(FleetService.retentionDays * 86_400 - 1)
    let late = try car.event(.ended)
    #expect(try await take(bench, late) == [.kept([])])
    bench.wait(2)
    try await bench.service.tidy()
    // The first of a chain stays: sent again, it would begin another one.
    #expect(try await bench.service.history(.init()).map { $0["kind"]?.string } == ["started", "ended"])
    bench.wait(FleetService.retentionDays * 86_400)
    try await bench.service.tidy()
    #expect(try await bench.service.history(.init()).map { $0["kind"]?.string } == ["started"])
    #expect(try await take(bench, first, late, car.event(.started)) == [.known, .known, .kept([])])
  }

  /// What is found of eight events, of which one is missing and was given up, after a change of the rows.
  ///
  /// The key of `Controller` is not the one that the vehicle has joined with: that is found in any case.
  private func defects(_ engine: Engine, after change: String?, isOld: Bool = false) async throws -> [String] {
    let bench = try await Bench(engine)
    let id = try await bench.id(of: "car")
    var car = Controller(UUID(id)!)
    for kind in [VehicleEvent.Kind.started, .began, .ended, .began, .ended, .refused] {
      _ = try await take(bench, car.event(kind))
    }
    _ = try car.event(.began)
    _ = try await take(bench, car.event(.ended), isLast: true)
    if let change { try await bench.run(change) }
    let time = isOld ? bench.now + 1 : bench.now
    return try await EventCheck.defects(of: id, named: "car", keptSince: time, in: bench.store)
  }

  @Test(arguments: Engine.forRules)
  func `rows that are changed, removed or exchanged are found`(_ engine: Engine) async throws {
    func unsigned(_ which: String) -> String {
      "what car has reported: \(which) is not signed by its key, unless that was changed since"
    }
    let keys = [unsigned("event 6, before a break,"), unsigned("the newest event")]
    #expect(try await defects(engine, after: nil) == keys)
    // What was removed because of its age is missing at the begin alone.
    #expect(try await defects(engine, after: "DELETE FROM event WHERE sequence IN (2, 3)") == keys)
    for change in ["DELETE FROM event WHERE sequence > 1", "DELETE FROM event"] {
      #expect(try await defects(engine, after: change, isOld: true).allSatisfy(keys.contains))
      #expect(try await defects(engine, after: change)[0].hasSuffix("the newest events are missing"))
    }
    for (change, found) in [
      ("DELETE FROM event WHERE sequence = 4", "1 row before event 5: missing"),
      ("DELETE FROM event WHERE sequence = 8", "the newest events are missing"),
      (
        "UPDATE event SET text = (SELECT e.text FROM event e WHERE e.sequence = 2) WHERE sequence = 3",
        "the row of event 3 is not what the vehicle has signed"
      ),
      ("UPDATE event SET digest = 'x' WHERE sequence = 6", "the row of event 6 is not what the vehicle has signed"),
      ("UPDATE event SET finding = NULL", "event 8: no event 7: dropped by the vehicle, or kept back"),
    ] {
      let said = try await defects(engine, after: change)
      #expect(said.contains { $0.contains(found) }, "\(change): \(said)")
    }
  }

  @Test(arguments: Engine.forRules)
  func `what a hostile vehicle signs is kept, and does no harm`(_ engine: Engine) async throws {
    let (bench, phone) = (try await Bench(engine), TestDevice())
    let booking = try await bench.ride(phone)
    var van = Controller(UUID(try await bench.id(of: "van"))!)
    // A token's id with what a terminal obeys, or with a zero byte; another vehicle's token; steps that it has not.
    #expect(try await take(bench, van.event(.began, token: "\u{9B}2J")) == [.kept([])])
    #expect(
      try await take(bench, van.event(.began, token: "a\0b"), van.event(.began, token: "token 1")) == [
        .kept([]), .kept([]),
      ])
    for number in 0..<40 { _ = try await take(bench, van.event(.began, step: "step-\(number)")) }
    let shown = try await bench.service.history(.init(vehicle: "van"))
    #expect(shown.count == 43 && shown.allSatisfy { $0["booking"] == .null && $0["email"] == .null })
    #expect(try await bench.service.history(.init(booking: booking.id)).isEmpty)
    #expect(try await bench.service.history(.init(account: "ada@example.org")).isEmpty)
    let steps = try await bench.store.read { try $0.run("SELECT count(*) AS n FROM step_state")[0].integer("n") }
    #expect(steps == 16)
  }

  @Test(arguments: Engine.forRules)
  func `events are shown with the booking and the rider whose they are`(_ engine: Engine) async throws {
    let (bench, phone) = (try await Bench(engine), TestDevice())
    let booking = try await bench.ride(phone)
    let id = try await bench.id(of: "car")
    var car = Controller(UUID(id)!)
    _ = try await take(
      bench, car.event(.started), car.event(.began, token: "token 1"), car.event(.notice), car.event(.ended))
    let shown = try await bench.service.history(.init())
    #expect(shown.map { $0["kind"]?.string } == ["started", "began", "ended"])
    #expect(shown[1]["booking"]?.string == booking.id && shown[1]["vehicle"]?.string == "car")
    #expect(shown[1]["email"]?.string != nil && shown[0]["email"] == .null)
    for (query, count) in [
      (EventTable.Query(booking: String(booking.id.prefix(8))), 1), (.init(vehicle: "CAR"), 3),
      (.init(vehicle: "van"), 0), (.init(account: shown[1]["email"]?.string?.uppercased()), 1),
      (.init(since: bench.now + 1), 0), (.init(limit: 2), 2),
    ] {
      #expect(try await bench.service.history(query).count == count, "\(query)")
    }
    // What vehicles' logs and the operator's have leads there, too.
    let subject = try await bench.store.read { try $0.run("SELECT subject FROM booking")[0].text("subject") }
    for name in [subject, "token 1", String(booking.id.prefix(8)), booking.id] {
      #expect(try await bench.service.bookingMeant(by: name) == booking.id, "\(name)")
    }
    let present = try await bench.service.status()
    #expect(present.map { $0["name"]?.string } == ["car", "van"] && present[0]["heard"] != .null)
    #expect(present[0]["steps"]?.array?.map { $0["position"]?.string } == ["open", nil])
    #expect(present[1]["heard"] == .null)
  }

  @Test(arguments: Engine.forRules)
  func `riders are told the course of their bookings, and of no others`(_ engine: Engine) async throws {
    let (bench, phone) = (try await Bench(engine), TestDevice())
    let booking = try await bench.ride(phone)
    var (car, van) = (
      Controller(UUID(try await bench.id(of: "car"))!), Controller(UUID(try await bench.id(of: "van"))!)
    )
    _ = try await take(
      bench, car.event(.started), car.event(.began, token: "token 1"), car.event(.ended, token: "token 1"),
      car.event(.refused, token: "token 2"), car.event(.notice), van.event(.began, token: "token 1"))
    let path = "/v1/bookings/\(booking.id)/events"
    let answer = try await bench.ask(.get, path)
    let step: JSON = ["time": "1970-01-01T00:00:01Z", "kind": "began", "step": "left", "position": "open"]
    let (began, all) = (step.object ?? [], answer.json["events"]?.array ?? [])
    #expect(answer.status == 200 && all.map { $0["kind"] } == ["began", "ended"])
    #expect(all.first == .object(began))
    #expect(try await bench.ask(.get, path, by: "bob phone").status == 404)
    #expect(try await bench.ask(.get, "/v1/bookings/none/events").status == 404)
  }

  @Test(arguments: Engine.forRules)
  func `who cannot open a step learns why from one command`(_ engine: Engine) async throws {
    let (bench, phone) = (try await Bench(engine), TestDevice())
    await #expect(throws: FleetRefusal.notNamed("account", "adda@example.org", near: "ada@example.org")) {
      try await bench.service.support(" Adda@example.org ")
    }
    let booking = try await bench.ride(phone)
    var car = Controller(UUID(try await bench.id(of: "car"))!)
    func findings(_ who: String) async throws -> [String] {
      try await bench.service.support(who)["findings"]?.array?.compactMap(\.string) ?? []
    }
    #expect(try await findings(booking.id).last == "car has never reported anything: does it reach the broker?")
    _ = try await take(bench, car.event(.started), car.event(.refused, token: "token 1"))
    let found = try await bench.service.support("token 1")
    #expect(found["refusals"]?.array?.count == 1 && found["bookings"]?.array?.count == 1)
    #expect(try await findings("token 1").first?.hasPrefix("car refused at 1970-01-01T00:00:01Z: ") == true)
    try await bench.service.setService(.suspended, of: "car")
    #expect(try await findings(booking.id).contains("car is out of service: `stepfleet vehicle resume`"))
    bench.wait(4 * hour)
    #expect(try await findings(booking.id).contains("no booking is booked or active"))
    let ended = "\(booking.id.prefix(8)) of car, \(booking.interval.from) to \(booking.interval.to), is ended"
    #expect(try await findings(booking.id).contains(ended))
    _ = try await bench.service.revoke(.device(phone.thumbprint))
    let revoked =
      "the device \(phone.thumbprint.grouped) is revoked: whoever uses it needs a new key (stepfleet(8), revoke)"
    #expect(try await findings("ada").contains(revoked))
  }
}

@Suite struct EventListenerTests {
  private let key = DecryptionKey()

  /// A vehicle of the fleet.
  private func vehicle(of bench: Bench, _ name: String = "tram") async throws -> Controller {
    let car = Controller(.random())
    let record = VehicleRecord(
      vehicle: try Vehicle(name: name, uuid: car.vehicle, steps: PlayedIssuer.steps),
      topic: TopicPrefix("vehicles/\(car.vehicle)")!, encryptionKey: DecryptionKey().encryptionKey,
      signingKey: car.key.verificationKey, certificate: Array("certificate".utf8))
    bench.issuer.have(record, in: name)
    _ = try await bench.service.addVehicle(name)
    return car
  }

  /// Hears until something is done.
  ///
  /// - Parameter vehicle: tells something each time that the vehicle is asked.
  private func listen(
    _ bench: Bench, _ broker: PlayedBroker, vehicle: (id: UUID, tells: () async throws -> Void)? = nil,
    until isDone: () async throws -> Bool
  ) async throws {
    let listener = EventListener(
      store: bench.store, issuer: broker, logger: Logger(label: "test") { [log = bench.log] _ in log.handler() },
      patience: .milliseconds(500), clock: { [bench] in bench.now })
    let task = Task { await listener.run() }
    let end = ContinuousClock.now + .seconds(120)
    var asked = Int64(0)
    while try await !isDone() {
      if ContinuousClock.now > end {
        Issue.record("it is not done: \(bench.log.text)")
        break
      }
      if let vehicle, case let wish = try await wishes(bench, vehicle.id), wish > asked {
        asked = wish
        try await vehicle.tells()
      }
      try await Task.sleep(for: .milliseconds(5))
    }
    task.cancel()
    await task.value
  }

  /// How often a vehicle was asked.
  private func wishes(_ bench: Bench, _ vehicle: UUID) async throws -> Int64 {
    try await bench.store.read {
      try $0.run("SELECT wish FROM notice WHERE vehicle = ?", [.text(vehicle.description)]).first?.integer("wish") ?? 0
    }
  }

  private func kept(_ bench: Bench, _ vehicle: UUID) async throws -> [SignedEvent] {
    try await bench.store.read { try EventTable.kept(after: nil, of: vehicle.description, upTo: 1000, in: $0) }
  }

  @Test(arguments: Engine.forRules)
  func `what is forged, another's, or heard twice is not kept`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    var (car, thief) = (try await vehicle(of: bench), Controller(.random()))
    let broker = PlayedBroker(key)
    let (first, second, third) = (try car.event(.started), try car.event(.began), try car.event(.ended))
    var forger = Controller(car.vehicle)
    for event in [try forger.event(.started), try thief.event(.started), second, first, second, first] {
      broker.report(event, on: car.vehicle)
    }
    broker.report(third, on: thief.vehicle)
    broker.send(Array("{}".utf8), on: car.vehicle)
    broker.report(third, on: car.vehicle)
    try await listen(bench, broker) { broker.now.folder.count == 3 }
    #expect(try await kept(bench, car.vehicle) == [first, second, third])
    #expect(broker.now.folder == [first, second, third])
    // Others have topics of their own.
    let own = ["car", "van"].flatMap { ["\($0)/availability", "\($0)/events"] }
    #expect(broker.now.subscribed.sorted() == own + ["vehicles/+/availability", "vehicles/+/events"])
    #expect(bench.log.text.contains("a message is no event of the vehicle"))
    #expect(!bench.log.text.contains("not whole"))
  }

  @Test func `what follows a lost event waits until the vehicle begins with it each time`() async throws {
    let bench = try await Bench()
    var car = try await vehicle(of: bench)
    let broker = PlayedBroker(key)
    let first = try car.event(.started)
    _ = try car.event(.began)
    let rest = [try car.event(.ended), try car.event(.began), try car.event(.ended)]
    broker.report(first, on: car.vehicle)
    broker.report(rest[0], on: car.vehicle)
    // It says nothing when it is asked: it is off, and nothing is given up.
    let asked = try await wishes(bench, car.vehicle)
    try await listen(bench, broker) { try await wishes(bench, car.vehicle) > asked + 1 }
    #expect(try await kept(bench, car.vehicle) == [first])
    broker.report(rest[0], on: car.vehicle)
    try await listen(
      bench, broker,
      vehicle: (car.vehicle, { for event in rest { broker.report(event, on: car.vehicle) } })
    ) { try await kept(bench, car.vehicle).count == 4 }
    #expect(try await kept(bench, car.vehicle) == [first] + rest)
    #expect(bench.log.text.contains("a vehicle's events are not whole") && bench.log.text.contains("no event 2"))
    let shown = try await bench.service.history(.init())
    #expect(shown.map { $0["finding"]?.string == nil } == [true, false, true, true])
  }

  @Test func `a vehicle that is asked tells what was lost, and nothing is missing`() async throws {
    let bench = try await Bench()
    var car = try await vehicle(of: bench)
    let broker = PlayedBroker(key, losing: true)
    let events = try (0..<100).map { _ in try car.event(.notice) }
    for event in events[..<64] { broker.report(event, on: car.vehicle) }
    try await listen(
      bench, broker,
      vehicle: (
        car.vehicle,
        {
          let count = try await kept(bench, car.vehicle).count
          for event in events[count..<min(count + 64, 100)] { broker.report(event, on: car.vehicle) }
        }
      )
    ) { try await kept(bench, car.vehicle).count == 100 && broker.now.folder.count == 100 }
    #expect(try await kept(bench, car.vehicle) == events && broker.now.folder == events)
    #expect(!bench.log.text.contains("not whole"))
  }

  @Test func `an event that is lost once more is not given up`() async throws {
    let bench = try await Bench()
    var car = try await vehicle(of: bench)
    let broker = PlayedBroker(key)
    let events = try (0..<9).map { _ in try car.event(.notice) }
    for event in [events[0]] + events[2...] { broker.report(event, on: car.vehicle) }
    var turn = 0
    try await listen(
      bench, broker,
      vehicle: (
        car.vehicle,
        {
          turn += 1
          for event in events[(turn <= 3 ? 2 : 1)...] { broker.report(event, on: car.vehicle) }
        }
      )
    ) { try await kept(bench, car.vehicle).count == 9 }
    #expect(try await kept(bench, car.vehicle) == events)
    #expect(!bench.log.text.contains("not whole"))
  }

  @Test func `what commands by hand have fetched is kept, before a gap and at first`() async throws {
    let bench = try await Bench()
    var car = try await vehicle(of: bench)
    let broker = PlayedBroker(key)
    let events = try (0..<9).map { _ in try car.event(.began) }
    // While no server heard, `stepctl operator log` has fetched and acknowledged these.
    broker.state.withLock { $0.folder = Array(events[..<3]) }
    broker.report(events[3], on: car.vehicle)
    try await listen(bench, broker) { try await kept(bench, car.vehicle).count == 4 && broker.now.folder.count == 4 }
    broker.state.withLock { $0.folder = Array(events[..<8]) }
    broker.report(events[8], on: car.vehicle)
    try await listen(bench, broker) { broker.now.folder.count == 9 }
    #expect(try await kept(bench, car.vehicle) == events && broker.now.folder == events)
    #expect(!bench.log.text.contains("not whole"))
  }

  @Test func `a change of the operator's keys is followed`() async throws {
    let bench = try await Bench()
    var car = try await vehicle(of: bench)
    let broker = PlayedBroker(key)
    let (first, second) = (try car.event(.started), try car.event(.began))
    broker.report(first, on: car.vehicle)
    try await listen(bench, broker) {
      if try await kept(bench, car.vehicle).count == 1, broker.now.keys.count == 1 {
        let new = DecryptionKey()
        broker.state.withLock { $0.keys = [new, $0.keys[0]] }
        broker.send(VehicleEvent.sealed(second.text, to: new.encryptionKey), on: car.vehicle)
      }
      return try await kept(bench, car.vehicle).count == 2
    }
    #expect(try await kept(bench, car.vehicle) == [first, second])
  }

  @Test func `a vehicle that floods is not heard, and others are`() async throws {
    let bench = try await Bench()
    var (car, other) = (try await vehicle(of: bench), try await vehicle(of: bench, "bus"))
    let broker = PlayedBroker(key)
    for _ in 0..<40_001 { broker.send([1], on: car.vehicle) }
    let (late, event) = (try car.event(.started), try other.event(.started))
    broker.report(late, on: car.vehicle)
    broker.report(event, on: other.vehicle)
    try await listen(bench, broker) { try await kept(bench, other.vehicle).count == 1 }
    #expect(try await kept(bench, car.vehicle).isEmpty)
    // The log says so, and not each time.
    #expect(bench.log.text.split(separator: "\n").count { $0.contains("is no event") } == 10)
    bench.wait(60)
    broker.report(late, on: car.vehicle)
    try await listen(bench, broker) { try await kept(bench, car.vehicle).count == 1 }
  }

  @Test func `all are asked when a connection is there, and not each time that one is lost`() async throws {
    let bench = try await Bench()
    let car = try await vehicle(of: bench)
    let (broker, before) = (PlayedBroker(key), try await wishes(bench, car.vehicle))
    try await listen(bench, broker) {
      if broker.now.attempts < 3, try await wishes(bench, car.vehicle) > before { broker.lose() }
      return broker.now.attempts == 3
    }
    #expect(try await wishes(bench, car.vehicle) == before + 1)
  }

  @Test func `a topic that the broker cannot have, and a damaged row, keep nobody from being heard`() async throws {
    let bench = try await Bench()
    var (car, bus) = (try await vehicle(of: bench), try await vehicle(of: bench, "bus"))
    let broker = PlayedBroker(key, refusing: "van")
    let id = bus.vehicle.description
    try await bench.store.write {
      _ = try $0.run("UPDATE vehicle SET public_part = '{}' WHERE id = ?", [.text(id)])
    }
    broker.report(try bus.event(.started), on: bus.vehicle)
    broker.report(try car.event(.started), on: car.vehicle)
    try await listen(bench, broker) { try await kept(bench, car.vehicle).count == 1 }
    #expect(
      broker.now.subscribed.sorted() == [
        "car/availability", "car/events", "vehicles/+/availability", "vehicles/+/events",
      ])
    #expect(bench.log.text.contains("the broker cannot have its topic"))
  }
}

/// A broker, and the operator's folder.
private final class PlayedBroker: EventIssuer {
  let state: Mutex<State>
  private let refused: String

  struct State {
    /// The operator's, the present one first.
    var keys: [DecryptionKey]
    /// What was sent while nobody listened.
    var early: [BrokerConnection.Event] = []
    var lines: [Line] = []
    var subscribed: [String] = []
    var folder: [SignedEvent] = []
    var attempts = 0
    /// How many messages were sent to those who listen to all vehicles: what each of them hears of a flood.
    var count = 0
  }

  /// Whether every fifth message does not reach those who listen to all vehicles.
  private let losing: Bool

  /// - Parameter refused: a topic to which nobody can subscribe.
  init(_ key: DecryptionKey, losing: Bool = false, refusing refused: String = "") {
    state = Mutex(State(keys: [key]))
    (self.losing, self.refused) = (losing, refused)
  }

  var now: State { state.withLock { $0 } }

  func report(_ event: SignedEvent, on vehicle: UUID) {
    send(VehicleEvent.sealed(event.text, to: now.keys[0].encryptionKey), on: vehicle)
  }

  func send(_ payload: [UInt8], on vehicle: UUID) {
    let topic = "vehicles/\(vehicle)/events"
    let event = BrokerConnection.Event.message(topic: topic, payload: payload)
    state.withLock { state in
      if state.lines.isEmpty { state.early.append(event) }
      state.count += 1
      for line in state.lines {
        line.state.withLock {
          let (isAlone, hearsAll) = ($0.topics.contains(topic), $0.topics.contains("vehicles/+/events"))
          if isAlone || hearsAll && !(losing && state.count.isMultiple(of: 5)) { $0.events.append(event) }
        }
      }
    }
  }

  private struct Lost: Error {}
  func lose() {
    state.withLock { state in
      for line in state.lines { line.state.withLock { $0.events.append(.ended(Lost())) } }
      state.lines = []
    }
  }

  func listen(_ attempt: Int) throws -> any BrokerLine {
    let line = Line(self)
    state.withLock { state in
      state.attempts += 1
      line.state.withLock { $0.events += state.early }
      state.early = []
      state.lines.append(line)
    }
    return line
  }
  func canListen(to topic: TopicPrefix) -> Bool { topic.description != refused }
  func opener() async throws -> EventOpener { EventOpener(now.keys) }
  func lastEvent(of vehicle: UUID) async throws -> EventPlace? {
    now.folder.last { $0.event.vehicle == vehicle }?.place
  }

  func events(
    of vehicle: UUID, verifiedBy key: VerificationKey, after place: EventPlace?, upTo count: Int
  ) async throws -> [SignedEvent] {
    let folder = now.folder
    guard let place else { return Array(folder.suffix(count)) }
    guard let index = folder.firstIndex(where: { $0.place == place }) else { return [] }
    return Array(folder[(index + 1)...].prefix(count))
  }

  func keep(_ events: [SignedEvent], of vehicle: UUID, after place: EventPlace?) async throws -> Bool {
    guard try await lastEvent(of: vehicle) == place else { return false }
    state.withLock { $0.folder += events }
    return true
  }

  final class Line: BrokerLine {
    let state = Mutex((events: [BrokerConnection.Event.connected], topics: Set<String>()))
    private let broker: PlayedBroker

    init(_ broker: PlayedBroker) { self.broker = broker }

    let isIncomplete = false
    func subscribe(to topic: String) {
      broker.state.withLock { $0.subscribed.append(topic) }
      state.withLock { _ = $0.topics.insert(topic) }
    }
    func publish(_ text: String, to topic: String) {}
    func wake() {}
    func close() { broker.state.withLock { $0.lines.removeAll { $0 === self } } }

    func wait(for duration: Duration) async throws -> (events: [BrokerConnection.Event], isWoken: Bool) {
      let events = state.withLock { state in
        defer { state.events = [] }
        return state.events
      }
      if events.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
      return (events, false)
    }
  }
}
