import Domain
import Encoding
import Geography
import Operator
import StepProtocol
import Store

/// The rows of what vehicles have reported: each event once, as its vehicle has signed it, in the order in which it was
/// heard. With the event comes what is wrong with its place in the vehicle's chain.
///
/// An event is acknowledged by the vehicle's next notice, and the vehicle then forgets it. So it is a row before.
enum EventTable {
  /// What became of an event that was heard.
  enum Outcome: Equatable {
    case known
    case kept([EventChain.Finding])
    /// The event before it is not there yet.
    case waits
  }

  /// How many events of a vehicle are kept before a notice acknowledges them. The notice is an event itself, so fewer
  /// would have no end.
  private static let acknowledging = Int64(VehicleEvent.window / 2)

  /// Keeps an event, if it is new. Wants a notice that acknowledges it, if it is time.
  ///
  /// - Parameter isLast: whether it is kept although an event before it is missing.
  static func take(
    _ signed: SignedEvent, isLast: Bool = false, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> Outcome {
    let event = signed.event
    let vehicle = event.vehicle.description
    guard try sequence(of: signed.digest, in: vehicle, in: transaction) == nil else { return .known }
    let end = try end(of: vehicle, in: transaction)
    if end == signed.place { return .known }
    let before =
      event.previous == end?.digest ? end?.sequence : try sequence(of: event.previous, in: vehicle, in: transaction)
    let findings =
      EventChain.findings(event, follows: before, after: end)
      ?? (isLast ? EventChain.gap(before: event, after: end) : nil)
    guard let findings else { return .waits }
    let count = try setEnd(signed.place, of: vehicle, in: transaction)
    try insert(signed, at: count, findings, heard: now, in: transaction)
    try note(event, at: now, in: transaction)
    if count % acknowledging == 0 { try NoticeTable.wantAgain(vehicle, at: now, in: transaction) }
    return .kept(findings)
  }

  /// Notes the newest place that a vehicle's events tell, of those that are not kept yet. It comes before they are
  /// taken: whoever suspends a vehicle locks its row, and then its notice's.
  static func place(
    _ events: [SignedEvent], at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    var newest: (place: ReportedPlace, since: Int64)?
    for signed in events {
      let (event, content) = (signed.event, signed.event.content)
      guard let place = content.place, content.time - place.age >= newest?.since ?? .min,
        try sequence(of: signed.digest, in: event.vehicle.description, in: transaction) == nil
      else { continue }
      newest = (place, content.time - place.age)
    }
    guard let newest, let vehicle = events.first?.event.vehicle else { return }
    // A vehicle whose clock is ahead must not keep later places out.
    try VehicleTable.place(vehicle.description, at: newest.place, since: min(newest.since, now), in: transaction)
  }

  /// Since when a place tells where a step of the vehicle came to rest last, Unix time; nil if none did.
  static func rested(_ vehicle: String, in transaction: borrowing Transaction) throws(StoreError) -> Int64? {
    try transaction.run("SELECT rested FROM event_end WHERE vehicle = ?", [.text(vehicle)]).first?.optionalInteger(
      "rested")
  }

  /// The last event of a vehicle that is kept, or that the operator had before the server kept any.
  static func end(of vehicle: String, in transaction: borrowing Transaction) throws(StoreError) -> EventPlace? {
    try transaction.run("SELECT sequence, digest FROM event_end WHERE vehicle = ?", [.text(vehicle)]).first.flatMap {
      row in EventDigest(text: row.text("digest")).map { EventPlace(row.integer("sequence"), $0) }
    }
  }

  /// Lets a vehicle's events follow one that the operator had before, unless there are some.
  static func begin(
    _ vehicle: String, after place: EventPlace, in transaction: borrowing Transaction
  ) throws(StoreError) {
    try transaction.run(
      "INSERT INTO event_end (vehicle, count, sequence, digest) VALUES (?, 0, ?, ?) ON CONFLICT (vehicle) DO NOTHING",
      [.text(vehicle), .integer(place.sequence), .text(place.digest.text)])
  }

  /// - Returns: how many events were kept, with this one.
  private static func setEnd(
    _ place: EventPlace, of vehicle: String, in transaction: borrowing Transaction
  ) throws(StoreError) -> Int64 {
    try transaction.run(
      """
      INSERT INTO event_end (vehicle, count, sequence, digest) VALUES (?, 1, ?, ?)
      ON CONFLICT (vehicle) DO UPDATE SET count = event_end.count + 1, sequence = excluded.sequence,
        digest = excluded.digest
      RETURNING count
      """, [.text(vehicle), .integer(place.sequence), .text(place.digest.text)])[0].integer("count")
  }

  /// Removes what was heard before that time: the oldest, and others when it is called again. The order of later events
  /// is still known. The first of a chain stays: sent again, it would begin another one.
  static func forget(before time: Int64, in transaction: borrowing Transaction) throws(StoreError) {
    try transaction.run(
      """
      DELETE FROM event WHERE (vehicle, place) IN (
        SELECT vehicle, place FROM event WHERE heard < ? AND sequence > 1 ORDER BY heard LIMIT 10000)
      """, [.integer(time)])
  }

  /// Of how many steps of a vehicle the present is noted.
  private static let mostSteps = 16

  /// Notes what an event says about the vehicle's present.
  private static func note(
    _ event: VehicleEvent, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    let (vehicle, content) = (Value.text(event.vehicle.description), event.content)
    try transaction.run("UPDATE event_end SET heard = ? WHERE vehicle = ?", [.integer(now), vehicle])
    if content.kind == .refused {
      try transaction.run(
        "UPDATE event_end SET refusal = ?, refused = ? WHERE vehicle = ?",
        [Value(content.code), .integer(content.time), vehicle])
    }
    if content.kind == .ended {
      // With a place, the time of the place: it is as old, and still that of the rest.
      let rested = min(content.time - (content.place?.age ?? 0), now)
      try transaction.run("UPDATE event_end SET rested = ? WHERE vehicle = ?", [.integer(rested), vehicle])
    }
    if let number = content.notice {
      try transaction.run(
        "UPDATE event_end SET notice = ? WHERE vehicle = ? AND COALESCE(notice, -1) < ?",
        [.integer(number), vehicle, .integer(number)])
    }
    if content.kind == .started {
      // A motion that had no end was cut off.
      try transaction.run(
        "UPDATE step_state SET position = 'unknown' WHERE vehicle = ? AND position = 'moving'", [vehicle])
    }
    let position: String? =
      switch content.kind {
      case .began: "moving"
      case .ended: content.position?.rawValue ?? "unknown"
      default: nil
      }
    guard let step = content.step, let position else { return }
    // A vehicle can name any number of steps: what it says of a few is enough.
    try transaction.run(
      """
      INSERT INTO step_state (vehicle, step, position, fault, since)
      SELECT ?, ?, ?, ?, CAST(? AS BIGINT)
      WHERE (SELECT count(*) FROM step_state WHERE vehicle = ? AND step <> ?) < \(mostSteps)
      ON CONFLICT (vehicle, step) DO UPDATE SET position = excluded.position, fault = excluded.fault,
        since = excluded.since
      """,
      [
        vehicle, .text(step.description), .text(position), Value(content.code), .integer(content.time), vehicle,
        .text(step.description),
      ])
  }

  /// What vehicles have told of their present, by their ids.
  static func present(in transaction: borrowing Transaction) throws(StoreError) -> [String: Present] {
    var present: [String: Present] = [:]
    for row in try transaction.run("SELECT vehicle, heard, notice, refusal, refused FROM event_end") {
      present[row.text("vehicle")] = Present(
        heard: row.optionalInteger("heard"), notice: row.optionalInteger("notice"),
        refusal: row.optionalText("refusal"), refused: row.optionalInteger("refused"))
    }
    let last = try transaction.run(
      """
      SELECT event.vehicle AS vehicle, kind, step, position, time FROM event
      JOIN event_end ON event_end.vehicle = event.vehicle AND event_end.count = event.place
      """)
    for row in last {
      present[row.text("vehicle")]?.last = (
        row.text("kind"), row.optionalText("step"), row.optionalText("position"), row.integer("time")
      )
    }
    for row in try transaction.run("SELECT vehicle, step, position, fault FROM step_state") {
      present[row.text("vehicle"), default: Present()].steps[row.text("step")] = (
        row.text("position"), row.optionalText("fault")
      )
    }
    return present
  }

  struct Present: Sendable {
    /// When the last event was heard, Unix time; nil if none was.
    var heard: Int64?
    /// The number of the notice that the vehicle has said that it obeys.
    var notice: Int64?
    /// The word of the last refusal, and its time on the vehicle's clock.
    var refusal: String?
    var refused: Int64?
    /// The last event, as the vehicle has told it, with its time on the vehicle's clock; nil if it was removed.
    var last: (kind: String, step: String?, position: String?, time: Int64)?
    /// Where the steps are, and why they are not where they should be.
    var steps: [String: (position: String, fault: String?)] = [:]
  }

  /// The events that were kept after that one, in their order. If it is no row (any more), those after the last one
  /// with no greater number.
  static func kept(
    after place: EventPlace?, of vehicle: String, upTo count: Int, in transaction: borrowing Transaction
  ) throws(StoreError) -> [SignedEvent] {
    let name = Value.text(vehicle)
    return try transaction.run(
      """
      SELECT text FROM event
      WHERE vehicle = ? AND place > COALESCE(
        (SELECT place FROM event WHERE vehicle = ? AND digest = ?),
        (SELECT max(place) FROM event WHERE vehicle = ? AND sequence <= ?), 0)
      ORDER BY place LIMIT ?
      """,
      [
        name, name, .text(place?.digest.text ?? ""), name, .integer(place?.sequence ?? -1), .integer(Int64(count)),
      ]
    ).compactMap { try? SignedEvent(kept: Array($0.text("text").utf8)) }
  }

  /// Whether an event was kept, and is still there.
  static func has(
    _ place: EventPlace, of vehicle: String, in transaction: borrowing Transaction
  ) throws(StoreError) -> Bool { try sequence(of: place.digest, in: vehicle, in: transaction) != nil }

  /// Which events are meant. Nil is any.
  struct Query: Sendable {
    var vehicle, booking, account: String?
    /// Heard at this time or later, Unix time.
    var since: Int64?
    /// The newest so many.
    var limit: Int64 = 100
  }

  /// An event, and whose it was.
  struct Report {
    let row: Row
    var json: JSON {
      func text(_ name: String) -> JSON { row.optionalText(name).map(JSON.string) ?? .null }
      func number(_ name: String) -> JSON { row.optionalInteger(name).map(JSON.integer) ?? .null }
      return [
        "time": .string(Timestamp.text(row.integer("time"))), "heard": .string(Timestamp.text(row.integer("heard"))),
        "vehicle": text("vehicle_name"), "id": text("vehicle"), "seq": number("sequence"), "kind": text("kind"),
        "step": text("step"), "position": text("position"), "code": text("code"), "cause": text("cause"),
        "method": text("method"), "zone": text("zone"), "untold": number("untold"), "token": text("jti"),
        "booking": text("booking"), "email": text("email"), "finding": text("finding"), "place": place ?? .null,
      ]
    }

    /// What the rider is told. A member that has no value is missing.
    var forRider: JSON {
      .object(
        [.init("time", .string(Timestamp.text(row.integer("time")))), .init("kind", .string(row.text("kind")))]
          + ["step", "position", "code", "cause", "method", "zone"].compactMap { name in
            row.optionalText(name).map { .init(name, .string($0)) }
          } + (place.map { [.init("place", $0)] } ?? []))
    }

    /// For the export of an account's data: what the rider is told, and of which booking.
    var forExport: JSON {
      .object([.init("booking", .string(row.text("booking")))] + (forRider.object ?? []))
    }

    /// Where the vehicle stood, and the possible error.
    private var place: JSON? {
      guard let position = Coordinate(row), let error = row.optionalInteger("place_error") else { return nil }
      return [
        "latitude": .number(position.latitude), "longitude": .number(position.longitude),
        "error_m": .number(Double(error) / 10),
      ]
    }
  }

  /// The events that are meant, the newest last. That a notice is in force is none of them.
  static func history(_ query: Query, in transaction: borrowing Transaction) throws(StoreError) -> [Report] {
    var (conditions, values) = (["event.kind <> 'notice'"], [Value]())
    func add(_ condition: String, _ value: Value?) {
      guard let value else { return }
      conditions.append(condition)
      values += Array(repeating: value, count: condition.count { $0 == "?" })
    }
    add("event.vehicle = ?", query.vehicle.map(Value.text))
    // By their tokens, of which there are few, as are the events of one.
    add(
      "event.jti IN (SELECT jti FROM access WHERE booking = ?) AND booking.id = ?", query.booking.map(Value.text))
    add(
      """
      event.jti IN (
        SELECT access.jti FROM account JOIN booking ON booking.account = account.id
          JOIN access ON access.booking = booking.id
        WHERE account.id = ? OR account.email = ?)
      AND ? IN (account.id, account.email)
      """, query.account.map(Value.text))
    add("event.heard >= ?", query.since.map(Value.integer))
    return try transaction.run(
      """
      SELECT event.*, vehicle.name AS vehicle_name, booking.id AS booking, account.email AS email
      FROM event LEFT JOIN vehicle ON vehicle.id = event.vehicle LEFT JOIN access ON access.jti = event.jti
        LEFT JOIN booking ON booking.id = access.booking AND booking.vehicle = event.vehicle
        LEFT JOIN account ON account.id = booking.account
      WHERE \(conditions.joined(separator: " AND "))
      ORDER BY \(query.vehicle == nil ? "event.heard DESC, event.vehicle DESC, " : "")event.place DESC LIMIT ?
      """, values + [.integer(query.limit)]
    ).reversed().map(Report.init)
  }

  private static func sequence(
    of digest: EventDigest, in vehicle: String, in transaction: borrowing Transaction
  ) throws(StoreError) -> Int64? {
    try transaction.run(
      "SELECT sequence FROM event WHERE vehicle = ? AND digest = ?", [.text(vehicle), .text(digest.text)]
    ).first?.integer("sequence")
  }

  private static func insert(
    _ signed: SignedEvent, at place: Int64, _ findings: [EventChain.Finding], heard: Int64,
    in transaction: borrowing Transaction
  ) throws(StoreError) {
    let (event, content) = (signed.event, signed.event.content)
    // No token of a fleet has an id with other characters. A terminal may obey some, and PostgreSQL has no zero bytes.
    let token = content.token.flatMap { $0.utf8.allSatisfy { (0x20...0x7E).contains($0) } ? $0 : nil }
    try transaction.run(
      """
      INSERT INTO event (vehicle, place, digest, sequence, heard, time, kind, step, position, jti, code, cause, method,
        zone, untold, finding, latitude, longitude, place_error, text)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        .text(event.vehicle.description), .integer(place), .text(signed.digest.text), .integer(event.sequence),
        .integer(heard), .integer(content.time), .text(content.kind.rawValue), Value(content.step?.description),
        Value(content.position?.rawValue), Value(token), Value(content.code), Value(content.cause),
        Value(content.method), Value(content.zone), Value(content.untold),
        Value(findings.isEmpty ? nil : findings.map(\.text).joined(separator: "; ")),
        Value(content.place?.units.latitude), Value(content.place?.units.longitude), Value(content.place?.error),
        .text(String(decoding: signed.text, as: UTF8.self)),
      ])
  }
}
