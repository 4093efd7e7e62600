import Booking
import Domain
import Store

/// The rows of messages to riders. A row is written with its reason. It goes before the message is handed over, so a
/// message that is lost then is never sent.
enum MessageTable {
  /// - Parameter booking: its id; nil for what is about the account.
  static func add(
    _ kind: RiderMessage.Kind, to account: String, about booking: String?, at now: Int64,
    in transaction: borrowing Transaction
  ) throws(StoreError) {
    try transaction.run(
      "INSERT INTO message (id, kind, account, booking, created) VALUES (?, ?, ?, ?, ?)",
      [.text(UUID.random().description), .text(kind.rawValue), .text(account), Value(booking), .integer(now)])
  }

  /// Adds a message for each booking that ends soon, once for each end.
  static func remind(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) {
    let soon = try transaction.run(
      """
      UPDATE booking SET reminded = ends
      WHERE state IN ('booked', 'active') AND has_access = 1 AND ends > ? AND ends <= ? AND ends - begins >= ?
        AND COALESCE(reminded, 0) <> ends
      RETURNING id, account
      """, [.integer(now), .integer(now + RiderMessage.notice), .integer(RiderMessage.shortest)])
    for row in soon {
      try add(.endsSoon, to: row.text("account"), about: row.text("id"), at: now, in: transaction)
    }
  }

  /// How long a message waits at most, seconds: one of a backup that was restored would only confuse.
  private static let lifetime: Int64 = 86_400

  /// What became of the oldest message.
  enum Taken: Sendable {
    case none
    /// Nobody is to be told that any more.
    case outdated
    case message(RiderMessage)
  }

  /// Removes the oldest message.
  static func take(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) -> Taken {
    let removed = try transaction.run(
      """
      DELETE FROM message
      WHERE id = (SELECT id FROM message ORDER BY created, id LIMIT 1 \(transaction.skipLocked))
      RETURNING kind, account, booking, created
      """)
    guard let row = removed.first else { return .none }
    let account = row.text("account")
    let found = try transaction.run("SELECT email FROM account WHERE id = ?", [.text(account)]).first
    guard let kind = RiderMessage.Kind(rawValue: row.text("kind")), let email = found?.optionalText("email"),
      row.integer("created") > now - lifetime
    else { return .outdated }
    var booking: FleetBooking?
    if let id = row.optionalText("booking") { booking = try BookingTable.find(id, in: transaction) }
    let message = RiderMessage(kind, account: account, email: email, booking: booking)
    return message.isOutdated(at: now) ? .outdated : .message(message)
  }
}
