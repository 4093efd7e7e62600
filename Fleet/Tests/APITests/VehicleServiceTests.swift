import Booking
import Domain
import FleetTestSupport
import Geography
import Logging
import Operator
import StepProtocol
import Store
import Testing
import Web

@testable import API

@Suite struct VehicleServiceTests {
  private let phone = TestDevice()

  @Test func `a vehicle is named in any case, if it is the only one`() async throws {
    let bench = try await Bench()
    bench.issuer.have("Car")
    let (car, van) = (try await bench.id(of: "car"), try await bench.id(of: "van"))
    for name in ["VAN", van.uppercased()] { #expect(try await bench.id(of: name) == van) }
    #expect(try await bench.id(of: "CAR") == car)
    _ = try await bench.service.addVehicle("Car")
    #expect(try await bench.id(of: "car") == car)
    #expect(try await bench.id(of: "Car") != car)
    await #expect(throws: FleetRefusal.severalVehicles("CAR")) { try await bench.id(of: "CAR") }
    await #expect(throws: FleetRefusal.notNamed("vehicle", "vann", near: "van")) { try await bench.id(of: "vann") }
    #expect(try await bench.id(of: String(van.prefix(8))) == van)
    // A second one that differs in its case alone has to be meant.
    await #expect(throws: FleetRefusal.nameTaken) { try await bench.service.addVehicle("VAN") }
  }

  @Test func `the broker's lists follow the vehicles, if it has some`() async throws {
    let bench = try await Bench()
    await bench.service.agreeOnVehicles()
    #expect(bench.issuer.now.topics.keys.sorted() == ["car", "van"])
    bench.issuer.lists(.none)
    bench.issuer.have("bus")
    _ = try await bench.service.addVehicle("bus")
    await bench.service.agreeOnVehicles()
    #expect(bench.issuer.now.topics.keys.sorted() == ["car", "van"])
    // A broker with a plugin has a list of those alone whose topics are not the usual ones.
    bench.issuer.lists(.unusual)
    let usual = UUID.random()
    bench.issuer.have(PlayedIssuer.record("tram", id: usual, topic: "vehicles/\(usual)"), in: "tram")
    _ = try await bench.service.addVehicle("tram")
    await bench.service.agreeOnVehicles()
    #expect(bench.issuer.now.topics.keys.sorted() == ["bus", "car", "van"])
    // So do those with other steps.
    let other = UUID.random()
    let steps = [Step(id: StepID("kerb")!, side: .left, major: 3), PlayedIssuer.steps[1]]
    bench.issuer.have(PlayedIssuer.record("long", id: other, steps: steps, topic: "vehicles/\(other)"), in: "long")
    _ = try await bench.service.addVehicle("long")
    // A vehicle of an earlier version, whose folder cannot be read, has no topic.
    try await bench.run("UPDATE vehicle SET topic = NULL WHERE id = ?", [.text(bench.id(of: "long"))])
    await bench.service.agreeOnVehicles()
    #expect(bench.issuer.now.topics["long"] != nil)
    try await bench.service.setService(.removed, of: "car")
    #expect(bench.issuer.now.topics.keys.sorted() == ["bus", "long", "van"] && bench.issuer.now.former.count == 1)
    bench.issuer.lists(.all)
    await bench.service.agreeOnVehicles()
    #expect(bench.issuer.now.topics.keys.sorted() == ["bus", "long", "tram", "van"])
    // Nobody takes what another vehicle usually has.
    bench.issuer.have(PlayedIssuer.record("thief", topic: "vehicles/\(UUID.random())"), in: "thief")
    await #expect(throws: FleetRefusal.topicTaken) { try await bench.service.addVehicle("thief") }
  }

  @Test(arguments: Engine.forRules)
  func `vehicles are listed by name with their open bookings`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let made = try await bench.book("van", 0, 1)
    try await bench.book("van", 2, 3)
    let listed = try await bench.service.vehicles()
    #expect(listed.map(\.vehicle.name) == ["car", "van"])
    #expect(listed.map(\.bookings.count) == [0, 2])
    let (van, next) = try await bench.service.vehicle(try await bench.id(of: "van"))
    #expect(van.steps == PlayedIssuer.steps && next.map(\.interval) == [made.interval])
    let (named, bookings) = try await bench.service.named(van.id)
    #expect(named == van && bookings.count == 2)
    bench.wait(hour)
    #expect(try await bench.service.named("van").bookings.count == 1)
    #expect(await refusal { _ = try await bench.service.named("bus") } == .notNamed("vehicle", "bus", near: nil))
    #expect(await refusal { _ = try await bench.service.vehicle("bus") } == .noSuchVehicle)
  }

  @Test(arguments: Engine.forRules)
  func `a vehicle's place is known until it is taken back`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    #expect(try await bench.service.vehicles()[0].vehicle.place == nil)
    let place = Coordinate(latitude: -48.775_812_3, longitude: 9.182_934_5)!
    try await bench.service.setPlace(place, of: "car")
    let known = try await bench.service.vehicles()[0].vehicle.place
    #expect(known?.since == bench.now)
    #expect(abs(known!.position.latitude - place.latitude) < 1e-7)
    #expect(abs(known!.position.longitude - place.longitude) < 1e-7)
    try await bench.service.setPlace(nil, of: "car")
    #expect(try await bench.service.vehicles()[0].vehicle.place == nil)
    #expect(
      await refusal { try await bench.service.setPlace(place, of: "bus") } == .notNamed("vehicle", "bus", near: nil))
  }

  @Test(arguments: Engine.forRules)
  func `a vehicle out of service keeps its bookings, and loses its access`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.ride(TestDevice())
    try await bench.service.setService(.suspended, of: "car")
    #expect(try await bench.revoked() == [.token("token 1")])
    #expect(try await bench.state(of: ride.id) == .active)
    // Once more has no effect.
    try await bench.service.setService(.suspended, of: "car")
    try await bench.service.setService(.inService, of: "car")
    #expect(try await bench.revoked().isEmpty)
    #expect(
      try await bench.events(of: "car").sorted() == [
        "maintenance", "maintenance_end", "provider_drop_off", "reservation_start", "trip_start",
      ])
  }

  @Test("with a vehicle that is back, riders have their access back", arguments: Engine.forRules)
  func restored(engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.ride(phone)
    _ = try await bench.access(to: ride.id, phone)
    // What was revoked before the suspension is not touched.
    let now = bench.now
    #expect(try await bench.store.write { try TokenTable.withdraw(["token 2"], at: now, in: $0) } == 1)
    bench.wait(1)
    try await bench.service.setService(.suspended, of: "car")
    #expect(try await bench.standings() == ["withdrawn", "withdrawn"])
    try await bench.tell()
    bench.wait(60)
    try await bench.service.setService(.inService, of: "car")
    #expect(try await bench.standings() == ["given", "withdrawn"])
    #expect(try await bench.revoked() == [.token("token 2")])
    #expect(try await bench.untold() == ["car"])
    #expect(bench.issuer.now.ledger.withdrawals.map(\.subject) == [.token("token 2")])
    // It is access like any other.
    try await bench.service.setService(.suspended, of: "car")
    #expect(try await bench.revoked() == [.token("token 1"), .token("token 2")])
  }

  @Test("access that nobody has a right to stays revoked", arguments: Engine.forRules)
  func withoutRight(engine: Engine) async throws {
    let phone = TestDevice()
    let changes: [(String, @Sendable (Bench, String) async throws -> Void)] = [
      ("cancelled", { bench, ride in _ = try await bench.service.revoke(.booking(ride)) }),
      ("device revoked", { bench, _ in _ = try await bench.service.revoke(.device(phone.thumbprint)) }),
      ("account suspended", { bench, _ in try await bench.run("UPDATE account SET state = 'suspended'") }),
      (
        "shorter",
        { bench, ride in
          _ = try await bench.service.change(
            ride, of: "ada", .extend(to: bench.interval(0, 1).end, ifVersion: .any))
        }
      ),
      ("ended", { bench, _ in bench.wait(4 * hour) }),
    ]
    for (name, change) in changes {
      let bench = try await Bench(engine)
      let ride = try await bench.ride(phone)
      try await bench.service.setService(.suspended, of: "car")
      try await change(bench, ride.id)
      try await bench.service.setService(.inService, of: "car")
      #expect(try await bench.standings() == ["withdrawn"], "\(name)")
    }
  }

  @Test(arguments: Engine.forRules)
  func `a vehicle that is removed leaves its bookings and its name`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.ride(TestDevice())
    let id = try await bench.id(of: "car")
    try await bench.service.setService(.removed, of: "car")
    #expect(try await bench.state(of: ride.id) == .cancelled)
    #expect(try await bench.revoked() == [.token("token 1")])
    // It is told first, because a token for it has not ended.
    #expect(bench.issuer.now.removed == [])
    try await bench.service.tidy()
    #expect(bench.issuer.now.removed == [])
    try await bench.tell()
    try await bench.service.tidy()
    #expect(bench.issuer.now.removed == ["car"])
    #expect(try await bench.service.vehicles().map(\.vehicle.name) == ["van"])
    for later in [Service.suspended, .inService] {
      #expect(
        await refusal { try await bench.service.setService(later, of: id) } == .notNamed("vehicle", id, near: nil))
    }
    bench.issuer.have("car")
    #expect(try await bench.service.addVehicle("car") == nil)
  }

  @Test(arguments: Engine.forRules)
  func `a vehicle that is removed meanwhile does not come back`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let vehicle = try await bench.service.named("car").vehicle
    try await bench.run("UPDATE vehicle SET service = 'removed' WHERE id = ?", [.text(vehicle.id)])
    let change = try #require(vehicle.changing(to: .suspended))
    #expect(try await bench.store.write { try VehicleTable.update(vehicle.id, by: change, in: $0) } == false)
  }

  @Test(arguments: Engine.forRules)
  func `a folder of a removed vehicle stays until the operator can remove it`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.service.setService(.removed, of: "car")
    #expect(bench.issuer.now.removed == ["car"])
    // Another vehicle has that folder's name now.
    bench.issuer.have("car")
    try await bench.service.folders.agree()
    #expect(bench.issuer.now.vehicles["car"] != nil)
  }

  /// Servers need not share a folder.
  @Test(arguments: Engine.forRules)
  func `a vehicle that has joined at one server is in the folder of another, and gets access there`(
    _ engine: Engine
  ) async throws {
    let bench = try await Bench(engine)
    let code = try #require(try await bench.service.addVehicle("bus"))
    let joins = Enrolment(
      code: code, name: nil, id: .random(), topic: TopicPrefix("fleet/bus")!, steps: PlayedIssuer.steps,
      encryptionKey: DecryptionKey().encryptionKey, statementKey: SigningKey().verificationKey,
      certificateRequest: [1])
    _ = try await bench.service.enrol(joins)
    #expect(bench.issuer.now.topics.keys.sorted() == ["car", "van", joins.id.description].sorted())
    let issuer = PlayedIssuer()
    let other = FleetService(
      store: bench.store, issuer: issuer, logger: Logger(label: "test"), clock: { [bench] in bench.now })
    #expect(await other.takeInFolder())
    let record = try #require(issuer.now.vehicles[joins.id.description])
    #expect(record == bench.issuer.now.vehicles[joins.id.description])
    #expect(record.topic == joins.topic && record.encryptionKey == joins.encryptionKey)
    #expect(record.signingKey == joins.statementKey && record.vehicle.name == "bus")
    #expect(issuer.now.topics == bench.issuer.now.topics)
    // Removed at one, it goes from the other's folder.
    try await bench.service.setService(.removed, of: "bus")
    try await bench.tell()
    try await other.folders.agree()
    #expect(issuer.now.removed == [joins.id.description] && issuer.now.topics.keys.sorted() == ["car", "van"])
  }

  @Test(arguments: Engine.forRules)
  func `what an earlier version kept in the folder alone is taken in`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.book("car", 0, 3)
    try await bench.run(
      "UPDATE vehicle SET topic = NULL, public_part = NULL, certificate = NULL")
    await #expect(throws: OperatorFailure.access) { _ = try await bench.access(to: ride.id, TestDevice()) }
    #expect(try await bench.store.read { try VehicleTable.lacking(in: $0).count } == 2)
    bench.issuer.lose("van")
    #expect(await bench.service.takeInFolder())
    #expect(try await bench.store.read { try VehicleTable.lacking(in: $0).map(\.folder) } == ["van"])
    _ = try await bench.access(to: ride.id, TestDevice())
    #expect(bench.issuer.now.grants.last?.vehicle == bench.issuer.now.vehicles["car"])
  }

  @Test(arguments: Engine.forRules)
  func `everything of a step that riders need is kept`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let steps = [Step(id: StepID("left")!, side: .left, major: 1, measuredPower: -61, minor: 7)]
    let record = PlayedIssuer.record("bus", steps: steps)
    bench.issuer.have(record, in: "bus")
    #expect(try await bench.service.addVehicle("bus") == nil)
    _ = try await bench.access(to: bench.book("bus", 0, 3, steps: [StepID("left")!]).id, TestDevice())
    #expect(bench.issuer.now.grants.last?.vehicle == record)
  }

  @Test(arguments: Engine.forRules)
  func `a vehicle that was changed by hand is taken in again`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let id = try #require(UUID(try await bench.id(of: "car")))
    let changed = PlayedIssuer.record(
      "car", id: id, steps: [Step(id: StepID("rear")!, side: .right, major: 9)], topic: "elsewhere")
    bench.issuer.have(changed, in: "car")
    #expect(try await bench.service.addVehicle("car") == nil)
    #expect(try await bench.store.read { try VehicleTable.record(of: id.description, in: $0) } == changed)
    #expect(try await bench.service.named("car").vehicle.steps == changed.vehicle.steps)
    await bench.service.agreeOnVehicles()
    #expect(bench.issuer.now.topics["car"] == changed.topic)
    bench.issuer.have(PlayedIssuer.record("car", id: id, topic: "van"), in: "car")
    #expect(await refusal { _ = try await bench.service.addVehicle("car") } == .topicTaken)
  }

  @Test(arguments: Engine.forRules)
  func `a folder that cannot be used keeps nobody from being told`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.run("UPDATE vehicle SET topic = NULL, public_part = NULL, certificate = NULL")
    bench.issuer.damage(["van"])
    #expect(await bench.service.takeInFolder())
    #expect(try await bench.store.read { try VehicleTable.lacking(in: $0).map(\.folder) } == ["van"])
    #expect(bench.log.text.contains("a vehicle's public part is unknown"))
    try await bench.service.tidy()
  }

  @Test(arguments: Engine.forRules)
  func `the topic of a removed vehicle is free when the operator has forgotten it`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    _ = try await bench.ride(TestDevice())
    try await bench.service.setService(.removed, of: "car")
    let next = PlayedIssuer.record("bus", topic: "car")
    bench.issuer.have(next, in: "bus")
    #expect(await refusal { _ = try await bench.service.addVehicle("bus") } == .topicTaken)
    try await bench.tell()
    try await bench.service.tidy()
    #expect(try await bench.store.read { try $0.run("SELECT vehicle FROM notice").count } == 0)
    #expect(try await bench.service.addVehicle("bus") == nil)
  }

  @Test func `vehicles are read again after a change by another server`() async throws {
    let bench = try await Bench()
    #expect(try await bench.service.vehicles().count == 2)
    let following = Task { await bench.service.followAnnouncements() }
    try await bench.store.write { transaction in
      try transaction.run("UPDATE vehicle SET name = 'bus' WHERE name = 'car'")
      try FleetChange.fleet.announce(in: transaction)
    }
    while try await bench.service.vehicles()[0].vehicle.name != "bus" {
      // The announcement is on its way. If the change was made before the following began, this forgets it as well.
      bench.service.known.forget()
      await Task.yield()
    }
    following.cancel()
    await bench.store.close()
    await following.value
  }

  @Test func `all vehicles are told what was not published`() async throws {
    let bench = try await Bench()
    try await bench.service.publishToAll()
    #expect(try await bench.untold() == ["car", "van"])
  }

  @Test func `the operator's keys change, and every vehicle is told`() async throws {
    let bench = try await Bench()
    #expect(try await bench.service.rotateKeys() == "rotated")
    #expect(try await bench.untold() == ["car", "van"])
    try await bench.tell()
    try await bench.service.retireKey()
    #expect(try await bench.untold() == ["car", "van"])
    bench.issuer.fail(IssuerError.failed("car is not known to have the present key"))
    let refused = OperatorFailure.keys("car is not known to have the present key")
    await #expect(throws: refused) { try await bench.service.rotateKeys() }
    await #expect(throws: refused) { try await bench.service.retireKey() }
  }
}

@Suite struct EnrolmentTests {
  private func enrolment(
    _ code: String, name: String? = nil, steps: [Step] = PlayedIssuer.steps, topic: String = "fleet/bus"
  ) -> Enrolment {
    Enrolment(
      code: code, name: name, id: .random(), topic: TopicPrefix(topic)!, steps: steps,
      encryptionKey: DecryptionKey().encryptionKey, statementKey: SigningKey().verificationKey,
      certificateRequest: [1])
  }

  @Test(arguments: Engine.forRules)
  func `a vehicle joins once with its code`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let code = try #require(try await bench.service.addVehicle("bus"))
    #expect(try await bench.service.invitations() == [Invitation(name: "bus", expires: bench.now + 86_400)])
    let joins = enrolment(code, name: "bus")
    let (name, admission) = try await bench.service.enrol(joins)
    #expect(name == "bus" && admission.keys == [bench.issuer.key.verificationKey])
    let vehicle = try await bench.service.named("bus").vehicle
    #expect(vehicle.id == joins.id.description && vehicle.folder == vehicle.id && vehicle.steps == joins.steps)
    #expect(try await bench.events(of: "bus") == ["provider_drop_off"])
    #expect(try await bench.service.invitations().isEmpty)
    #expect(await refusal { _ = try await bench.service.enrol(enrolment(code)) } == .badCode)
    #expect(bench.log.text.contains("vehicle joined"))
  }

  @Test(arguments: Engine.forRules)
  func `a code is not lost to a vehicle that may not join`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let code = try #require(try await bench.service.addVehicle("bus"))
    let expires = try await bench.service.invitations()[0].expires
    func refused(_ enrolment: Enrolment) async -> FleetRefusal? {
      await refusal { _ = try await bench.service.enrol(enrolment) }
    }
    #expect(await refused(enrolment("AAAA-BBBB-CCCC")) == .badCode)
    #expect(await refused(enrolment(code, name: "train")) == .otherName("bus"))
    #expect(await refused(enrolment(code, steps: [PlayedIssuer.steps[0], PlayedIssuer.steps[0]])) == .sameSteps)
    bench.wait(60)
    bench.issuer.fail(IssuerError.request("the certificate request: damaged"))
    #expect(await refused(enrolment(code)) == .badApplication("the certificate request: damaged"))
    bench.issuer.fail(nil)
    // A vehicle that was made by hand, and one of the database.
    bench.issuer.have("fleet")
    #expect(await refused(enrolment(code, topic: "fleet")) == .topicTaken)
    #expect(await refused(enrolment(code, topic: "car")) == .topicTaken)
    bench.issuer.fail(IssuerError.failed("/srv/fleet/operator: no space left"))
    await #expect(throws: OperatorFailure.admission) {
      try await bench.service.enrol(enrolment(code))
    }
    // The operator reads why, in the log.
    #expect(bench.log.text.contains("no space left"))
    // It ends when it was to end, however often it failed.
    #expect(try await bench.service.invitations() == [Invitation(name: "bus", expires: expires)])
    #expect(try await bench.service.vehicles().map(\.vehicle.name) == ["car", "van"])
    bench.issuer.fail(nil)
    #expect(await refused(enrolment(code)) == nil)
  }

  @Test(arguments: Engine.forRules)
  func `a code ends after a day, and a new one replaces it`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let first = try #require(try await bench.service.addVehicle("bus"))
    let second = try #require(try await bench.service.addVehicle("bus"))
    #expect(await refusal { _ = try await bench.service.enrol(enrolment(first)) } == .badCode)
    bench.wait(86_400)
    #expect(try await bench.service.invitations().isEmpty)
    #expect(await refusal { _ = try await bench.service.enrol(enrolment(second)) } == .badCode)
  }

  @Test(arguments: Engine.forRules)
  func `of vehicles with one code, one joins`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let code = try #require(try await bench.service.addVehicle("bus"))
    let joined = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<6 {
        let one = enrolment(code)
        group.addTask { await refusal { _ = try await bench.service.enrol(one) } == nil }
      }
      return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(joined == 1)
  }

  @Test(arguments: Engine.forRules)
  func `a name is one vehicle's`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    #expect(await refusal { _ = try await bench.service.addVehicle("car") } == .vehicleTaken)
    #expect(await refusal { _ = try await bench.service.addVehicle("a\nb") } == .badName)
    bench.issuer.lose("car")
    #expect(await refusal { _ = try await bench.service.addVehicle("car") } == .nameTaken)
  }
}
