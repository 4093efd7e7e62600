import Booking
import Domain
import Encoding
import Geography
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

  /// The vehicle of that name or id; nil also for a removed one.
  static func find(named name: String, in transaction: borrowing Transaction) throws(StoreError) -> FleetVehicle? {
    try transaction.run(
      "SELECT \(columns) FROM vehicle WHERE (name = ? OR id = ?) AND service <> 'removed'", [.text(name), .text(name)]
    ).first.map(FleetVehicle.init)
  }

  /// Whether a vehicle has that name. A removed one has another.
  static func isTaken(_ name: String, in transaction: borrowing Transaction) throws(StoreError) -> Bool {
    try !transaction.run("SELECT id FROM vehicle WHERE name = ?", [.text(name)]).isEmpty
  }

  /// - Throws: `StoreError.constraint` if there is, or was, a vehicle of that name or id.
  static func insert(
    _ vehicle: Vehicle, folder: String, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    try transaction.run(
      "INSERT INTO vehicle (id, name, folder, steps, service, created) VALUES (?, ?, ?, ?, 'in_service', ?)",
      [
        .text(vehicle.uuid.description), .text(vehicle.name), .text(folder), .text(vehicle.steps.json.text),
        .integer(now),
      ])
  }

  /// Takes an insertion back, with what was noted of the vehicle.
  static func delete(_ id: String, in transaction: borrowing Transaction) throws(StoreError) {
    try transaction.run("DELETE FROM vehicle_event WHERE vehicle = ?", [.text(id)])
    try NoticeTable.forget(id, in: transaction)
    try transaction.run("DELETE FROM vehicle WHERE id = ?", [.text(id)])
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

  /// - Parameter place: nil if it is no longer known.
  static func place(
    _ id: String, at place: FleetVehicle.Place?, in transaction: borrowing Transaction
  ) throws(StoreError) {
    func units(_ degrees: Double) -> Int64 { Int64((degrees * perDegree).rounded()) }
    try transaction.run(
      "UPDATE vehicle SET latitude = ?, longitude = ?, placed_at = ? WHERE id = ?",
      [
        Value(place.map { units($0.position.latitude) }), Value(place.map { units($0.position.longitude) }),
        Value(place.map(\.since)), .text(id),
      ])
  }

  /// A vehicle that is removed, and that the operator may still know.
  struct Removed: Sendable, Equatable {
    let id: String
    let folder: String
    /// Whether a notice for it is wanted; and whether it has to read it: a token for it has not ended.
    let isUntold, waits: Bool
  }

  static func removed(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) -> [Removed] {
    try transaction.run(
      """
      SELECT id, folder, (SELECT max(expires) FROM access JOIN booking ON booking.id = access.booking
        WHERE booking.vehicle = vehicle.id) AS last,
        (SELECT since FROM notice WHERE notice.vehicle = vehicle.id) AS since
      FROM vehicle WHERE service = 'removed'
      """
    ).map {
      let isUntold = $0.optionalInteger("since") != nil
      return Removed(
        id: $0.text("id"), folder: $0.text("folder"), isUntold: isUntold,
        waits: isUntold && $0.optionalInteger("last") ?? 0 > now)
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

extension FleetVehicle {
  init(_ row: Row) {
    let place: Place? =
      if let latitude = row.optionalInteger("latitude"), let longitude = row.optionalInteger("longitude"),
        let since = row.optionalInteger("placed_at"),
        let position = Coordinate(
          latitude: Double(latitude) / VehicleTable.perDegree, longitude: Double(longitude) / VehicleTable.perDegree)
      { Place(position: position, since: since) } else { nil }
    self.init(
      id: row.text("id"), name: row.text("name"), folder: row.text("folder"),
      steps: (try? JSON(parsing: row.text("steps").utf8)).flatMap([Step].init(json:)) ?? [],
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
