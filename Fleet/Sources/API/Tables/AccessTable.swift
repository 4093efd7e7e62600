import Booking
package import Store

/// The rows of issued access, and of devices that get none.
///
/// A row has one of four standings: `asked` (the token is being made, and its place is reserved), `given`,
/// `withdrawing` (the database wants it to be revoked) and `withdrawn` (the operator has the revocation).
package enum AccessTable {
  /// The lock (`Transaction.reserve`) for recording issued access and for revoking a vehicle's or device's access: the
  /// second transaction sees the result of the first.
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

  /// Reserves a place for a token that is about to be made.
  ///
  /// - Parameter place: what stands for the token's jti: a text that no token has.
  static func ask(
    _ place: String, for booking: String, device: String, until end: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    try transaction.run(
      "INSERT INTO access (jti, booking, device, expires, standing) VALUES (?, ?, ?, ?, 'asked')",
      [.text(place), .text(booking), .text(device), .integer(end)])
  }

  static func giveUp(_ place: String, in transaction: borrowing Transaction) throws(StoreError) {
    try transaction.run("DELETE FROM access WHERE jti = ?", [.text(place)])
  }

  /// Puts the token into its place.
  ///
  /// - Parameter isGiven: false if it has to be withdrawn at once.
  static func give(
    _ token: IssuedToken, at place: String, isGiven: Bool, in transaction: borrowing Transaction
  ) throws(StoreError) {
    try transaction.run(
      "UPDATE access SET jti = ?, expires = ?, standing = ? WHERE jti = ?",
      [.text(token.jti), .integer(token.expires), .text(isGiven ? "given" : "withdrawing"), .text(place)])
  }

  /// What is marked for withdrawal.
  enum Mark: Sendable {
    case device(String)
    case bookings(BookingTable.Group)

    /// SQL on a row of `access`.
    fileprivate var condition: String {
      switch self {
      case .device: "device = ?"
      case .bookings(let group): "booking IN (SELECT id FROM booking WHERE \(group.condition))"
      }
    }

    fileprivate var values: [Value] {
      switch self {
      case .device(let device): [.text(device)]
      case .bookings(let group): group.values
      }
    }
  }

  /// Marks given access that lasts beyond a time.
  static func mark(_ mark: Mark, beyond time: Int64, in transaction: borrowing Transaction) throws(StoreError) {
    try transaction.run(
      "UPDATE access SET standing = 'withdrawing' WHERE standing = 'given' AND expires > ? AND \(mark.condition)",
      [.integer(time)] + mark.values)
  }

  /// How much access of a group is marked and has not ended.
  static func countMarked(
    _ group: BookingTable.Group, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> Int64 {
    let mark = Mark.bookings(group)
    return try transaction.run(
      "SELECT count(*) AS n FROM access WHERE standing = 'withdrawing' AND expires > ? AND \(mark.condition)",
      [.integer(now)] + mark.values)[0].integer("n")
  }

  /// The given tokens that have not ended, with what they depend on.
  private static func given(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) -> [GivenAccess] {
    try transaction.run(
      """
      SELECT jti, expires, begins, ends, booking.state AS state, has_access, vehicle.service AS service,
        account.state AS account_state
      FROM access JOIN booking ON booking.id = access.booking JOIN vehicle ON vehicle.id = booking.vehicle
        JOIN account ON account.id = booking.account
      WHERE standing = 'given' AND expires > ? ORDER BY jti
      """, [.integer(now)]
    ).map { row in
      GivenAccess(
        jti: row.text("jti"), expires: row.integer("expires"), booking: Booking(row),
        service: Service(rawValue: row.text("service"))!, isAccountActive: row.text("account_state") == "active")
    }
  }

  /// Marks the tokens that should not count, and are not marked because something was interrupted.
  static func markOverdue(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) {
    for access in try given(at: now, in: transaction) where access.isOverdue {
      try transaction.run(
        "UPDATE access SET standing = 'withdrawing' WHERE standing = 'given' AND jti = ?", [.text(access.jti)])
    }
  }

  /// For `stepfleet check`.
  ///
  /// - Returns: the jti of each token that should be revoked, but is not.
  package static func notWithdrawn(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) -> [String]
  {
    let overdue = try given(at: now, in: transaction).filter(\.isOverdue).map(\.jti)
    return (overdue + (try marked(at: now, in: transaction)).map(\.jti)).sorted()
  }

  /// A marked token.
  struct Marked: Sendable, Equatable {
    let jti: String
    /// The vehicle's id.
    let vehicle: String
  }

  /// The marked tokens that have not ended.
  static func marked(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) -> [Marked] {
    try transaction.run(
      """
      SELECT jti, vehicle FROM access JOIN booking ON booking.id = access.booking
      WHERE standing = 'withdrawing' AND access.expires > ? ORDER BY jti
      """, [.integer(now)]
    ).map { Marked(jti: $0.text("jti"), vehicle: $0.text("vehicle")) }
  }

  /// Notes that the operator has the revocations.
  static func noteWithdrawn(
    tokens: [String], devices: [String], in transaction: borrowing Transaction
  ) throws(StoreError) {
    for jti in tokens {
      try transaction.run("UPDATE access SET standing = 'withdrawn' WHERE jti = ?", [.text(jti)])
    }
    for device in devices {
      try transaction.run("UPDATE revoked_device SET noted = 1 WHERE device = ?", [.text(device)])
    }
  }

  /// Keeps access from a device for ever. The entry in the operator's ledger ends with the device's last token, so the
  /// database has its own.
  static func revokeDevice(
    _ device: String, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    try transaction.run(
      """
      INSERT INTO revoked_device (device, since, noted) VALUES (?, ?, 0)
      ON CONFLICT (device) DO UPDATE SET noted = 0
      """, [.text(device), .integer(now)])
  }

  static func isRevoked(_ device: String, in transaction: borrowing Transaction) throws(StoreError) -> Bool {
    try !transaction.run("SELECT device FROM revoked_device WHERE device = ?", [.text(device)]).isEmpty
  }

  /// The revoked devices that the operator does not know of.
  static func devicesToRevoke(in transaction: borrowing Transaction) throws(StoreError) -> [String] {
    try transaction.run("SELECT device FROM revoked_device WHERE noted = 0").map { $0.text("device") }
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
