import Access
import Certificates
import Domain
import FileFormats
import Glibc
import StepProtocol
import SystemIO
import TestSupport
import Testing

@testable import Operator

/// The first second and the last one of the authority that is made at `now`.
private let (begin, end) = (now - 300, now + 3650 * day)

@Suite("A time at which an operator issues something") struct IssueTimeTests {
  static let path = "car/tls/ca.pem"

  /// A time for an authority of those bounds.
  func time(_ now: Int64, from begin: Int64 = begin, to end: Int64 = end) throws -> IssueTime {
    let authority = try Certificate(
      selfSigned: CertificateContent(commonName: "CA", use: .authority), by: PrivateKey(), validity: begin...end)
    return try IssueTime(now, of: authority, at: Self.path)
  }

  @Test("is not before the first stepctl, whether there is an authority or not", arguments: [0, 60, 1_795_219_199])
  func unset(time now: Int64) throws {
    #expect(throws: ClockError.unset(now: now)) { try IssueTime(now) }
    // An authority that was made by such a clock is a trap: its certificates would all have ended.
    #expect(throws: ClockError.unset(now: now)) { try time(now, from: 0, to: end) }
    #expect(try IssueTime(1_795_219_200).now == 1_795_219_200)
  }

  @Test("is within the authority's time, whose last second is too late")
  func authority() throws {
    for early in [begin - 1, IssueTime.earliest] where early < begin {
      #expect(throws: ClockError.early(Self.path, begin: begin, now: early)) { try time(early) }
    }
    for late in [end, end + 1, end + 365 * day] {
      #expect(throws: ClockError.ended(Self.path, end: end, now: late)) { try time(late) }
    }
    for now in [begin, now, end - 1] { #expect(try time(now).bounds == begin...end) }
  }

  @Test("gives a certificate that begins five minutes early, ends with its authority, and lasts", arguments: [1, hour])
  func validity(seconds: Int64) throws {
    #expect(try IssueTime(now).validity(lasting: seconds) == now - 300...now + seconds)
    #expect(try time(now).validity(lasting: seconds) == now - 300...now + seconds)
    #expect(try time(now).validity(lasting: seconds, until: now + day) == now - 300...now + day)
    #expect(try time(begin).validity(lasting: seconds) == begin...begin + seconds)
    #expect(try time(end - 1).validity(lasting: seconds, until: .max) == end - 301...end)
    // The shortest that there can be.
    #expect(try time(now, from: now, to: now + 1).validity(lasting: seconds) == now...now + 1)
    #expect(throws: ClockError.self) { try time(now, from: now - 1, to: now) }
  }

  @Test("lets a token begin and end with the authority, and not outside")
  func tokens() throws {
    let time = try time(now)
    try time.check(begin..<end)
    #expect(throws: ProvisioningError.beforeAuthority(begin: begin)) { try time.check(begin - 1..<end) }
    #expect(throws: ProvisioningError.outlivesAuthority(end: end)) { try time.check(begin..<end + 1) }
  }

  @Test("an error says what the clock shows, where the bound is, and what to do")
  func errors() {
    let unset = ClockError.unset(now: 60)
    #expect(
      "\(unset)" == "this computer's clock is not set: it shows 1970-01-01T00:01:00Z; nothing was changed")
    let early = ClockError.early(Self.path, begin: 1_803_893_400, now: 1_795_275_000)
    #expect(
      "\(early)" == "this computer's clock shows 2026-11-21T15:30:00Z, but car/tls/ca.pem, which issues certificates,"
        + " begins 2027-03-01T09:30:00Z; nothing was changed")
    let ended = ClockError.ended(Self.path, end: 1_795_275_000, now: 1_803_893_400)
    #expect(
      "\(ended)" == "car/tls/ca.pem, which issues certificates, ended 2026-11-21T15:30:00Z, and this computer's clock"
        + " shows 2027-03-01T09:30:00Z; nothing was changed")
    for error in [unset, early] {
      #expect(error.exitStatus == .configuration && error.hint?.contains("timedatectl set-ntp true") == true)
    }
    // Nothing can be renewed any more.
    #expect(ended.exitStatus == .configuration && ended.hint?.contains("renew") == false)
    #expect(ended.hint?.contains("`stepctl provision vehicle DIR --force`") == true)
  }
}

/// Clocks by which nothing may be made: one that was never set, one that is behind the authority, and two after its
/// end.
private let wrongClocks = [0, begin - 1, end, end + day]

/// Everything that an operator makes, with a folder in which all of it could be made.
@Suite("At a time when an operator issues nothing") struct WrongClockTests {
  let folder: TemporaryFolder
  let car: VehicleFolder
  let fleet: FleetOperator
  let bus: Vehicle
  let record: VehicleRecord

  init() throws {
    folder = try TemporaryFolder()
    car = try folder.vehicle()
    _ = try car.provisionToken(.sample(), now: now, force: false)
    _ = try car.provisionToken(.sample(RiderName("bob")!), now: now, force: false)
    fleet = try FleetOperator.create("\(folder.path)/fleet", host: "localhost", port: 1, now: now)
    bus = try Vehicle(name: "Bus", uuid: .random(), steps: Vehicle.sample().steps)
    record = try FleetOperatorTests.admit(bus, "vehicles/\(bus.uuid)", to: fleet)
  }

  static func enrolment(_ vehicle: Vehicle) throws -> VehicleEnrolment {
    VehicleEnrolment(
      vehicle: vehicle, topic: TopicPrefix("vehicles/\(vehicle.uuid)")!, encryptionKey: DecryptionKey().encryptionKey,
      signingKey: SigningKey().verificationKey,
      certificateRequest: try CertificateRequest(for: PrivateKey(), name: "controller").der())
  }

  static func request() throws -> DeviceRequest {
    try DeviceRequest(
      verifying: DeviceRequest.signed(
        name: "anna", certificateRequest: CertificateRequest(for: PrivateKey()).der(), issued: now, by: SigningKey()))
  }

  /// All files and folders, with their modes and contents.
  func contents() throws -> [String: [UInt8]] {
    var contents: [String: [UInt8]] = [:]
    for entry in try folder.listing() {
      let path = "\(folder.path)/\(entry.prefix { $0 != " " })"
      contents[entry] = Files.isFolder(path) ? [] : try Files.read(path)
    }
    return contents
  }

  /// Expects that a maker makes nothing, by each of the clocks, and that it does by a right one.
  func expectRefusals(
    _ name: String, by clocks: [Int64] = wrongClocks, _ make: (Int64) throws -> Void
  ) throws {
    let before = try contents()
    for clock in clocks {
      #expect(throws: ClockError.self, "\(name) at \(clock)") { try make(clock) }
      #expect(try contents() == before, "\(name) at \(clock)")
    }
    #expect(throws: Never.self, "\(name)") { try make(now) }
  }

  @Test("there are no tokens, and no certificates for riders")
  func riders() throws {
    try expectRefusals("a new rider") {
      _ = try car.provisionToken(.sample(RiderName("eve")!, from: now), now: $0, force: false)
    }
    try expectRefusals("another token") { _ = try car.provisionToken(.sample(from: now), now: $0, force: true) }
    let request = try Self.request()
    try expectRefusals("access for a device") { _ = try car.grantAccess(.sample(from: now), to: request, now: $0) }
    // What was typed is of no use either.
    #expect(throws: ClockError.unset(now: 60)) { try car.provisionToken(.sample(from: 60), now: 60, force: true) }
    // The clock is right, and the time that was typed is not.
    let before = try contents()
    #expect(throws: ProvisioningError.beforeAuthority(begin: begin)) {
      try car.provisionToken(.sample(from: begin - 1), now: now, force: true)
    }
    #expect(try contents() == before)
  }

  @Test("there are no certificates for watchers")
  func watchers() throws {
    try expectRefusals("a watcher") {
      let plan = WatcherPlan(name: RiderName("home")!, lifetime: day, isForHomeAssistant: true)
      _ = try car.provisionWatcher(plan, now: $0)
    }
  }

  @Test("no certificate is renewed, and none takes another's place")
  func renewal() throws {
    try expectRefusals("broker and controller") { _ = try car.renewCertificates(now: $0) }
    for certificate in try car.place.certificates() {
      try expectRefusals(certificate.name) { _ = try car.place.renewCertificate(certificate.name, now: $0) }
    }
    try expectRefusals("another address") {
      _ = try car.place.moveBroker(to: BrokerAddress(host: .localhost, port: 18883), now: $0)
    }
    try expectRefusals("the list of revoked certificates") { try car.place.writeRevocationList(now: $0) }
  }

  @Test("vehicle.toml is not carried over, whatever has changed in it")
  func update() throws {
    try expectRefusals("an unchanged vehicle") { _ = try car.update(now: $0) }
    let file = car.path("vehicle.toml")
    let text = try TemporaryFolder.text(file).replacing("port = 8883", with: "port = 18883")
    try Files.replace(file, with: text.utf8, mode: 0o644)
    try expectRefusals("another port") { _ = try car.update(now: $0) }
  }

  @Test("a moved folder is put right by any clock: what that writes has no time")
  func relocation() throws {
    let before = try contents()
    try car.relocate()
    #expect(try contents() == before)
  }

  @Test("there are no notices and no codes, nothing is revoked, and keys do not change")
  func notices() throws {
    let place = car.place
    try expectRefusals("a code") { _ = try car.vehicleCode(now: $0) }
    try expectRefusals("notices") { _ = try place.notices(now: $0) }
    try expectRefusals("a revocation") {
      _ = try place.revoke([.token(place.ledger().tokens[0].id)], now: $0)
    }
    try expectRefusals("the next key") { _ = try place.rotateKeys(now: $0, force: true) }
    try expectRefusals("the key after") { _ = try place.rotateKeys(now: $0, force: true) }
    try expectRefusals("the end of the old key") { _ = try place.retireKey(now: $0, force: true) }
  }

  @Test("there are no new vehicles")
  func vehicles() throws {
    let path = "\(folder.path)/new"
    for (index, clock) in (wrongClocks + [now]).enumerated() {
      let plan = try OperatorPlaceTests.plan("Van")
      let before = try contents()
      func provision(_ owner: VehicleOwner, at clock: Int64) throws {
        _ = try VehicleFolder(path).provisionVehicle(plan, of: owner, now: clock, force: false)
      }
      if clock == now {
        try provision(.place(car.place, nil), at: clock)
      } else {
        #expect(throws: ClockError.self) { try provision(.place(car.place, nil), at: clock) }
        #expect(try contents() == before, "clock \(index)")
      }
    }
  }

  @Test("an operator, a vehicle with its own, and a vehicle's keys are made by no clock from before stepctl")
  func beginnings() throws {
    let clocks: [Int64] = [0, 60, IssueTime.earliest - 1]
    try expectRefusals("an operator", by: clocks) {
      _ = try OperatorPlace("\(folder.path)/a").initialize(at: .sample, now: $0)
    }
    try expectRefusals("a vehicle", by: clocks) {
      try VehicleFolder("\(folder.path)/b").provisionVehicle(OperatorPlaceTests.plan("Van"), now: $0, force: false)
    }
    try expectRefusals("a vehicle in another's place", by: clocks) {
      try car.provisionVehicle(.sample("Other"), now: $0, force: true)
    }
    try expectRefusals("keys", by: clocks) { _ = try VehicleFolder("\(folder.path)/c").prepareKeys(now: $0) }
    try expectRefusals("the same keys", by: clocks) { _ = try VehicleFolder("\(folder.path)/c").prepareKeys(now: $0) }
  }

  @Test("a fleet's server is not asked: it would take the code, and the vehicle would have nothing")
  func enrolment() throws {
    var isAsked = false
    let before = try contents()
    #expect(throws: ClockError.unset(now: 60)) {
      try VehicleFolder("\(folder.path)/new").provisionVehicle(
        OperatorPlaceTests.plan("Van"),
        of: .server { enrolment in
          isAsked = true
          return try fleet.admit(enrolment, now: now)
        }, now: 60, force: false)
    }
    #expect(!isAsked)
    #expect(try contents() == before)
  }

  @Test("a fleet's server admits, grants, revokes and forgets nothing")
  func server() throws {
    let (request, record) = (try Self.request(), record)
    try expectRefusals("access") {
      _ = try fleet.grant(record, subject: "b-1", steps: [.left], validity: now..<now + hour, to: request, now: $0)
    }
    try expectRefusals("a vehicle") {
      let vehicle = try Vehicle(name: "Van", uuid: .random(), steps: bus.steps)
      _ = try fleet.admit(Self.enrolment(vehicle), now: $0)
    }
    try expectRefusals("a server's certificate") { _ = try fleet.serverCertificate(for: "localhost", now: $0) }
    try expectRefusals("a copied folder") { try fleet.relocate(now: $0) }
    // A clock that is ahead would forget what can still be revoked.
    try expectRefusals("what was given by hand") { _ = try fleet.ledger(now: $0) }
    try expectRefusals("what a server knows") { try fleet.keep(Ledger(), inPlaceOf: Ledger(), now: $0) }
    try expectRefusals("the next key") { _ = try fleet.rotateKeys(above: now + hour, now: $0) }
    try expectRefusals("notices") { _ = try fleet.noticeWriter(now: $0) }
    let before = try contents()
    #expect(throws: ClockError.unset(now: 0)) {
      try FleetOperator.create("\(self.folder.path)/other", host: "localhost", port: 1, now: 0)
    }
    #expect(try contents() == before)
  }

  @Test("a booking that began before a new operator gets access from the operator's beginning on")
  func earlierBooking() throws {
    let granted = try fleet.grant(
      record, subject: "b-1", steps: [.left], validity: now - hour..<now + hour, to: Self.request(),
      now: now)
    let token = granted.file.token
    #expect(token.notBefore == begin && token.expires == now + hour)
  }
}
