import Domain
import Store

/// The rows of notices: one for each vehicle that has had one, and together the queue of those that the broker lacks.
///
/// A row says that a notice is wanted, not what the notice says: that is read when it is sent. `since` is when the
/// notice was first wanted, null when the broker has the newest. Each wish counts `wish` up, so that a wish during the
/// sending is not lost. A server that takes a row gives it the next `number`, in a transaction of its own before it
/// sends. No other server takes the row until `lease`. If one took it nevertheless, because this one had stopped for a
/// while, the numbers differ afterwards, and the vehicle gets another notice: what the broker keeps is the newest.
enum NoticeTable {
  /// Wants a notice for each of the vehicles, by their ids, as far as they are or were the fleet's.
  static func want(
    _ vehicles: some Sequence<String>, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) { try want(vehicles, only: "TRUE", at: now, in: transaction) }

  /// Wants another notice for a vehicle, unless it was removed and the operator has forgotten it.
  static func wantAgain(_ vehicle: String, at now: Int64, in transaction: borrowing Transaction) throws(StoreError) {
    try want([vehicle], only: isTold, at: now, in: transaction)
  }

  private static func want(
    _ vehicles: some Sequence<String>, only condition: String, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    // In one order, so that two transactions do not wait for each other.
    for vehicle in Set(vehicles).sorted() {
      try transaction.run(
        """
        INSERT INTO notice (vehicle, number, wish, since, urgent, lease)
        SELECT id, 0, 1, CAST(? AS BIGINT), 1, 0 FROM vehicle WHERE id = ? AND \(condition) \(again)
        """, [.integer(now), .text(vehicle)])
    }
    try announce(in: transaction)
  }

  /// Wants a notice for every vehicle of the fleet, and for removed ones that the operator has not forgotten. Those
  /// that revoke something go first.
  static func wantAll(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) {
    try transaction.run(
      """
      INSERT INTO notice (vehicle, number, wish, since, urgent, lease)
      SELECT id, 0, 1, CAST(? AS BIGINT), 0, 0 FROM vehicle WHERE \(isTold) ORDER BY id \(again)
      """, [.integer(now)])
    try announce(in: transaction)
  }

  private static let isTold = """
    (service <> 'removed' OR EXISTS (SELECT 1 FROM notice WHERE notice.vehicle = vehicle.id))
    """
  private static let again = """
    ON CONFLICT (vehicle) DO UPDATE SET wish = notice.wish + 1, since = COALESCE(notice.since, excluded.since),
      urgent = CASE WHEN notice.since IS NULL OR excluded.urgent = 1 THEN excluded.urgent ELSE notice.urgent END
    """

  /// Wakes whoever publishes, here and at other servers.
  private static let announcement = "notice"
  static func isAnnouncement(_ announcement: Announcement) -> Bool {
    announcement == .everything || announcement == .change(Self.announcement)
  }
  private static func announce(in transaction: borrowing Transaction) throws(StoreError) {
    try transaction.announce(announcement)
  }

  /// A notice that this server is to send.
  struct Claim: Sendable, Equatable {
    /// The vehicle's id.
    let vehicle: String
    let topic: TopicPrefix
    let number: Int64
    let wish: Int64
  }

  /// No row is taken, or kept from being tried again, for longer: seconds.
  static let longestLease: Int64 = 60
  /// SQL on a row that can be taken. A clock that was set back must not keep a notice waiting. Without a topic, the
  /// vehicle's public part was not taken in yet (`VehicleTable.lacking`).
  private static let isDue = """
    since IS NOT NULL AND NOT (lease > ? AND lease <= ?)
    AND EXISTS (SELECT 1 FROM vehicle WHERE vehicle.id = notice.vehicle AND topic IS NOT NULL)
    """
  private static func due(at now: Int64) -> [Value] { [.integer(now), .integer(now + longestLease)] }

  /// Whether there may be something to claim.
  static func isWaiting(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) -> Bool {
    try !transaction.run("SELECT vehicle FROM notice WHERE \(isDue) LIMIT 1", due(at: now)).isEmpty
  }

  /// Takes the next rows.
  ///
  /// - Parameter end: until when no other server takes them, Unix time: `longestLease` at the most.
  static func claim(
    upTo count: Int, at now: Int64, until end: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> [Claim] {
    // What was never tried goes before what has failed. A number is at least the time, because the database can come
    // from a backup.
    try transaction.run(
      """
      WITH due AS (
        SELECT vehicle FROM notice WHERE \(isDue)
        ORDER BY urgent DESC, lease, since, vehicle LIMIT ? \(transaction.skipLocked))
      UPDATE notice SET number = CASE WHEN number < ? THEN ? ELSE number + 1 END, lease = ?
      WHERE vehicle IN (SELECT vehicle FROM due)
      RETURNING vehicle, number, wish, (SELECT topic FROM vehicle WHERE vehicle.id = notice.vehicle) AS topic
      """, due(at: now) + [.integer(Int64(count)), .integer(now), .integer(now), .integer(end)]
    ).compactMap { row in
      TopicPrefix(row.text("topic")).map {
        Claim(vehicle: row.text("vehicle"), topic: $0, number: row.integer("number"), wish: row.integer("wish"))
      }
    }
  }

  /// Notes that the broker has a notice.
  static func noteSent(_ claim: Claim, at now: Int64, in transaction: borrowing Transaction) throws(StoreError) {
    // Another server that has taken the row meanwhile may have been the first: it sends once more.
    let (number, wish, time) = (Value.integer(claim.number), Value.integer(claim.wish), Value.integer(now))
    try transaction.run(
      """
      UPDATE notice SET
        since = CASE WHEN number = ? AND wish = ? THEN NULL ELSE COALESCE(since, ?) END,
        lease = CASE WHEN number = ? THEN 0 ELSE lease END, wish = CASE WHEN number = ? THEN wish ELSE wish + 1 END
      WHERE vehicle = ?
      """, [number, wish, time, number, number, .text(claim.vehicle)])
  }

  /// Gives a row back that was not sent, or perhaps not.
  ///
  /// - Parameter time: when it is tried again, Unix time: `longestLease` at the most.
  static func giveBack(_ claim: Claim, until time: Int64, in transaction: borrowing Transaction) throws(StoreError) {
    try transaction.run(
      "UPDATE notice SET lease = ? WHERE vehicle = ? AND number = ?",
      [.integer(time), .text(claim.vehicle), .integer(claim.number)])
  }

  /// Gives all rows back that servers have taken: this is the only server, and has just begun.
  static func giveBackAll(in transaction: borrowing Transaction) throws(StoreError) {
    try transaction.run("UPDATE notice SET lease = 0 WHERE lease > 0")
  }

  /// Notes what number the broker keeps. A greater one than is known is of the time before a backup was restored: the
  /// vehicle takes no notice below it. A smaller one, where the newest is thought to be, has come too late.
  static func note(
    _ number: Int64, of vehicle: String, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    let (value, time) = (Value.integer(number), Value.integer(now))
    try transaction.run(
      """
      UPDATE notice SET number = CASE WHEN number < ? THEN ? ELSE number END, wish = wish + 1,
        since = COALESCE(since, ?), urgent = 1, lease = 0
      WHERE vehicle = ? AND (number < ? OR number > ? AND since IS NULL)
      """, [value, value, time, .text(vehicle), value, value])
  }

  /// The greatest number so far.
  static func last(in transaction: borrowing Transaction) throws(StoreError) -> Int64 {
    try transaction.run("SELECT max(number) AS last FROM notice")[0].optionalInteger("last") ?? 0
  }

  /// Lets the next notices have numbers above this one.
  static func raise(to number: Int64, in transaction: borrowing Transaction) throws(StoreError) {
    try transaction.run("UPDATE notice SET number = ? WHERE number < ?", [.integer(number), .integer(number)])
  }

  /// Forgets a vehicle that is not there to read a notice.
  static func forget(_ vehicle: String, in transaction: borrowing Transaction) throws(StoreError) {
    try transaction.run("DELETE FROM notice WHERE vehicle = ?", [.text(vehicle)])
  }

  /// Since when vehicles wait for a notice, by their ids: Unix time.
  static func waiting(in transaction: borrowing Transaction) throws(StoreError) -> [String: Int64] {
    let rows = try transaction.run("SELECT vehicle, since FROM notice WHERE since IS NOT NULL")
    return Dictionary(uniqueKeysWithValues: rows.map { ($0.text("vehicle"), $0.integer("since")) })
  }

  /// How many vehicles wait for a notice, and since when the first of them does: Unix time.
  static func untold(in transaction: borrowing Transaction) throws(StoreError) -> (count: Int64, oldest: Int64?) {
    let row = try transaction.run("SELECT count(*) AS n, min(since) AS oldest FROM notice WHERE since IS NOT NULL")[0]
    return (row.integer("n"), row.optionalInteger("oldest"))
  }

  /// Whether a vehicle has heard what there is to say.
  enum State: String {
    /// The broker lacks the newest notice.
    case untold
    /// The broker has it, and the vehicle has not said that it obeys it.
    case unconfirmed
    case inForce = "in_force"
  }

  /// What is known of each vehicle's newest notice, by the vehicles' ids.
  static func states(in transaction: borrowing Transaction) throws(StoreError) -> [String: State] {
    let rows = try transaction.run(
      "SELECT notice.vehicle, CASE WHEN since IS NOT NULL THEN 2 WHEN \(isUnconfirmed) THEN 1 ELSE 0 END AS state \(ends)"
    )
    let states: [State] = [.inForce, .unconfirmed, .untold]
    return Dictionary(uniqueKeysWithValues: rows.map { ($0.text("vehicle"), states[Int($0.integer("state"))]) })
  }

  /// How many vehicles have not said that they obey what the broker has for them.
  static func unconfirmed(in transaction: borrowing Transaction) throws(StoreError) -> Int64 {
    try transaction.run("SELECT count(*) AS n \(ends) WHERE \(isUnconfirmed)")[0].integer("n")
  }

  private static let ends = "FROM notice LEFT JOIN event_end ON event_end.vehicle = notice.vehicle"
  private static let isUnconfirmed = "since IS NULL AND COALESCE(event_end.notice, -1) < notice.number"
}
