package import Store

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
    // What each column means: NoticeTable.
    Migration(
      "notice-1",
      [
        """
        CREATE TABLE notice (
          vehicle TEXT NOT NULL PRIMARY KEY REFERENCES vehicle (id), number BIGINT NOT NULL, wish BIGINT NOT NULL,
          since BIGINT, urgent BIGINT NOT NULL, lease BIGINT NOT NULL)
        """,
        "CREATE INDEX notice_untold ON notice (urgent, since) WHERE since IS NOT NULL",
      ]),
    // What the operator's ledger had: TokenTable. Since then `asked` is no access's standing, and `noted` says nothing.
    Migration(
      "token-1",
      [
        // No vehicle and no booking has to be there: what was given by hand has none.
        """
        CREATE TABLE token (
          jti TEXT NOT NULL PRIMARY KEY, rider TEXT NOT NULL, vehicle TEXT NOT NULL, steps TEXT NOT NULL,
          begins BIGINT NOT NULL, expires BIGINT NOT NULL, device TEXT NOT NULL, key TEXT NOT NULL, certificate TEXT,
          certificate_ends BIGINT, by_hand BIGINT NOT NULL, withdrawn BIGINT)
        """,
        "CREATE INDEX token_vehicle ON token (vehicle, expires)",
        "CREATE INDEX token_device ON token (device, expires)",
        "CREATE INDEX token_expires ON token (expires, withdrawn)",
        "CREATE INDEX token_known ON token (begins, jti) WHERE (by_hand = 1 OR withdrawn IS NOT NULL)",
        // When the device may have access again, Unix time; null for never.
        "ALTER TABLE revoked_device ADD COLUMN ends BIGINT",
        // The present key of the operator whose tokens these are.
        "CREATE TABLE operator_key (thumbprint TEXT NOT NULL PRIMARY KEY)",
        // In the order in which they are taken, so that with many waiting few are read.
        "DROP INDEX notice_untold",
        "CREATE INDEX notice_waiting ON notice (urgent DESC, lease, since, vehicle) WHERE since IS NOT NULL",
      ]),
    // The public parts of vehicles. Null for a vehicle of before, until a server has read its folder.
    Migration(
      "vehicle-part-1",
      ["topic", "public_part", "certificate"].map { "ALTER TABLE vehicle ADD COLUMN \($0) TEXT" } + [
        "CREATE UNIQUE INDEX vehicle_topic ON vehicle (topic) WHERE service <> 'removed'",
        "CREATE INDEX vehicle_folder ON vehicle (folder)",
      ]),
    // Of removed vehicles, too, whose topics nobody else gets for a while.
    Migration("vehicle-topic-1", ["CREATE INDEX vehicle_every_topic ON vehicle (topic)"]),
    // What each column means: EventTable. `place` counts a vehicle's events as they were heard.
    Migration(
      "event-1",
      [
        """
        CREATE TABLE event (
          vehicle TEXT NOT NULL, place BIGINT NOT NULL, digest TEXT NOT NULL, sequence BIGINT NOT NULL,
          heard BIGINT NOT NULL, time BIGINT NOT NULL, kind TEXT NOT NULL, step TEXT, position TEXT, jti TEXT,
          code TEXT, cause TEXT, method TEXT, zone TEXT, untold BIGINT, finding TEXT, text TEXT NOT NULL,
          PRIMARY KEY (vehicle, place), CONSTRAINT "event.vehicle, event.digest" UNIQUE (vehicle, digest))
        """,
        "CREATE INDEX event_heard ON event (heard)",
        "CREATE INDEX event_jti ON event (jti) WHERE jti IS NOT NULL",
        "CREATE INDEX booking_subject ON booking (subject)",
        // How many events of a vehicle were kept, and the last one; the number of the notice that the vehicle obeys,
        // and its last refusal; and where each step is.
        """
        CREATE TABLE event_end (
          vehicle TEXT NOT NULL PRIMARY KEY, count BIGINT NOT NULL, sequence BIGINT NOT NULL, digest TEXT NOT NULL,
          heard BIGINT, notice BIGINT, refusal TEXT, refused BIGINT)
        """,
        """
        CREATE TABLE step_state (
          vehicle TEXT NOT NULL, step TEXT NOT NULL, position TEXT NOT NULL, fault TEXT, since BIGINT NOT NULL,
          PRIMARY KEY (vehicle, step))
        """,
      ]),
    Migration(
      "zone-1",
      [
        // area: GeoJSON.
        """
        CREATE TABLE zone (
          id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, is_parking BIGINT NOT NULL, area TEXT NOT NULL,
          created BIGINT NOT NULL, CONSTRAINT "zone.name" UNIQUE (name))
        """,
        // Where a booking ended: the nearest parking zone, and how far it is. Null if that is unknown.
        "ALTER TABLE booking ADD COLUMN zone TEXT", "ALTER TABLE booking ADD COLUMN zone_metres BIGINT",
        // Since when the vehicle's place was known.
        "ALTER TABLE booking ADD COLUMN zone_placed BIGINT",
        "CREATE INDEX booking_zone ON booking (ends) WHERE zone IS NOT NULL",
      ]),
    // What riders are still to be told; and the end of a booking of which its rider was told last.
    Migration(
      "message-1",
      [
        """
        CREATE TABLE message (
          id TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, account TEXT NOT NULL, booking TEXT, created BIGINT NOT NULL)
        """, "ALTER TABLE booking ADD COLUMN reminded BIGINT",
      ]),
    // Where the vehicle stood: 10^-7 degrees, and decimetres.
    Migration(
      "event-place-1",
      ["latitude", "longitude", "place_error"].map { "ALTER TABLE event ADD COLUMN \($0) BIGINT" } + [
        // When a step came to rest last.
        "ALTER TABLE event_end ADD COLUMN rested BIGINT"
      ]),
    Migration(
      "booking-begin-1", ["CREATE INDEX booking_begin ON booking (begins) WHERE state IN ('booked', 'active')"]),
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
