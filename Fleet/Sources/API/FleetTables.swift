package import Booking
package import Domain
package import Encoding
package import Geography
package import Store
import Web

/// The tables of vehicles, bookings and access.
package enum FleetTables {
  package static let migrations = [
    Migration("fleet-1", sqlite: tables + sqliteOverlap, postgres: tables + postgresOverlap),
    // Keys of devices that never get access again, even when the ledger has dropped their tokens.
    Migration(
      "fleet-2", ["CREATE TABLE revoked_device (device TEXT NOT NULL PRIMARY KEY, since BIGINT NOT NULL)"]),
    Migration(
      "vehicle-place-1",
      ["latitude", "longitude", "placed_at"].map { "ALTER TABLE vehicle ADD COLUMN \($0) BIGINT" }),
    // A token is marked in the transaction that is the reason for its withdrawal. The mark stays until the operator's
    // ledger has the withdrawal.
    Migration(
      "fleet-3",
      [
        // asked: the token is still being made, and its place is reserved. Until then jti is a text that no token has.
        """
        ALTER TABLE access ADD COLUMN standing TEXT NOT NULL DEFAULT 'given'
        CHECK (standing IN ('asked', 'given', 'withdrawing', 'withdrawn'))
        """,
        "CREATE INDEX access_expires ON access (expires)",
        // 1 when the operator's ledger has the revocation.
        "ALTER TABLE revoked_device ADD COLUMN noted BIGINT NOT NULL DEFAULT 0",
      ]),
  ]

  // A unique constraint is named as SQLite names it in its error.
  private static let tables = [
    """
    CREATE TABLE vehicle (
      id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, folder TEXT NOT NULL, steps TEXT NOT NULL,
      service TEXT NOT NULL CHECK (service IN ('in_service', 'suspended', 'removed')), created BIGINT NOT NULL,
      CONSTRAINT "vehicle.name" UNIQUE (name))
    """,
    """
    CREATE TABLE invitation (
      code TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, expires BIGINT NOT NULL,
      CONSTRAINT "invitation.name" UNIQUE (name))
    """,
    """
    CREATE TABLE booking (
      id TEXT NOT NULL PRIMARY KEY, vehicle TEXT NOT NULL REFERENCES vehicle (id), account TEXT NOT NULL,
      subject TEXT NOT NULL, begins BIGINT NOT NULL, ends BIGINT NOT NULL, steps TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('booked', 'active', 'ended', 'cancelled', 'expired')),
      has_access BIGINT NOT NULL, version BIGINT NOT NULL, created BIGINT NOT NULL, CHECK (begins < ends))
    """,
    "CREATE INDEX booking_account ON booking (account, begins)",
    "CREATE INDEX booking_vehicle ON booking (vehicle, ends)",
    "CREATE INDEX booking_open ON booking (ends) WHERE state IN ('booked', 'active')",
    // Issued access of a booking, keyed by the token's id (jti).
    """
    CREATE TABLE access (
      jti TEXT NOT NULL PRIMARY KEY, booking TEXT NOT NULL REFERENCES booking (id), device TEXT NOT NULL,
      expires BIGINT NOT NULL)
    """,
    "CREATE INDEX access_booking ON access (booking)",
    """
    CREATE TABLE idempotency (
      account TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, answer TEXT NOT NULL, created BIGINT NOT NULL,
      CONSTRAINT "idempotency.account, idempotency.key" PRIMARY KEY (account, key))
    """,
    "CREATE INDEX idempotency_created ON idempotency (created)",
    """
    CREATE TABLE vehicle_event (
      id TEXT NOT NULL PRIMARY KEY, vehicle TEXT NOT NULL REFERENCES vehicle (id), booking TEXT, event TEXT NOT NULL,
      time BIGINT NOT NULL)
    """,
    "CREATE INDEX vehicle_event_vehicle ON vehicle_event (vehicle, time)",
  ]

  /// Selects the tokens that should be revoked but are not marked yet. Its parameters: the time, and how long a token
  /// lasts beyond its booking.
  static let overdue = """
    SELECT jti FROM access JOIN booking ON booking.id = access.booking JOIN vehicle ON vehicle.id = booking.vehicle
      JOIN account ON account.id = booking.account
    WHERE standing = 'given' AND expires > ? AND (booking.state = 'cancelled' OR vehicle.service <> 'in_service'
      OR account.state <> 'active' OR expires > booking.ends + ?)
    """

  /// For `stepfleet check`.
  ///
  /// - Returns: the jti of each token that should be revoked, but is not.
  package static func notWithdrawn(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) -> [String]
  {
    try transaction.run(
      "\(overdue) UNION SELECT jti FROM access WHERE standing = 'withdrawing' AND expires > ? ORDER BY jti",
      [.integer(now), .integer(BookingRules.grace), .integer(now)]
    ).map { $0.text("jti") }
  }

  /// The constraint that keeps two open bookings of one vehicle from overlapping.
  static let overlap = "booking_overlap"

  private static let sqliteOverlap = ["INSERT", "UPDATE OF begins, ends, state, vehicle"].map { change in
    """
    CREATE TRIGGER \(overlap)_\(change.prefix(6).lowercased()) BEFORE \(change) ON booking
    WHEN NEW.state IN ('booked', 'active') AND EXISTS (
      SELECT 1 FROM booking WHERE vehicle = NEW.vehicle AND id <> NEW.id AND state IN ('booked', 'active')
        AND begins < NEW.ends AND ends > NEW.begins)
    BEGIN SELECT RAISE(ABORT, '\(overlap)'); END
    """
  }

  private static let postgresOverlap = [
    "CREATE EXTENSION IF NOT EXISTS btree_gist",
    """
    ALTER TABLE booking ADD CONSTRAINT \(overlap)
    EXCLUDE USING gist (vehicle WITH =, int8range(begins, ends) WITH &&) WHERE (state IN ('booked', 'active'))
    """,
  ]
}

/// A vehicle's row in the database.
package struct FleetVehicle: Sendable, Equatable {
  package let id: String
  package let name: String
  /// The name of the vehicle's folder at the operator.
  package let folder: String
  package let steps: [Step]
  package let service: Service
  /// The vehicle's place, if the operator has set one.
  package let place: Place?

  package struct Place: Sendable, Equatable {
    package let position: Coordinate
    /// When the operator set it: Unix time.
    package let since: Int64

    /// The database has only integers: this many are a degree, and one is a centimetre.
    static let perDegree = 1e7
  }

  static let columns = """
    vehicle.id, vehicle.name, vehicle.folder, vehicle.steps, vehicle.service, vehicle.latitude, vehicle.longitude,
    vehicle.placed_at
    """

  init(_ row: Row) {
    id = row.text("id")
    name = row.text("name")
    folder = row.text("folder")
    steps = Self.steps((try? JSON(parsing: row.text("steps").utf8)) ?? []) ?? []
    service = Service(rawValue: row.text("service"))!
    place =
      if let latitude = row.optionalInteger("latitude"), let longitude = row.optionalInteger("longitude"),
        let since = row.optionalInteger("placed_at"),
        let position = Coordinate(
          latitude: Double(latitude) / Place.perDegree, longitude: Double(longitude) / Place.perDegree)
      { Place(position: position, since: since) } else { nil }
  }

  /// - Returns: nil if the text is not a list of steps.
  static func steps(_ json: JSON) -> [Step]? {
    guard let items = json.array, !items.isEmpty, items.count <= 16 else { return nil }
    let steps = items.compactMap { item -> Step? in
      guard item.object?.count == 3, let id = item["id"]?.string.flatMap({ StepID($0) }),
        let side = item["side"]?.string.flatMap({ Side(rawValue: $0) }),
        let major = item["major"]?.integer.flatMap({ UInt16(exactly: $0) })
      else { return nil }
      return Step(id: id, side: side, major: major)
    }
    return steps.count == items.count ? steps : nil
  }

  static func json(_ steps: [Step]) -> JSON {
    .array(
      steps.map {
        ["id": .string($0.id.description), "side": .string($0.side.rawValue), "major": .integer(Int64($0.major))]
      })
  }

  func members(_ present: BookingState?) -> [JSON.Member] {
    var members: [JSON.Member] = [
      .init("id", .string(id)), .init("name", .string(name)),
      .init("state", .string(VehicleState(service, present: present).rawValue)), .init("steps", Self.json(steps)),
    ]
    if let place {
      let (latitude, longitude) = (place.position.latitude, place.position.longitude)
      members += [
        .init("place", ["latitude": .number(latitude), "longitude": .number(longitude)]),
        .init("placed_at", .string(Timestamp(seconds: place.since).description)),
      ]
    }
    return members
  }
}

/// A booking's row in the database.
package struct FleetBooking: Sendable, Equatable {
  package let id: String
  package let vehicle: FleetVehicle
  package let account: String
  /// The rider's name for the vehicle: a word that is used only for this booking.
  package let subject: String
  package let steps: [StepID]
  package let version: Int64
  package let booking: Booking

  static let select = """
    SELECT booking.id AS booking, account, subject, begins, ends, booking.steps AS wanted, state, has_access, version,
      \(FleetVehicle.columns)
    FROM booking JOIN vehicle ON vehicle.id = booking.vehicle
    """

  init(_ row: Row) {
    id = row.text("booking")
    vehicle = FleetVehicle(row)
    account = row.text("account")
    subject = row.text("subject")
    steps = row.text("wanted").split(separator: " ").compactMap { StepID(String($0)) }
    version = row.integer("version")
    booking = Booking(
      Interval(row.integer("begins"), row.integer("ends")), written: BookingState(rawValue: row.text("state"))!,
      hasAccess: row.integer("has_access") != 0)
  }

  /// The value for `If-Match`.
  package var etag: String { "\"\(version)\"" }

  package func json(at now: Int64) -> JSON {
    [
      "id": .string(id), "vehicle": .string(vehicle.id), "name": .string(vehicle.name),
      "from": booking.interval.json["from"]!, "to": booking.interval.json["to"]!,
      "state": .string(booking.state(at: now).rawValue), "steps": .array(steps.map { .string($0.description) }),
      "etag": .string(etag),
    ]
  }
}

extension Interval {
  package var json: JSON {
    ["from": .string(Timestamp(seconds: begin).description), "to": .string(Timestamp(seconds: end).description)]
  }
}
