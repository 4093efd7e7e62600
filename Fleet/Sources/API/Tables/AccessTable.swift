import Booking
import Operator
import StepProtocol
package import Store

/// The rows of access that bookings gave, and of devices that get none. They stay when the tokens have ended.
///
/// A row is `given` or `withdrawn`. An earlier version has left rows that are `asked` (the token was never given) and
/// `withdrawing`: the token is to be withdrawn, as also a token that `TokenTable` lacks.
package enum AccessTable {
  /// The lock (`Transaction.reserve`) for giving access and for revoking a vehicle's or device's access: the second
  /// transaction sees the result of the first.
  static let lock = "access"

  /// When an account's tokens for a vehicle end that have not ended, withdrawn ones included.
  static func ends(
    of account: String, at vehicle: String, after now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> [Int64] {
    try transaction.run(
      """
      SELECT access.expires AS expires FROM access JOIN booking ON booking.id = access.booking
      WHERE booking.account = ? AND booking.vehicle = ? AND access.expires > ? ORDER BY access.expires
      """, [.text(account), .text(vehicle), .integer(now)]
    ).map { $0.integer("expires") }
  }

  /// The devices that have a booking's access; one may come twice.
  static func devices(
    of booking: String, after now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> [String] {
    try transaction.run(
      "SELECT device FROM access WHERE booking = ? AND expires > ? AND standing = 'given'",
      [.text(booking), .integer(now)]
    ).map { $0.text("device") }
  }

  /// Gives a booking's access, and so the token.
  static func give(
    _ token: Ledger.Entry, for booking: String, in transaction: borrowing Transaction
  ) throws(StoreError) {
    try transaction.run(
      "INSERT INTO access (jti, booking, device, expires, standing) VALUES (?, ?, ?, ?, 'given')",
      [.text(token.id), .text(booking), .text(token.device.description), .integer(token.expires)])
    try TokenTable.insert(token, isByHand: false, in: transaction)
  }

  /// The ids of given tokens that last beyond a time.
  static func given(
    for group: BookingTable.Group, beyond time: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> [String] {
    try transaction.run(
      """
      SELECT jti FROM access WHERE standing = 'given' AND expires > ?
        AND booking IN (SELECT id FROM booking WHERE \(group.condition))
      """, [.integer(time)] + group.values
    ).map { $0.text("jti") }
  }

  /// SQL for tokens with what they depend on.
  private static let select = """
    SELECT access.jti AS jti, access.expires AS expires, booking.begins AS begins, ends, booking.state AS state,
      has_access, vehicle.service AS service, account.state AS account_state, standing
    FROM access JOIN booking ON booking.id = access.booking JOIN vehicle ON vehicle.id = booking.vehicle
      JOIN account ON account.id = booking.account
    """

  /// The tokens that should be revoked, but are not: something was interrupted.
  package static func notWithdrawn(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) -> [String]
  {
    // The rule decides, and the condition leaves out what cannot be meant.
    try transaction.run(
      """
      \(select) WHERE access.expires > ? AND (standing = 'withdrawing' OR standing = 'given' AND (
        booking.state NOT IN ('booked', 'active') OR vehicle.service <> 'in_service' OR account.state <> 'active'
        OR access.expires > ends + \(BookingRules.grace)))
      """, [.integer(now)]
    ).filter { $0.text("standing") == "withdrawing" || GivenAccess($0).isOverdue }.map { $0.text("jti") }.sorted()
  }

  /// Those of them that this version can leave, and that are found without looking at all: of accounts that were
  /// suspended or deleted.
  static func ofInactiveAccounts(
    at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> [String] {
    // A booking that has a token has begun within the maximum length, so older rows need not be read.
    try transaction.run(
      """
      SELECT jti FROM access WHERE standing = 'given' AND expires > ? AND booking IN (
        SELECT booking.id FROM account JOIN booking ON booking.account = account.id
        WHERE account.state <> 'active' AND booking.begins > ?)
      """, [.integer(now), .integer(now - BookingRules.maximumLength - BookingRules.grace)]
    ).map { $0.text("jti") }
  }

  /// The tokens that count for bookings, and of which `TokenTable` knows nothing, or something else: for `stepfleet
  /// check`.
  package static func unknown(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) -> [String] {
    try transaction.run(
      """
      SELECT jti FROM access WHERE expires > ? AND standing <> 'asked' AND NOT EXISTS (
        SELECT 1 FROM token WHERE token.jti = access.jti
          AND (token.withdrawn IS NULL AND standing = 'given' OR token.withdrawn IS NOT NULL AND standing <> 'given'))
      ORDER BY jti
      """, [.integer(now)]
    ).map { $0.text("jti") }
  }

  /// The tokens of a vehicle in service that were withdrawn since a time, and that its open bookings give a right to.
  static func restorable(
    of vehicle: String, since time: Int64, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> [String] {
    try transaction.run(
      """
      \(select) JOIN token ON token.jti = access.jti
      WHERE vehicle.id = ? AND standing = 'withdrawn' AND withdrawn >= ? AND access.expires > ?
        AND booking.state IN ('booked', 'active') AND ends > ? AND has_access = 1
        AND access.device NOT IN (SELECT device FROM revoked_device)
      """, [.text(vehicle), .integer(time), .integer(now), .integer(now)]
    ).map(GivenAccess.init).filter { !$0.isOverdue }.map(\.jti)
  }

  /// Keeps access from a device.
  ///
  /// - Parameters:
  ///   - end: until when, Unix time; nil for ever.
  ///   - time: since when, Unix time.
  static func revokeDevice(
    _ device: String, until end: Int64? = nil, at time: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    try transaction.run(
      """
      INSERT INTO revoked_device (device, since, ends) VALUES (?, ?, ?)
      ON CONFLICT (device) DO UPDATE SET ends = CASE WHEN revoked_device.ends IS NULL OR excluded.ends IS NULL
        THEN NULL WHEN excluded.ends > revoked_device.ends THEN excluded.ends ELSE revoked_device.ends END
      """, [.text(device), .integer(time), Value(end)])
  }

  static func isRevoked(
    _ device: String, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> Bool {
    try !transaction.run(
      "SELECT device FROM revoked_device WHERE device = ? AND (ends IS NULL OR ends > ?)",
      [.text(device), .integer(now)]
    ).isEmpty
  }

  /// The devices that have, or had, a login of the account, and are to get no access now.
  static func revokedDevices(
    of account: String, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> [String] {
    try transaction.run(
      """
      SELECT device FROM revoked_device WHERE (ends IS NULL OR ends > ?) AND device IN (
        SELECT device FROM session WHERE account = ? UNION
        SELECT access.device FROM access JOIN booking ON booking.id = access.booking WHERE booking.account = ?)
      ORDER BY device
      """, [.integer(now), .text(account), .text(account)]
    ).map { $0.text("device") }
  }

  /// A row, for the export of an account's data.
  struct Record: Sendable, Equatable {
    let booking: String
    let device: String
    /// Unix time.
    let expires: Int64
    let isRevoked: Bool
  }

  /// An account's access, the last to end first.
  static func records(of account: String, in transaction: borrowing Transaction) throws(StoreError) -> [Record] {
    try transaction.run(
      """
      SELECT booking, device, expires, standing FROM access
      WHERE standing <> 'asked' AND booking IN (SELECT id FROM booking WHERE account = ?) ORDER BY expires DESC
      """, [.text(account)]
    ).map {
      Record(
        booking: $0.text("booking"), device: $0.text("device"), expires: $0.integer("expires"),
        isRevoked: $0.text("standing") != "given")
    }
  }
}

extension GivenAccess {
  fileprivate init(_ row: Row) {
    self.init(
      jti: row.text("jti"), expires: row.integer("expires"), booking: Booking(row),
      service: Service(rawValue: row.text("service"))!, isAccountActive: row.text("account_state") == "active")
  }
}
