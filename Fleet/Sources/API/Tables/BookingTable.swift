import Booking
import Domain
import Store

/// The rows of bookings. The database decides whether two of them overlap: `FleetTables.overlap`.
enum BookingTable {
  private static let select = """
    SELECT booking.id AS booking, account, subject, begins, ends, booking.steps AS wanted, state, has_access, version,
      booking.zone AS zone, zone_metres, zone_placed,
      \(VehicleTable.columns)
    FROM booking JOIN vehicle ON vehicle.id = booking.vehicle
    """

  static func find(_ id: String, in transaction: borrowing Transaction) throws(StoreError) -> FleetBooking? {
    try transaction.run("\(select) WHERE booking.id = ?", [.text(id)]).first.map(FleetBooking.init)
  }

  /// The ids of bookings that begin so, two at most.
  ///
  /// - Parameter begin: digits of a UUID.
  static func ids(beginning begin: String, in transaction: borrowing Transaction) throws(StoreError) -> [String] {
    try transaction.run("SELECT id FROM booking WHERE id LIKE ? LIMIT 2", [.text("\(begin)%")]).map { $0.text("id") }
  }

  /// The bookings of which vehicles' logs speak by that name, or for which that token was given.
  static func ids(
    ofSubjectOrToken text: String, in transaction: borrowing Transaction
  ) throws(StoreError) -> [String] {
    try transaction.run(
      "SELECT id FROM booking WHERE subject = ? UNION SELECT booking AS id FROM access WHERE jti = ?",
      [.text(text), .text(text)]
    ).map { $0.text("id") }
  }

  /// The addresses of the accounts that have open bookings, by their ids.
  static func emails(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) -> [String: String] {
    var emails: [String: String] = [:]
    for row in try transaction.run(
      """
      SELECT account.id AS id, account.email AS email FROM account WHERE account.id IN
        (SELECT account FROM booking WHERE state IN ('booked', 'active') AND ends > ?)
      """, [.integer(now)]
    ) { emails[row.text("id")] = row.optionalText("email") }
    return emails
  }

  /// How many bookings a page has at most.
  static let page = 200

  /// An account's newest, which include all that are not over.
  static func newest(of account: String, in transaction: borrowing Transaction) throws(StoreError) -> [FleetBooking] {
    try transaction.run(
      """
      \(select) WHERE account = ?
      ORDER BY state IN ('booked', 'active') DESC, begins DESC, booking.id DESC LIMIT \(page)
      """, [.text(account)]
    ).map(FleetBooking.init)
  }

  /// An account's newest of those that are over and that began before another one: the next page.
  static func newest(
    of account: String, before last: FleetBooking, in transaction: borrowing Transaction
  ) throws(StoreError) -> [FleetBooking] {
    try transaction.run(
      """
      \(select) WHERE account = ? AND state NOT IN ('booked', 'active') AND (begins, booking.id) < (?, ?)
      ORDER BY begins DESC, booking.id DESC LIMIT \(page)
      """, [.text(account), .integer(last.booking.interval.begin), .text(last.id)]
    ).map(FleetBooking.init)
  }

  /// All of an account, the newest first.
  static func all(of account: String, in transaction: borrowing Transaction) throws(StoreError) -> [FleetBooking] {
    try transaction.run("\(select) WHERE account = ? ORDER BY begins DESC", [.text(account)]).map(FleetBooking.init)
  }

  /// All that are not over, in the order of their begins.
  static func open(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) -> [FleetBooking] {
    try transaction.run(
      "\(select) WHERE state IN ('booked', 'active') AND ends > ? ORDER BY begins", [.integer(now)]
    ).map(FleetBooking.init)
  }

  /// The open bookings of each vehicle, by its id.
  static func openByVehicle(
    at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> [String: [Booking]] {
    let rows = try transaction.run(
      "SELECT vehicle, begins, ends, state, has_access FROM booking WHERE state IN ('booked', 'active') AND ends > ?",
      [.integer(now)])
    return Dictionary(grouping: rows) { $0.text("vehicle") }.mapValues { $0.map(Booking.init) }
  }

  /// The open bookings that are going on, by their vehicles' ids, and when the next one begins.
  static func present(
    at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> (bookings: [String: [Booking]], nextBegin: Int64?) {
    // Few have begun, and many end later: the sign keeps SQLite from the index by ends.
    let rows = try transaction.run(
      """
      SELECT vehicle, begins, ends, state, has_access FROM booking
      WHERE state IN ('booked', 'active') AND begins <= ? AND +ends > ?
      """, [.integer(now), .integer(now)])
    let next = try transaction.run(
      "SELECT min(begins) AS begins FROM booking WHERE state IN ('booked', 'active') AND begins > ?", [.integer(now)])
    return (
      Dictionary(grouping: rows) { $0.text("vehicle") }.mapValues { $0.map(Booking.init) },
      next[0].optionalInteger("begins")
    )
  }

  /// The open bookings of a vehicle that end after a time, in their order.
  ///
  /// - Parameter limit: how many of them; nil for all.
  static func open(
    of vehicle: String, endingAfter time: Int64, limit: Int64? = nil, in transaction: borrowing Transaction
  ) throws(StoreError) -> [Booking] {
    // Bookings do not overlap, so the one that ends first is the one that began first.
    try transaction.run(
      """
      SELECT begins, ends, state, has_access FROM booking
      WHERE vehicle = ? AND ends > ? AND state IN ('booked', 'active') ORDER BY ends\(limit == nil ? "" : " LIMIT ?")
      """, [.text(vehicle), .integer(time)] + (limit.map { [.integer($0)] } ?? [])
    ).map(Booking.init)
  }

  /// How many bookings that are not over have each state.
  static func countOpen(
    at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> (booked: Int64, active: Int64) {
    let open = try transaction.run(
      "SELECT count(*) AS n FROM booking WHERE state IN ('booked', 'active') AND ends > ?", [.integer(now)])
    // Few have begun: the sign keeps SQLite from the index by ends.
    let active = try transaction.run(
      """
      SELECT count(*) AS n FROM booking
      WHERE state IN ('booked', 'active') AND begins <= ? AND +ends > ? AND has_access = 1
      """, [.integer(now), .integer(now)])[0].integer("n")
    return (open[0].integer("n") - active, active)
  }

  /// How many of an account's bookings are not over.
  static func count(
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

  /// - Throws: `StoreError.constraint(FleetTables.overlap)` if another booking has that time.
  static func insert(
    _ booking: FleetBooking, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    let interval = booking.booking.interval
    try transaction.run(
      """
      INSERT INTO booking (id, vehicle, account, subject, begins, ends, steps, state, has_access, version, created)
      VALUES (?, ?, ?, ?, ?, ?, ?, 'booked', 0, 1, ?)
      """,
      [
        .text(booking.id), .text(booking.vehicle.id), .text(booking.account), .text(booking.subject),
        .integer(interval.begin), .integer(interval.end),
        .text(booking.steps.map(\.description).joined(separator: " ")), .integer(now),
      ])
    try FleetChange.booking(account: booking.account, vehicle: booking.vehicle.id).announce(in: transaction)
  }

  /// Writes what a change has made of a booking. Of two writers that have read the same version, only one writes.
  ///
  /// - Returns: whether it was written.
  static func update(
    _ id: String, version: Int64, to booking: Booking, parking: Parking?, in transaction: borrowing Transaction
  ) throws(StoreError) -> Bool {
    try announce(
      transaction.run(
        """
        UPDATE booking SET ends = ?, state = ?, zone = ?, zone_metres = ?, zone_placed = ?, version = version + 1
        WHERE id = ? AND version = ? RETURNING account, vehicle
        """,
        [
          .integer(booking.interval.end), .text(booking.written.rawValue), Value(parking?.zone), Value(parking?.metres),
          Value(parking?.placed), .text(id), .integer(version),
        ]), in: transaction)
  }

  /// Notes that a booking has access.
  ///
  /// - Returns: false if the booking is not open, or not of that version any more.
  static func giveAccess(
    _ id: String, version: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> Bool {
    try announce(
      transaction.run(
        """
        UPDATE booking SET has_access = 1 WHERE id = ? AND version = ? AND state IN ('booked', 'active')
        RETURNING account, vehicle
        """, [.text(id), .integer(version)]), in: transaction)
  }

  /// Announces that these bookings have changed.
  ///
  /// - Returns: whether there are any.
  private static func announce(_ rows: [Row], in transaction: borrowing Transaction) throws(StoreError) -> Bool {
    for row in rows {
      try FleetChange.booking(account: row.text("account"), vehicle: row.text("vehicle")).announce(in: transaction)
    }
    return !rows.isEmpty
  }

  /// Which bookings the operator cancels at once.
  enum Group: Sendable {
    case booking(String)
    case account(String)
    case vehicle(String)
    /// The accounts that may not book. Their bookings are left when something was interrupted.
    case inactiveAccounts

    /// SQL on a row of `booking`.
    var condition: String {
      switch self {
      case .booking: "id = ?"
      case .account: "account = ?"
      case .vehicle: "vehicle = ?"
      case .inactiveAccounts: "account IN (SELECT id FROM account WHERE state <> 'active')"
      }
    }

    /// What the riders are told.
    var message: RiderMessage.Kind {
      switch self {
      case .booking, .account, .inactiveAccounts: .cancelled
      case .vehicle: .vehicleRemoved
      }
    }

    var values: [Value] {
      switch self {
      case .booking(let id), .account(let id), .vehicle(let id): [.text(id)]
      case .inactiveAccounts: []
      }
    }
  }

  /// Cancels those that are not over, and notes it.
  ///
  /// - Parameter tells: whether their riders are to be told. Who is kept out is told that, and not each booking.
  static func cancel(
    _ group: Group, tells: Bool = true, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    let open = try transaction.run(
      """
      UPDATE booking SET state = 'cancelled', version = version + 1
      WHERE \(group.condition) AND state IN ('booked', 'active') AND ends > ? RETURNING id, vehicle, account
      """, group.values + [.integer(now)])
    _ = try announce(open, in: transaction)
    for row in open {
      try VehicleTable.note(
        .providerCancellation, of: row.text("vehicle"), row.text("id"), at: now, in: transaction)
      let account = row.text("account")
      guard tells, try AccountTable.isActive(account, in: transaction) else { continue }
      try MessageTable.add(group.message, to: account, about: row.text("id"), at: now, in: transaction)
    }
  }

  /// Removes where bookings ended before that time.
  static func forgetPlaces(before time: Int64, in transaction: borrowing Transaction) throws(StoreError) {
    try transaction.run(
      "UPDATE booking SET zone = NULL, zone_metres = NULL, zone_placed = NULL WHERE zone IS NOT NULL AND ends < ?",
      [.integer(time)])
  }

  /// The accounts whose vehicles are in use, by the vehicles' ids: a booking is active, or its access opens a step. The
  /// access lasts a little longer than the booking, unless the rider ends it.
  ///
  /// - Returns: with them, when the next of them is not in use any more, Unix time.
  static func riders(
    at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> (accounts: [String: String], nextEnd: Int64?) {
    let rows = try transaction.run(
      """
      SELECT vehicle, account, begins, ends AS until FROM booking
      WHERE state IN ('booked', 'active') AND has_access = 1 AND begins <= ? AND ends > ?
      UNION
      SELECT vehicle, account, begins, access.expires AS until FROM booking JOIN access ON access.booking = booking.id
      WHERE access.standing = 'given' AND access.expires > ? AND begins <= ?
      ORDER BY begins DESC
      """, [.integer(now), .integer(now), .integer(now), .integer(now)])
    return (
      Dictionary(rows.map { ($0.text("vehicle"), $0.text("account")) }) { first, _ in first },
      rows.map { $0.integer("until") }.min()
    )
  }

  /// Writes the end of each booking whose time has ended, and notes it.
  static func end(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) {
    let over = try transaction.run(
      "SELECT id, vehicle, begins, ends, state, has_access FROM booking WHERE state IN ('booked', 'active') AND ends <= ?",
      [.integer(now)])
    for row in over {
      let booking = Booking(row)
      // It may have changed since it was read.
      let written = try transaction.run(
        """
        UPDATE booking SET state = ? WHERE id = ? AND state IN ('booked', 'active') AND ends = ? AND has_access = ?
        RETURNING account, vehicle
        """,
        [
          .text(booking.state(at: now).rawValue), .text(row.text("id")), .integer(booking.interval.end),
          .integer(booking.hasAccess ? 1 : 0),
        ])
      guard try announce(written, in: transaction) else { continue }
      try VehicleTable.note(
        FleetEvent(timeEndedOf: booking), of: row.text("vehicle"), row.text("id"), at: booking.interval.end,
        in: transaction)
    }
  }
}

extension Booking {
  init(_ row: Row) {
    self.init(
      Interval(row.integer("begins"), row.integer("ends")), written: BookingState(rawValue: row.text("state"))!,
      hasAccess: row.integer("has_access") != 0)
  }
}

extension Parking {
  fileprivate init?(_ row: Row) {
    guard let zone = row.optionalText("zone"), let metres = row.optionalInteger("zone_metres"),
      let placed = row.optionalInteger("zone_placed")
    else { return nil }
    self.init(zone: zone, metres: metres, placed: placed)
  }
}

extension FleetBooking {
  init(_ row: Row) {
    self.init(
      id: row.text("booking"), vehicle: FleetVehicle(row), account: row.text("account"), subject: row.text("subject"),
      steps: row.text("wanted").split(separator: " ").compactMap { StepID(String($0)) },
      version: row.integer("version"), booking: Booking(row), parking: Parking(row))
  }
}

/// What was answered to requests that may be sent twice.
enum AnswerTable {
  /// How long an answer is kept, seconds.
  static let lifetime: Int64 = 86_400

  struct Answer: Sendable, Equatable {
    /// The digest of the request's content.
    let digest: String
    let text: String
  }

  static func find(
    _ key: String, of account: String, in transaction: borrowing Transaction
  ) throws(StoreError) -> Answer? {
    try transaction.run(
      "SELECT digest, answer FROM idempotency WHERE account = ? AND key = ?", [.text(account), .text(key)]
    ).first.map { Answer(digest: $0.text("digest"), text: $0.text("answer")) }
  }

  static func insert(
    _ answer: Answer, _ key: String, of account: String, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    try transaction.run(
      "INSERT INTO idempotency (account, key, digest, answer, created) VALUES (?, ?, ?, ?, ?)",
      [.text(account), .text(key), .text(answer.digest), .text(answer.text), .integer(now)])
  }

  static func forgetOld(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) {
    try transaction.run("DELETE FROM idempotency WHERE created <= ?", [.integer(now - lifetime)])
  }
}

/// The rows of accounts, as far as bookings depend on them. Accounts are the module Login's.
enum AccountTable {
  static func email(of account: String, in transaction: borrowing Transaction) throws(StoreError) -> String? {
    try transaction.run("SELECT email FROM account WHERE id = ?", [.text(account)]).first?.optionalText("email")
  }

  static func isActive(_ account: String, in transaction: borrowing Transaction) throws(StoreError) -> Bool {
    try !transaction.run("SELECT id FROM account WHERE id = ? AND state = 'active'", [.text(account)]).isEmpty
  }
}
