package import Booking
import Crypto
import Domain
package import Encoding
package import Geography
import HTTPTypes
package import Logging
import Provisioning
package import StepProtocol
package import Store
import Synchronization
package import Web

/// Vehicles, bookings and access, for the riders' routes and the operator's.
package final class FleetService: Sendable {
  let store: any Store
  let desk: OperatorDesk
  let clock: Clock
  let logger: Logger
  /// The maximum number of an account's bookings that are not over.
  let limit: Int64
  package static let limit: Int64 = 20
  /// The vehicles. They change rarely and are read at every request. A transaction that changes one announces it.
  private let known = Mutex(Known())

  private struct Known {
    /// Sorted by name; nil until they are needed.
    var vehicles: [FleetVehicle]?
    /// The number of announcements so far.
    var age = 0
  }

  package init(
    store: any Store, desk: OperatorDesk, logger: Logger, limit: Int64 = limit, clock: @escaping Clock
  ) {
    (self.store, self.desk, self.logger, self.limit, self.clock) = (store, desk, logger, limit, clock)
  }

  private static func event(
    _ event: FleetEvent, of vehicle: String, _ booking: String? = nil, at now: Int64,
    in transaction: borrowing Transaction
  ) throws(StoreError) {
    try transaction.run(
      "INSERT INTO vehicle_event (id, vehicle, booking, event, time) VALUES (?, ?, ?, ?, ?)",
      [.text(UUID.random().description), .text(vehicle), Value(booking), .text(event.rawValue), .integer(now)])
  }

  // MARK: - Vehicles

  /// Follows changes by this server and by others of the same database. Ends with the store.
  package func followAnnouncements() async {
    let announcements = store.announcements()
    forgetVehicles()
    for await _ in announcements { forgetVehicles() }
  }

  private func forgetVehicles() {
    known.withLock {
      $0.vehicles = nil
      $0.age += 1
    }
  }

  private func knownVehicles() async throws -> [FleetVehicle] {
    let (vehicles, age) = known.withLock { ($0.vehicles, $0.age) }
    if let vehicles { return vehicles }
    let read = try await store.read { transaction in
      try transaction.run(
        "SELECT \(FleetVehicle.columns) FROM vehicle WHERE service <> 'removed' ORDER BY name"
      ).map(FleetVehicle.init)
    }
    // An announcement during the read means that the result may be outdated.
    known.withLock { if $0.age == age { $0.vehicles = read } }
    return read
  }

  /// - Returns: the vehicles by name, with their bookings; without removed vehicles.
  package func vehicles() async throws -> [(vehicle: FleetVehicle, bookings: [Booking])] {
    let now = clock()
    let vehicles = try await knownVehicles()
    return try await store.read { transaction in
      let open = try transaction.run(
        "SELECT vehicle, begins, ends, state, has_access FROM booking WHERE state IN ('booked', 'active') AND ends > ?",
        [.integer(now)])
      let bookings = Dictionary(grouping: open) { $0.text("vehicle") }.mapValues { $0.map(Self.booking) }
      return vehicles.map { ($0, bookings[$0.id] ?? []) }
    }
  }

  /// - Returns: the vehicle, and its current booking.
  package func vehicle(_ id: String) async throws -> (vehicle: FleetVehicle, present: Booking?) {
    let now = clock()
    guard let vehicle = try await knownVehicles().first(where: { $0.id == id }) else {
      throw Problem.notFound("vehicle")
    }
    // Bookings do not overlap, so the one that ends next is the one that began first.
    let next = try await store.read { transaction in
      try transaction.run(
        """
        SELECT begins, ends, state, has_access FROM booking
        WHERE vehicle = ? AND ends > ? AND state IN ('booked', 'active') ORDER BY ends LIMIT 1
        """, [.text(id), .integer(now)]
      ).first.map(Self.booking)
    }
    return (vehicle, next.flatMap { $0.interval.begin <= now ? $0 : nil })
  }

  private static func booking(_ row: Row) -> Booking {
    Booking(
      Interval(row.integer("begins"), row.integer("ends")), written: BookingState(rawValue: row.text("state"))!,
      hasAccess: row.integer("has_access") != 0)
  }

  private static func open(
    _ vehicle: String, from begin: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> [Booking] {
    try transaction.run(
      """
      SELECT begins, ends, state, has_access FROM booking
      WHERE vehicle = ? AND ends > ? AND state IN ('booked', 'active') ORDER BY begins
      """, [.text(vehicle), .integer(begin)]
    ).map(booking)
  }

  /// Registers a vehicle that will join with the code, or adopts one that `stepctl provision vehicle --operator` has
  /// made.
  ///
  /// - Returns: the code; nil if the vehicle exists already.
  package func addVehicle(_ name: String) async throws -> String? {
    guard Vehicle.isName(name) else { throw Problem.malformed("a vehicle's name is \(Vehicle.nameRule)") }
    let now = clock()
    if let known = try await desk.perform({ try $0.vehicle(name) }) {
      try await insert(known, folder: name, now: now, code: nil)
      return nil
    }
    let code = Self.newCode()
    let digest = Self.digest(code)
    try await store.write { transaction in
      try transaction.run("DELETE FROM invitation WHERE expires <= ? OR name = ?", [.integer(now), .text(name)])
      guard try transaction.run("SELECT id FROM vehicle WHERE name = ?", [.text(name)]).isEmpty else {
        throw Problem(.conflict, "taken", "there is a vehicle of that name")
      }
      try transaction.run(
        "INSERT INTO invitation (code, name, expires) VALUES (?, ?, ?)",
        [.text(digest), .text(name), .integer(now + Self.invitationLifetime)])
    }
    return code
  }

  /// Lifetime of the code in seconds: a day, enough to go to the vehicle.
  static let invitationLifetime: Int64 = 86_400

  /// 60 random bits, without letters that look alike.
  private static func newCode() -> String {
    let letters = Array("ABCDEFGHJKLMNPQRSTUVWXYZ23456789")
    let text = (0..<12).map { _ in letters.randomElement()! }
    return "\(String(text[0..<4]))-\(String(text[4..<8]))-\(String(text[8..<12]))"
  }

  private static func digest(_ text: String) -> String { hexadecimal(SHA256.hash(data: Array(text.utf8))) }

  private func insert(_ vehicle: Vehicle, folder: String, now: Int64, code: String?) async throws {
    let steps = FleetVehicle.json(vehicle.steps).text
    do {
      try await store.write { transaction in
        if let code {
          let spent = try transaction.run(
            "DELETE FROM invitation WHERE code = ? AND expires > ? RETURNING name", [.text(code), .integer(now)])
          guard !spent.isEmpty else { throw Self.badCode }
        }
        try transaction.run(
          "INSERT INTO vehicle (id, name, folder, steps, service, created) VALUES (?, ?, ?, ?, 'in_service', ?)",
          [.text(vehicle.uuid.description), .text(vehicle.name), .text(folder), .text(steps), .integer(now)])
        try Self.event(.providerDropOff, of: vehicle.uuid.description, at: now, in: transaction)
        try transaction.announce("vehicle")
      }
      forgetVehicles()
    } catch StoreError.constraint {
      throw Problem(.conflict, "taken", "there is, or was, a vehicle of that name or id")
    }
  }

  private static let badCode = Problem(.forbidden, "bad_code", "the code is wrong, was used, or has ended")

  /// The request of a vehicle that joins.
  struct Enrolment: Sendable {
    let code: String
    let name: String?
    let id: UUID
    let topic: TopicPrefix
    let steps: [Step]
    let encryptionKey: EncryptionKey
    let statementKey: VerificationKey
    let certificateRequest: [UInt8]
  }

  func enrol(_ enrolment: Enrolment) async throws -> (name: String, FleetOperator.Admission) {
    let now = clock()
    let code = Self.digest(enrolment.code)
    let invitation = try await store.read { transaction in
      try transaction.run(
        "SELECT name, expires FROM invitation WHERE code = ? AND expires > ?", [.text(code), .integer(now)]
      ).first.map { (name: $0.text("name"), expires: $0.integer("expires")) }
    }
    guard let (name, expires) = invitation else { throw Self.badCode }
    guard enrolment.name == nil || enrolment.name == name else {
      throw Problem(.conflict, "other_name", "the code is for the vehicle \"\(name)\"")
    }
    let vehicle: Vehicle
    do { vehicle = try Vehicle(name: name, uuid: enrolment.id, steps: enrolment.steps) } catch {
      throw Problem.malformed("steps: two have the same id, side or major")
    }
    // Uses up the code first: of two vehicles that bring it at once, one continues.
    try await insert(vehicle, folder: enrolment.id.description, now: now, code: code)
    do {
      let admission = try await desk.perform {
        try $0.admit(
          .init(
            vehicle: vehicle, topic: enrolment.topic, encryptionKey: enrolment.encryptionKey,
            statementKey: enrolment.statementKey, certificateRequest: enrolment.certificateRequest), now: now)
      }
      logger.notice("vehicle joined", metadata: ["vehicle": "\(enrolment.id)"])
      return (name, admission)
    } catch {
      try await store.write { transaction in
        try transaction.run("DELETE FROM vehicle_event WHERE vehicle = ?", [.text(enrolment.id.description)])
        try transaction.run("DELETE FROM vehicle WHERE id = ?", [.text(enrolment.id.description)])
        try transaction.announce("vehicle")
        // With its first end: else whoever has the code could keep it valid for ever, with requests that fail.
        try transaction.run(
          "INSERT INTO invitation (code, name, expires) VALUES (?, ?, ?)",
          [.text(code), .text(name), .integer(expires)])
      }
      forgetVehicles()
      if case FleetOperator.Refusal.request(let reason) = error { throw Problem.malformed(reason) }
      guard let error = error as? any Failure else { throw error }
      // This line is for the operator, because it names files.
      logger.error("a vehicle has not joined", metadata: ["vehicle": "\(enrolment.id)", "error": "\(error)"])
      if error.exitStatus == .usage { throw Problem(.conflict, "taken", "a vehicle with that id or topic is there") }
      throw Problem.busy("no vehicle can join at present", seconds: 5)
    }
  }

  /// Takes a vehicle out of service, or returns it. Bookings stay. Out of service, no access is issued, and issued
  /// access is revoked.
  package func setService(_ service: Service, of name: String) async throws {
    let now = clock()
    let vehicle = try await named(name).vehicle
    guard vehicle.service != service else {
      try await withdraw()
      return
    }
    let event: FleetEvent =
      switch service {
      case .inService: .maintenanceEnd
      case .suspended: .maintenance
      case .removed: .decommissioned
      }
    try await store.write { transaction in
      try transaction.reserve(Self.accessIsGiven)
      // Another command may have removed the vehicle since it was found. What is removed does not come back.
      let found = try transaction.run(
        "UPDATE vehicle SET service = ? WHERE id = ? AND service <> 'removed' RETURNING id",
        [.text(service.rawValue), .text(vehicle.id)])
      guard !found.isEmpty else { throw Problem.notFound("vehicle") }
      if service == .removed {
        // Frees the name.
        try transaction.run(
          "UPDATE vehicle SET name = ? WHERE id = ?", [.text("\(vehicle.name) (\(vehicle.id))"), .text(vehicle.id)])
        let cancelled = try transaction.run(
          """
          UPDATE booking SET state = 'cancelled', version = version + 1
          WHERE vehicle = ? AND state IN ('booked', 'active') AND ends > ? RETURNING id
          """, [.text(vehicle.id), .integer(now)])
        for booking in cancelled {
          try Self.event(.providerCancellation, of: vehicle.id, booking.text("id"), at: now, in: transaction)
        }
      }
      try Self.event(event, of: vehicle.id, at: now, in: transaction)
      try transaction.announce("vehicle")
      if service != .inService {
        try Self.mark("booking IN (SELECT id FROM booking WHERE vehicle = ?)", .text(vehicle.id), now, in: transaction)
      }
    }
    forgetVehicles()
    try await withdraw()
    if service == .removed { try await forgetRemoved() }
  }

  /// Lets the operator forget removed vehicles: each as soon as it knows all revocations, or all revoked tokens have
  /// ended. Until then the broker admits the vehicle's clients.
  private func forgetRemoved() async throws {
    let now = clock()
    let removed = try await store.read { transaction in
      try transaction.run(
        """
        SELECT id, folder, (SELECT max(expires) FROM access JOIN booking ON booking.id = access.booking
          WHERE booking.vehicle = vehicle.id) AS last
        FROM vehicle WHERE service = 'removed'
        """
      ).map { (id: $0.text("id"), folder: $0.text("folder"), lasts: $0.optionalInteger("last") ?? 0 > now) }
    }
    for (id, folder, lasts) in removed {
      // Another vehicle may already use its folder's name.
      guard try await desk.perform({ try $0.vehicle(folder)?.uuid.description == id }) else { continue }
      try await desk.remove(folder, telling: lasts ? UUID(id) : nil)
    }
  }

  /// Sets a vehicle's present place; nil if it is no longer known.
  package func setPlace(_ place: Coordinate?, of name: String) async throws {
    let now = clock()
    let vehicle = try await named(name).vehicle
    func units(_ degrees: Double) -> Int64 { Int64((degrees * FleetVehicle.Place.perDegree).rounded()) }
    let values = [
      Value(place.map { units($0.latitude) }), Value(place.map { units($0.longitude) }), Value(place.map { _ in now }),
      .text(vehicle.id),
    ]
    try await store.write { transaction in
      try transaction.run("UPDATE vehicle SET latitude = ?, longitude = ?, placed_at = ? WHERE id = ?", values)
      try transaction.announce("vehicle")
    }
    forgetVehicles()
  }

  /// Finds a vehicle by name or id.
  package func named(_ name: String) async throws -> (vehicle: FleetVehicle, bookings: [Booking]) {
    let now = clock()
    return try await store.read { transaction in
      let row = try transaction.run(
        "SELECT \(FleetVehicle.columns) FROM vehicle WHERE (name = ? OR id = ?) AND service <> 'removed'",
        [.text(name), .text(name)]
      ).first
      guard let vehicle = row.map(FleetVehicle.init) else { throw Problem.notFound("vehicle") }
      return (vehicle, try Self.open(vehicle.id, from: now, in: transaction))
    }
  }

  /// The vehicles that have not joined yet.
  package func invitations() async throws -> [(name: String, expires: Int64)] {
    let now = clock()
    return try await store.read { transaction in
      try transaction.run(
        "SELECT name, expires FROM invitation WHERE expires > ? ORDER BY name", [.integer(now)]
      ).map { ($0.text("name"), $0.integer("expires")) }
    }
  }

  // MARK: - Bookings

  /// A request that may be sent twice.
  struct Repeatable: Sendable {
    let key: String
    /// The digest of the request's content: the same key with other content is refused.
    let digest: String

    init(key: String, body: [UInt8]) {
      self.key = key
      digest = hexadecimal(SHA256.hash(data: body))
    }
  }

  /// - Returns: the booking's JSON, as it was when the booking was made.
  func book(
    _ id: String, for caller: Caller, _ asked: Interval, steps: [StepID]?, repeatable: Repeatable?
  ) async throws -> JSON {
    let now = clock()
    let account = caller.account
    let booking = UUID.random().description
    do {
      return try await store.write { [limit] transaction in
        // Serializes the account's requests: each sees the earlier ones, including a copy of itself. A cancellation of
        // all bookings sees this one too.
        try transaction.reserve(account)
        if let repeatable,
          let earlier = try transaction.run(
            "SELECT digest, answer FROM idempotency WHERE account = ? AND key = ?",
            [.text(account), .text(repeatable.key)]
          ).first
        {
          guard earlier.text("digest") == repeatable.digest else {
            throw Problem(.unprocessableContent, "key_reused", "the Idempotency-Key was used for another request")
          }
          return try JSON(parsing: earlier.text("answer").utf8)
        }
        let interval: Interval
        do throws(BookingProblem) { interval = try BookingRules.interval(asked, now: now) } catch {
          throw Problem(error)
        }
        guard
          let vehicle = try transaction.run(
            "SELECT \(FleetVehicle.columns) FROM vehicle WHERE id = ? AND service <> 'removed'", [.text(id)]
          ).first.map(FleetVehicle.init)
        else { throw Problem.notFound("vehicle") }
        guard vehicle.service == .inService else { throw Self.unavailable }
        let known = vehicle.steps.map(\.id)
        if let unknown = steps?.first(where: { !known.contains($0) }) {
          throw Problem(.unprocessableContent, "no_such_step", "the vehicle has no step \(unknown)")
        }
        let wanted = known.filter { steps?.contains($0) ?? true }
        try Self.checkActive(account, in: transaction)
        guard try Self.openBookings(of: account, at: now, in: transaction) < limit else {
          throw Problem(
            .conflict, "too_many_bookings", "the account has \(limit) bookings that are not over, and cannot have more")
        }
        // PostgreSQL writes a row before it looks for overlaps. Two such transactions at once would wait for each other
        // until PostgreSQL aborts one after a second, while further ones arrive. The lock prevents that.
        try transaction.reserve(id)
        let subject = "b-" + hexadecimal(SymmetricKey(size: .init(bitCount: 64)).withUnsafeBytes { Array($0) })
        try transaction.run(
          """
          INSERT INTO booking (id, vehicle, account, subject, begins, ends, steps, state, has_access, version, created)
          VALUES (?, ?, ?, ?, ?, ?, ?, 'booked', 0, 1, ?)
          """,
          [
            .text(booking), .text(id), .text(account), .text(subject), .integer(interval.begin), .integer(interval.end),
            .text(wanted.map(\.description).joined(separator: " ")), .integer(now),
          ])
        try Self.event(.reservationStart, of: id, booking, at: now, in: transaction)
        let row = try transaction.run("\(FleetBooking.select) WHERE booking.id = ?", [.text(booking)])
        let answer = FleetBooking(row[0]).json(at: now)
        if let repeatable {
          try transaction.run(
            "INSERT INTO idempotency (account, key, digest, answer, created) VALUES (?, ?, ?, ?, ?)",
            [
              .text(account), .text(repeatable.key), .text(repeatable.digest), .text(answer.text), .integer(now),
            ])
        }
        return answer
      }
    } catch StoreError.constraint(FleetTables.overlap) {
      throw try await taken(id, asked, now: now)
    }
  }

  private static func openBookings(
    of account: String, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> Int64 {
    // A booking that is not over began within the maximum length, so older rows need not be read.
    try transaction.run(
      """
      SELECT count(*) AS n FROM booking
      WHERE account = ? AND begins > ? AND ends > ? AND state IN ('booked', 'active')
      """, [.text(account), .integer(now - BookingRules.maximumLength), .integer(now)]
    )[0].integer("n")
  }

  /// The account may have been suspended since the request was read.
  private static func checkActive(_ account: String, in transaction: borrowing Transaction) throws {
    guard
      try !transaction.run("SELECT id FROM account WHERE id = ? AND state = 'active'", [.text(account)]).isEmpty
    else {
      throw Problem(
        .unauthorized, "unauthorized", "the account is suspended",
        headers: [.wwwAuthenticate: #"DPoP algs="EdDSA Ed25519""#])
    }
  }

  private static let unavailable = Problem(.conflict, "unavailable", "the vehicle is out of service")

  private func taken(_ vehicle: String, _ asked: Interval, now: Int64) async throws -> Problem {
    let asked = Interval(max(asked.begin, now), asked.end)
    let open = try await store.read { try Self.open(vehicle, from: asked.begin, in: $0) }
    let next = BookingRules.next(asked, among: open.map(\.interval))
    return Problem(
      .conflict, "taken", "another booking has that time", members: [.init("next", .array(next.map(\.json)))])
  }

  /// The newest 200, which include all that are not over.
  func bookings(of account: String) async throws -> [FleetBooking] {
    try await store.read { transaction in
      try transaction.run(
        """
        \(FleetBooking.select) WHERE account = ? ORDER BY state IN ('booked', 'active') DESC, begins DESC LIMIT 200
        """, [.text(account)]
      ).map(FleetBooking.init)
    }
  }

  /// For the operator: all bookings that are not over.
  package func openBookings() async throws -> [FleetBooking] {
    let now = clock()
    return try await store.read { transaction in
      try transaction.run(
        "\(FleetBooking.select) WHERE state IN ('booked', 'active') AND ends > ? ORDER BY begins", [.integer(now)]
      ).map(FleetBooking.init)
    }
  }

  /// - Parameter account: the required owner; nil for the operator.
  func booking(_ id: String, of account: String?) async throws -> FleetBooking {
    try await store.read { try Self.booking(id, of: account, in: $0) }
  }

  private static func booking(
    _ id: String, of account: String?, in transaction: borrowing Transaction
  ) throws -> FleetBooking {
    let row = try transaction.run("\(FleetBooking.select) WHERE booking.id = ?", [.text(id)]).first
    // Another rider's booking looks like a missing one.
    guard let booking = row.map(FleetBooking.init), account == nil || booking.account == account else {
      throw Problem.notFound("booking")
    }
    return booking
  }

  /// A change of a booking.
  enum Change: Sendable {
    /// - Parameter etag: the value of `If-Match`.
    case extend(to: Int64, etag: String)
    case cancel, end
  }

  func change(_ id: String, of account: String?, _ change: Change) async throws -> FleetBooking {
    let now = clock()
    var next: (vehicle: String, Interval)?
    do {
      if case .extend(let end, _) = change {
        let known = try await booking(id, of: account)
        next = (known.vehicle.id, Interval(known.booking.interval.begin, end))
      }
      let changed = try await store.write { [next] transaction -> FleetBooking in
        if let next { try transaction.reserve(next.vehicle) }
        let old = try Self.booking(id, of: account, in: transaction)
        let new: Booking
        var event: FleetEvent?
        do throws(BookingProblem) {
          switch change {
          case .extend(let end, _): new = try old.booking.extended(to: end, now: now)
          case .cancel:
            new = try old.booking.cancelled(now: now)
            event = account == nil ? .providerCancellation : .customerCancellation
          case .end:
            new = try old.booking.ended(now: now)
            event = .tripEnd
          }
        } catch { throw Problem(error) }
        // The longer booking would have no access. An earlier end is possible, because it leaves time to others.
        if old.vehicle.service != .inService, new.interval.end > old.booking.interval.end { throw Self.unavailable }
        if case .extend(_, let etag) = change, !Self.names(old.etag, in: etag) { throw Self.changed }
        guard new != old.booking else { return old }
        // Of two writers that have read the same version, only one writes.
        let written = try transaction.run(
          """
          UPDATE booking SET ends = ?, state = ?, version = version + 1 WHERE id = ? AND version = ? RETURNING version
          """, [.integer(new.interval.end), .text(new.written.rawValue), .text(id), .integer(old.version)])
        guard !written.isEmpty else { throw Self.changed }
        if let event { try Self.event(event, of: old.vehicle.id, id, at: now, in: transaction) }
        // Marks access that lasts longer than the booking now does.
        let limit = new.written.isOpen ? new.interval.end + BookingRules.grace : now
        try Self.mark("booking = ?", .text(id), limit, in: transaction)
        return try Self.booking(id, of: account, in: transaction)
      }
      try await withdraw()
      return changed
    } catch StoreError.constraint(FleetTables.overlap) {
      guard let next else { throw Problem.failed }
      throw try await taken(next.vehicle, next.1, now: now)
    }
  }

  /// Whether an If-Match or If-None-Match names an entity tag: `*`, or a list (RFC 9110 13.1.1). Our tags contain no
  /// comma.
  static func names(_ etag: String, in list: String) -> Bool {
    list == "*" || list.split(separator: ",").contains { $0.filter { $0 != " " && $0 != "\t" } == etag }
  }

  private static let changed = Problem(
    .preconditionFailed, "changed", "the booking has changed; read it, and ask again")

  // MARK: - Access

  /// The lock (`Transaction.reserve`) for recording issued access and for revoking a vehicle's or device's access: the
  /// second transaction sees the result of the first.
  private static let accessIsGiven = "access"

  private static let deviceRevoked = Problem(
    .conflict, "device_revoked", "the operator has taken back this device's access; it needs a new device key")

  private static func isRevoked(_ device: String, in transaction: borrowing Transaction) throws(StoreError) -> Bool {
    try !transaction.run("SELECT device FROM revoked_device WHERE device = ?", [.text(device)]).isEmpty
  }

  /// - Returns: the text of the access file.
  func access(to id: String, for caller: Caller, _ request: DeviceRequest) async throws -> String {
    let now = clock()
    let known = try await booking(id, of: caller.account)
    guard known.vehicle.service == .inService else { throw Self.unavailable }
    guard request.device.thumbprint.description == caller.device else {
      throw Problem(.unprocessableContent, "bad_request", "the request is of another device than the one that asks")
    }
    let validity: Range<Int64>
    do throws(BookingProblem) { validity = try known.booking.validity(at: now) } catch { throw Problem(error) }
    let place = try await takePlace(known, for: caller, until: validity.upperBound, now: now)
    let token: Token
    let text: String
    do {
      let granted = try await desk.perform {
        try $0.grant(
          known.vehicle.folder, subject: known.subject, steps: known.steps, validity: validity, to: request, now: now)
      }
      guard let granted else { throw Self.deviceRevoked }
      (token, text) = (granted.token, granted.text)
    } catch {
      try await store.write { try $0.run("DELETE FROM access WHERE jti = ?", [.text(place)]) }
      switch error {
      case FleetOperator.Refusal.request(let reason): throw Problem(.unprocessableContent, "bad_request", reason)
      case FleetOperator.Refusal.tooMany(let next): throw Self.tooMuchAccess(until: next)
      case let error as any Failure:
        // This line is for the operator, because it names files.
        logger.error("no access", metadata: ["booking": "\(id)", "error": "\(error)"])
        throw Problem.busy("access cannot be given at present", seconds: 5)
      default: throw error
      }
    }
    let refusal = try await store.write { transaction -> Problem? in
      try transaction.reserve(Self.accessIsGiven)
      let refusal = try Self.note(token, of: known, in: transaction)
      try transaction.run(
        "UPDATE access SET jti = ?, expires = ?, standing = ? WHERE jti = ?",
        [.text(token.id), .integer(token.expires), .text(refusal == nil ? "given" : "withdrawing"), .text(place)])
      if refusal == nil, !known.booking.hasAccess {
        try Self.event(.tripStart, of: known.vehicle.id, id, at: max(now, validity.lowerBound), in: transaction)
      }
      return refusal
    }
    if let refusal {
      try await withdraw()
      throw refusal
    }
    return text
  }

  /// Records that a booking has access.
  ///
  /// - Returns: why it may not have access: something changed meanwhile, and that transaction did not see the new
  ///   token.
  private static func note(
    _ token: Token, of known: FleetBooking, in transaction: borrowing Transaction
  ) throws(StoreError) -> Problem? {
    let vehicle = try transaction.run("SELECT service FROM vehicle WHERE id = ?", [.text(known.vehicle.id)])
    guard vehicle[0].text("service") == Service.inService.rawValue else { return unavailable }
    guard try !isRevoked(token.device.thumbprint.description, in: transaction) else { return deviceRevoked }
    let open = try transaction.run(
      "UPDATE booking SET has_access = 1 WHERE id = ? AND version = ? AND state IN ('booked', 'active') RETURNING id",
      [.text(known.id), .integer(known.version)])
    return open.isEmpty ? Problem(.conflict, "changed", "the booking has changed meanwhile; ask again") : nil
  }

  /// The maximum number of an account's unexpired tokens for one vehicle, including revoked ones. A vehicle can
  /// remember few revocations, and one account must not use up the space of all others.
  static let mostAccess = 8

  private static func tooMuchAccess(until next: Int64) -> Problem {
    let from = Timestamp(seconds: next).description
    return Problem(
      .conflict, "too_many_access", "there is too much access to the vehicle that has not ended; ask again at \(from)",
      members: [.init("from", .string(from))])
  }

  /// Reserves a place for a token that is about to be made. Of simultaneous requests, each sees the earlier ones.
  ///
  /// - Returns: the placeholder for the token's jti.
  private func takePlace(
    _ booking: FleetBooking, for caller: Caller, until end: Int64, now: Int64
  ) async throws -> String {
    let place = "asked \(UUID.random())"
    try await store.write { transaction in
      try transaction.reserve(caller.account)
      try Self.checkActive(caller.account, in: transaction)
      guard try !Self.isRevoked(caller.device, in: transaction) else { throw Self.deviceRevoked }
      let lasting = try transaction.run(
        """
        SELECT access.expires AS expires FROM access JOIN booking ON booking.id = access.booking
        WHERE booking.account = ? AND booking.vehicle = ? AND access.expires > ? ORDER BY access.expires
        """, [.text(caller.account), .text(booking.vehicle.id), .integer(now)])
      guard lasting.count < Self.mostAccess else {
        throw Self.tooMuchAccess(until: lasting[lasting.count - Self.mostAccess].integer("expires"))
      }
      try transaction.run(
        "INSERT INTO access (jti, booking, device, expires, standing) VALUES (?, ?, ?, ?, 'asked')",
        [.text(place), .text(booking.id), .text(caller.device), .integer(end)])
    }
    return place
  }

  /// Marks issued access that lasts beyond a time for revocation: `withdraw` revokes it.
  ///
  /// - Parameter condition: SQL on a row of `access`.
  private static func mark(
    _ condition: String, _ value: Value, _ beyond: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    try transaction.run(
      "UPDATE access SET standing = 'withdrawing' WHERE standing = 'given' AND expires > ? AND \(condition)",
      [.integer(beyond), value])
  }

  /// Revokes all marked tokens. When it returns, the operator's ledger has the revocations, and vehicles are being
  /// told. If it throws, the marks stay, and the next request or the housekeeping repeats it.
  ///
  /// - Returns: the number of tokens.
  @discardableResult
  package func withdraw() async throws -> Int {
    let now = clock()
    let (tokens, devices) = try await store.read { transaction in
      let tokens = try transaction.run(
        """
        SELECT jti, vehicle FROM access JOIN booking ON booking.id = access.booking
        WHERE standing = 'withdrawing' AND access.expires > ? ORDER BY jti
        """, [.integer(now)]
      ).map { (jti: $0.text("jti"), vehicle: $0.text("vehicle")) }
      return (
        tokens, try transaction.run("SELECT device FROM revoked_device WHERE noted = 0").map { $0.text("device") }
      )
    }
    guard !tokens.isEmpty || !devices.isEmpty else { return 0 }
    var vehicles = Set(tokens.map(\.vehicle))
    // The ledger also knows tokens that `stepctl provision token` gave to the device; the database does not.
    if !devices.isEmpty { vehicles.formUnion(try await knownVehicles().map(\.id)) }
    let count = try await desk.revoke(
      devices.compactMap { Thumbprint($0).map(Notice.Subject.device) } + tokens.map { .token($0.jti) },
      of: Set(vehicles.compactMap { UUID($0) }), now: now)
    try await store.write { transaction in
      for (jti, _) in tokens {
        try transaction.run("UPDATE access SET standing = 'withdrawn' WHERE jti = ?", [.text(jti)])
      }
      for device in devices {
        try transaction.run("UPDATE revoked_device SET noted = 1 WHERE device = ?", [.text(device)])
      }
    }
    return count
  }

  /// What the operator revokes.
  package enum Revocation: Sendable {
    /// The booking is also cancelled.
    case booking(String)
    /// The device never gets access again.
    case device(Thumbprint)
    /// The account, by its id. Its bookings are cancelled.
    case account(String)
  }

  /// - Returns: the number of tokens.
  package func revoke(_ revocation: Revocation) async throws -> Int {
    let now = clock()
    switch revocation {
    case .device(let device):
      // The entry in the operator's ledger ends with the device's last token, so the database keeps its own.
      try await store.write { transaction in
        try transaction.reserve(Self.accessIsGiven)
        try transaction.run(
          """
          INSERT INTO revoked_device (device, since, noted) VALUES (?, ?, 0)
          ON CONFLICT (device) DO UPDATE SET noted = 0
          """, [.text(device.description), .integer(now)])
        try Self.mark("device = ?", .text(device.description), now, in: transaction)
      }
      return try await withdraw()
    case .booking(let id):
      _ = try await booking(id, of: nil)
      return try await cancelAll("id = ?", id, now: now)
    case .account(let id):
      return try await cancelAll("account = ?", id, now: now)
    }
  }

  private func cancelAll(_ condition: String, _ value: String, now: Int64) async throws -> Int {
    let count = try await store.write { transaction in
      // Waits for a booking that is being made, so that it is cancelled too.
      try transaction.reserve(value)
      try Self.cancel(condition, [.text(value)], now, in: transaction)
      let concerned = "booking IN (SELECT id FROM booking WHERE \(condition))"
      try Self.mark(concerned, .text(value), now, in: transaction)
      return try transaction.run(
        "SELECT count(*) AS n FROM access WHERE standing = 'withdrawing' AND expires > ? AND \(concerned)",
        [.integer(now), .text(value)])[0].integer("n")
    }
    try await withdraw()
    return Int(count)
  }

  private static func cancel(
    _ condition: String, _ values: [Value], _ now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    let open = try transaction.run(
      """
      UPDATE booking SET state = 'cancelled', version = version + 1
      WHERE \(condition) AND state IN ('booked', 'active') AND ends > ? RETURNING id, vehicle
      """, values + [.integer(now)])
    for row in open {
      try event(.providerCancellation, of: row.text("vehicle"), row.text("id"), at: now, in: transaction)
    }
  }

  /// All data about an account, for its export.
  package func export(_ account: String) async throws -> [JSON.Member] {
    let now = clock()
    return try await store.read { transaction in
      let bookings = try transaction.run(
        "\(FleetBooking.select) WHERE account = ? ORDER BY begins DESC", [.text(account)]
      ).map { FleetBooking($0).json(at: now) }
      let access = try transaction.run(
        """
        SELECT booking, device, expires, standing FROM access
        WHERE standing <> 'asked' AND booking IN (SELECT id FROM booking WHERE account = ?) ORDER BY expires DESC
        """, [.text(account)]
      ).map { row -> JSON in
        [
          "booking": .string(row.text("booking")), "device": .string(row.text("device")),
          "ends": .string(Timestamp(seconds: row.integer("expires")).description),
          "revoked": .bool(row.text("standing") != "given"),
        ]
      }
      return [JSON.Member("bookings", .array(bookings)), .init("access", .array(access))]
    }
  }

  // MARK: - Time

  /// Applies the effects of time: ends bookings, and removes data that nobody asks for again.
  package func tidy() async throws {
    let now = clock()
    try await store.write { transaction in
      let over = try transaction.run(
        """
        UPDATE booking SET state = CASE has_access WHEN 0 THEN 'expired' ELSE 'ended' END
        WHERE state IN ('booked', 'active') AND ends <= ? RETURNING id, vehicle, state, ends
        """, [.integer(now)])
      for row in over {
        try Self.event(
          row.text("state") == "expired" ? .reservationStop : .tripEnd, of: row.text("vehicle"), row.text("id"),
          at: row.integer("ends"), in: transaction)
      }
      try transaction.run("DELETE FROM idempotency WHERE created <= ?", [.integer(now - 86_400)])
      // Completes interrupted work: an account was suspended, and its bookings still exist.
      try Self.cancel("account IN (SELECT id FROM account WHERE state <> 'active')", [], now, in: transaction)
      try transaction.run(
        "UPDATE access SET standing = 'withdrawing' WHERE jti IN (\(FleetTables.overdue))",
        [.integer(now), .integer(BookingRules.grace)])
    }
    try await withdraw()
    try await forgetRemoved()
    try await desk.perform { try $0.tidy(now: now) }
  }
}

extension Problem {
  init(_ problem: BookingProblem) {
    switch problem {
    case .backwards, .past, .tooShort, .tooLong, .tooFar:
      self.init(.unprocessableContent, problem.code, problem.description)
    case .over, .active, .notBegun: self.init(.conflict, problem.code, problem.description)
    case .tooEarly(let from):
      self.init(
        .conflict, problem.code, problem.description,
        members: [.init("from", .string(Timestamp(seconds: from).description))])
    }
  }
}
