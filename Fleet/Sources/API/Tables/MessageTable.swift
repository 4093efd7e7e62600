import Booking
import Domain
import Store

/// The rows of what riders are still to be told. A row is written in the transaction that is its reason, and goes when
/// it is handed to the mail's program: what is lost then is not told.
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

  /// Removes the oldest messages, and returns those whose account still has an address.
  static func take(upTo count: Int, in transaction: borrowing Transaction) throws(StoreError) -> (
    count: Int, messages: [RiderMessage]
  ) {
    let rows = try transaction.run(
      """
      DELETE FROM message WHERE id IN (SELECT id FROM message ORDER BY created, id LIMIT ? \(transaction.skipLocked))
      RETURNING id, kind, account, booking, created
      """, [.integer(Int64(count))])
    let sorted = rows.sorted { ($0.integer("created"), $0.text("id")) < ($1.integer("created"), $1.text("id")) }
    var messages: [RiderMessage] = []
    for row in sorted {
      let account = row.text("account")
      let found = try transaction.run("SELECT email FROM account WHERE id = ?", [.text(account)]).first
      guard let kind = RiderMessage.Kind(rawValue: row.text("kind")), let email = found?.optionalText("email") else {
        continue
      }
      var booking: FleetBooking?
      if let id = row.optionalText("booking") { booking = try BookingTable.find(id, in: transaction) }
      messages.append(RiderMessage(kind, account: account, email: email, booking: booking))
    }
    return (rows.count, messages)
  }
}
