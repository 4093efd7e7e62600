import Booking
import Domain
import Encoding
import Geography
import Operator
import StepProtocol
import Store

/// The rows of vehicles, and of what happened to them.
enum VehicleTable {
  static let columns = """
    vehicle.id, vehicle.name, vehicle.folder, vehicle.steps, vehicle.service, vehicle.latitude, vehicle.longitude,
    vehicle.placed_at
    """

  /// The vehicles by name, without the removed ones.
  static func all(in transaction: borrowing Transaction) throws(StoreError) -> [FleetVehicle] {
    try transaction.run("SELECT \(columns) FROM vehicle WHERE service <> 'removed' ORDER BY name").map(
      FleetVehicle.init)
  }

  static func find(id: String, in transaction: borrowing Transaction) throws(StoreError) -> FleetVehicle? {
    try transaction.run("SELECT \(columns) FROM vehicle WHERE id = ?", [.text(id)]).first.map(FleetVehicle.init)
  }

  /// The vehicle of that name or id, or how its id begins: eight digits or more; or else the only one whose name is
  /// meant. A removed one is not found.
  ///
  /// - Throws: `FleetRefusal`.
  static func find(named name: String, in transaction: borrowing Transaction) throws -> FleetVehicle {
    let exact = try transaction.run(
      "SELECT \(columns) FROM vehicle WHERE (name = ? OR id = ?) AND service <> 'removed'",
      [.text(name), .text(name.lowercased())])
    if let row = exact.first { return FleetVehicle(row) }
    let vehicles = try all(in: transaction)
    let begin = name.lowercased()
    let isID = begin.utf8.count >= 8 && begin.allSatisfy { $0 == "-" || $0.isASCII && $0.isHexDigit }
    let meant = vehicles.filter { Vehicle.isMeant($0.name, by: name) || isID && $0.id.hasPrefix(begin) }
    if meant.count == 1 { return meant[0] }
    guard meant.isEmpty else { throw FleetRefusal.severalVehicles(name) }
    let names = vehicles.map(\.name)
    let beginning = names.filter { $0.lowercased().hasPrefix(begin) }
    let near =
      beginning.count == 1
      ? beginning[0].lowercased() : Spelling.nearest(to: name, among: names.map { $0.lowercased() })
    throw FleetRefusal.notNamed("vehicle", name, near: names.first { $0.lowercased() == near })
  }

  /// When the certificates of the vehicles' controllers end, Unix time, by the vehicles' ids.
  static func certificateEnds(in transaction: borrowing Transaction) throws(StoreError) -> [String: Int64] {
    let rows = try transaction.run(
      "SELECT id, certificate FROM vehicle WHERE service <> 'removed' AND certificate IS NOT NULL")
    return Dictionary(
      uniqueKeysWithValues: rows.compactMap { row in
        (try? VehicleRecord.end(ofCertificate: Array(row.text("certificate").utf8))).map { (row.text("id"), $0) }
      })
  }

  /// The names of all vehicles by their ids, also of removed ones.
  static func names(in transaction: borrowing Transaction) throws(StoreError) -> [String: String] {
    let rows = try transaction.run("SELECT id, name FROM vehicle")
    return Dictionary(uniqueKeysWithValues: rows.map { ($0.text("id"), $0.text("name")) })
  }

  /// Whether a vehicle has that name. A removed one has another.
  static func isTaken(_ name: String, in transaction: borrowing Transaction) throws(StoreError) -> Bool {
    // Databases know capitals of different alphabets.
    try transaction.run("SELECT name FROM vehicle").contains { $0.text("name").lowercased() == name.lowercased() }
  }

  /// Whether another vehicle has that topic. A removed one has it until the operator forgets it.
  static func isTaken(
    _ topic: TopicPrefix, byOtherThan id: UUID, in transaction: borrowing Transaction
  ) throws(StoreError) -> Bool {
    try !transaction.run(
      """
      SELECT id FROM vehicle WHERE topic = ? AND id <> ?
        AND (service <> 'removed' OR EXISTS (SELECT 1 FROM notice WHERE notice.vehicle = vehicle.id))
      """, [.text(topic.description), .text(id.description)]
    ).isEmpty
  }

  /// - Throws: `StoreError.constraint` if there is, or was, a vehicle of that name or id.
  static func insert(
    _ record: VehicleRecord, folder: String, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    let vehicle = record.vehicle
    try transaction.run(
      "INSERT INTO vehicle (id, name, folder, steps, service, created) VALUES (?, ?, ?, ?, 'in_service', ?)",
      [
        .text(vehicle.uuid.description), .text(vehicle.name), .text(folder), .text(vehicle.steps.json.text),
        .integer(now),
      ])
    try complete(record, in: transaction)
  }

  /// Notes the public part of a vehicle.
  static func complete(_ record: VehicleRecord, in transaction: borrowing Transaction) throws(StoreError) {
    try transaction.run(
      "UPDATE vehicle SET steps = ?, topic = ?, public_part = ?, certificate = ? WHERE id = ?",
      [
        .text(record.vehicle.steps.json.text), .text(record.topic.description), .text(record.text),
        .text(String(decoding: record.certificate, as: UTF8.self)), .text(record.vehicle.uuid.description),
      ])
  }

  /// The vehicles whose public part is unknown: their ids, and the names of their folders.
  static func lacking(in transaction: borrowing Transaction) throws(StoreError) -> [(id: String, folder: String)] {
    try transaction.run("SELECT id, folder FROM vehicle WHERE topic IS NULL ORDER BY id").map {
      ($0.text("id"), $0.text("folder"))
    }
  }

  /// The public part of a vehicle; nil if it is unknown.
  static func record(of id: String, in transaction: borrowing Transaction) throws -> VehicleRecord? {
    try transaction.run("SELECT public_part, certificate FROM vehicle WHERE id = ?", [.text(id)]).first.flatMap(record)
  }

  static func records(
    inFolders names: some Sequence<String>, in transaction: borrowing Transaction
  ) throws -> [String: VehicleRecord] {
    var records: [String: VehicleRecord] = [:]
    for name in names {
      records[name] = try transaction.run(
        "SELECT public_part, certificate FROM vehicle WHERE folder = ? AND service <> 'removed' ORDER BY created, id",
        [.text(name)]
      ).last.flatMap(record)
    }
    return records
  }

  private static func record(_ row: Row) throws -> VehicleRecord? {
    guard let text = row.optionalText("public_part"), let certificate = row.optionalText("certificate") else {
      return nil
    }
    return try VehicleRecord(parsing: text, certificate: Array(certificate.utf8))
  }

  /// The folder of a vehicle that is not removed; nil if there is none.
  static func folder(of id: String, in transaction: borrowing Transaction) throws(StoreError) -> String? {
    try transaction.run("SELECT folder FROM vehicle WHERE id = ? AND service <> 'removed'", [.text(id)]).first?.text(
      "folder")
  }

  /// What the broker has to know, by the names of the vehicles' folders. Removed vehicles are left out, and those whose
  /// public part is unknown.
  static func topics(
    _ listed: ListedVehicles, in transaction: borrowing Transaction
  ) throws(StoreError) -> [String: VehicleTopics] {
    let condition =
      switch listed {
      case .none: "1 = 0"
      // As `VehicleTopics.areUsual`. The steps are JSON as `Step` writes it.
      case .unusual:
        """
        (topic <> 'vehicles/' || id
          OR replace(replace(steps, '"id":"left"', ''), '"id":"right"', '') LIKE '%"id":%')
        """
      case .all: "1 = 1"
      }
    var topics: [String: VehicleTopics] = [:]
    for row in try transaction.run(
      """
      SELECT id, folder, steps, topic FROM vehicle
      WHERE service <> 'removed' AND topic IS NOT NULL AND \(condition) ORDER BY created, id
      """
    ) { topics[row.text("folder")] = row.topics }
    return topics
  }

  /// The vehicle that reports on that topic, if it is in the fleet, or was.
  static func record(
    withEvents topic: String, in transaction: borrowing Transaction
  ) throws -> VehicleRecord? {
    guard let vehicle = try topics(ofTopic: topic, in: transaction).first(where: { $0.topic.events == topic }) else {
      return nil
    }
    return try record(of: vehicle.vehicle.description, in: transaction)
  }

  /// What the broker has to know of one vehicle; nil if the broker must not admit its clients. A removed vehicle's are
  /// admitted until the operator forgets the vehicle.
  static func topics(of id: UUID, in transaction: borrowing Transaction) throws(StoreError) -> VehicleTopics? {
    try admitted("id = ?", [.text(id.description)], in: transaction).first
  }

  /// The vehicles that may have a topic of the broker: those whose topics begin as that one does.
  static func topics(
    ofTopic topic: String, in transaction: borrowing Transaction
  ) throws(StoreError) -> [VehicleTopics] {
    // A topic has one level or two after the vehicle's.
    let levels = topic.split(separator: "/", omittingEmptySubsequences: false)
    let begins = [1, 2].map { Value.text(levels.dropLast($0).joined(separator: "/")) }
    return try admitted("topic IN (?, ?)", begins, in: transaction)
  }

  private static func admitted(
    _ condition: String, _ values: [Value], in transaction: borrowing Transaction
  ) throws(StoreError) -> [VehicleTopics] {
    try transaction.run(
      """
      SELECT id, steps, topic FROM vehicle WHERE \(condition) AND topic IS NOT NULL
        AND (service <> 'removed' OR EXISTS (SELECT 1 FROM notice WHERE notice.vehicle = vehicle.id))
      """, values
    ).compactMap(\.topics)
  }

  /// The names of the folders of those vehicles.
  static func folders(in transaction: borrowing Transaction) throws(StoreError) -> Set<String> {
    Set(
      try transaction.run("SELECT folder FROM vehicle WHERE service <> 'removed' AND topic IS NOT NULL").map {
        $0.text("folder")
      })
  }

  /// - Returns: false if the vehicle was removed meanwhile: what is removed does not come back.
  static func update(
    _ id: String, by change: ServiceChange, in transaction: borrowing Transaction
  ) throws(StoreError) -> Bool {
    let found = try transaction.run(
      "UPDATE vehicle SET service = ? WHERE id = ? AND service <> 'removed' RETURNING id",
      [.text(change.service.rawValue), .text(id)])
    if let name = change.name, !found.isEmpty {
      try transaction.run("UPDATE vehicle SET name = ? WHERE id = ?", [.text(name), .text(id)])
    }
    return !found.isEmpty
  }

  /// The database has only integers: this many are a degree, and one is a centimetre.
  fileprivate static let perDegree = 1e7

  /// Notes what the operator says.
  ///
  /// - Parameter position: nil if it is no longer known, whatever the vehicle has told before.
  static func place(
    _ id: String, at position: Coordinate?, since now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    func units(_ degrees: Double) -> Int64 { Int64((degrees * perDegree).rounded()) }
    try transaction.run(
      "UPDATE vehicle SET latitude = ?, longitude = ?, placed_at = ? WHERE id = ?",
      [
        Value(position.map { units($0.latitude) }), Value(position.map { units($0.longitude) }), .integer(now),
        .text(id),
      ])
  }

  /// Notes the place that a vehicle has told, unless a newer one is known.
  ///
  /// - Parameter time: since when it is there: Unix time.
  static func place(
    _ id: String, at place: ReportedPlace, since time: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    let (latitude, longitude) = place.units
    let placed = try transaction.run(
      """
      UPDATE vehicle SET latitude = ?, longitude = ?, placed_at = ?
      WHERE id = ? AND COALESCE(placed_at, -1) <= ? RETURNING id
      """, [.integer(latitude), .integer(longitude), .integer(time), .text(id), .integer(time)])
    if !placed.isEmpty { try FleetChange.place.announce(in: transaction) }
  }

  /// A vehicle that is removed, and that the operator may still know.
  struct Removed: Sendable, Equatable {
    let id: String
    let folder: String
    /// Whether there was a notice for it; and whether it has to read one: a token for it has not ended.
    let hasNotice, waits: Bool
  }

  static func removed(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) -> [Removed] {
    try transaction.run(
      """
      SELECT id, folder, (SELECT max(expires) FROM access JOIN booking ON booking.id = access.booking
        WHERE booking.vehicle = vehicle.id) AS last,
        notice.vehicle AS notice, notice.since AS since
      FROM vehicle LEFT JOIN notice ON notice.vehicle = vehicle.id WHERE service = 'removed'
      """
    ).map {
      Removed(
        id: $0.text("id"), folder: $0.text("folder"), hasNotice: $0.optionalText("notice") != nil,
        waits: $0.optionalInteger("since") != nil && $0.optionalInteger("last") ?? 0 > now)
    }
  }

  /// When a vehicle was last taken out of service, Unix time; nil if it never was.
  static func suspended(_ id: String, in transaction: borrowing Transaction) throws(StoreError) -> Int64? {
    try transaction.run(
      "SELECT max(time) AS last FROM vehicle_event WHERE vehicle = ? AND event = ?",
      [.text(id), .text(FleetEvent.maintenance.rawValue)])[0].optionalInteger("last")
  }

  /// Notes what happened to a vehicle.
  static func note(
    _ event: FleetEvent, of vehicle: String, _ booking: String? = nil, at time: Int64,
    in transaction: borrowing Transaction
  ) throws(StoreError) {
    try transaction.run(
      "INSERT INTO vehicle_event (id, vehicle, booking, event, time) VALUES (?, ?, ?, ?, ?)",
      [.text(UUID.random().description), .text(vehicle), Value(booking), .text(event.rawValue), .integer(time)])
  }
}

extension Row {
  fileprivate var topics: VehicleTopics? {
    guard let id = UUID(text("id")), let topic = TopicPrefix(text("topic")), let steps else { return nil }
    return VehicleTopics(of: id, topic: topic, steps: steps)
  }

  fileprivate var steps: [Step]? { (try? JSON(parsing: text("steps").utf8)).flatMap([Step].init(json:)) }
}

extension Coordinate {
  /// - Returns: nil if the row has no place.
  init?(_ row: Row) {
    guard let latitude = row.optionalInteger("latitude"), let longitude = row.optionalInteger("longitude") else {
      return nil
    }
    self.init(
      latitude: Double(latitude) / VehicleTable.perDegree, longitude: Double(longitude) / VehicleTable.perDegree)
  }
}

extension ReportedPlace {
  /// As the rows have it: units of 10^-7 degrees.
  var units: (latitude: Int64, longitude: Int64) { (north - 900_000_000, east - 1_800_000_000) }
}

extension FleetVehicle {
  init(_ row: Row) {
    let place: Place? =
      if let position = Coordinate(row), let since = row.optionalInteger("placed_at") {
        Place(position: position, since: since)
      } else { nil }
    self.init(
      id: row.text("id"), name: row.text("name"), folder: row.text("folder"),
      steps: row.steps ?? [],
      service: Service(rawValue: row.text("service"))!, place: place)
  }
}

/// The rows of vehicles that are expected to join.
enum InvitationTable {
  /// Those that have not ended, by name.
  static func all(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) -> [Invitation] {
    try transaction.run("SELECT name, expires FROM invitation WHERE expires > ? ORDER BY name", [.integer(now)]).map(
      Invitation.init)
  }

  /// - Returns: whether there was one of that name.
  static func remove(named name: String, in transaction: borrowing Transaction) throws(StoreError) -> Bool {
    try !transaction.run("DELETE FROM invitation WHERE name = ? RETURNING name", [.text(name)]).isEmpty
  }

  /// - Parameter code: its digest.
  static func find(
    code: String, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> Invitation? {
    try transaction.run(
      "SELECT name, expires FROM invitation WHERE code = ? AND expires > ?", [.text(code), .integer(now)]
    ).first.map(Invitation.init)
  }

  /// Replaces an invitation of the same name, and removes those that have ended.
  static func replace(
    _ invitation: Invitation, code: String, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    try transaction.run(
      "DELETE FROM invitation WHERE expires <= ? OR name = ?", [.integer(now), .text(invitation.name)])
    try insert(invitation, code: code, in: transaction)
  }

  static func insert(
    _ invitation: Invitation, code: String, in transaction: borrowing Transaction
  ) throws(StoreError) {
    try transaction.run(
      "INSERT INTO invitation (code, name, expires) VALUES (?, ?, ?)",
      [.text(code), .text(invitation.name), .integer(invitation.expires)])
  }

  /// Uses up a code. Of two vehicles that bring it at once, one gets true.
  static func spend(
    _ code: String, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> Bool {
    try !transaction.run(
      "DELETE FROM invitation WHERE code = ? AND expires > ? RETURNING name", [.text(code), .integer(now)]
    ).isEmpty
  }
}

extension Invitation {
  fileprivate init(_ row: Row) { self.init(name: row.text("name"), expires: row.integer("expires")) }
}
