import Booking
import Crypto
import Encoding
package import Logging
package import Store
package import Web

/// Vehicles, bookings and access, for the riders' routes and the operator's.
///
/// Each method reads what it needs, lets the rules of `Booking` decide, and writes what they say, in one transaction of
/// the tables. What the operator has to sign or to revoke is asked of the desk, outside of a transaction.
package final class FleetService: Sendable {
  let store: any Store
  let desk: any OperatorDesk
  let clock: Clock
  let logger: Logger
  /// The maximum number of an account's bookings that are not over.
  let limit: Int64
  let known: KnownVehicles

  package init(
    store: any Store, desk: any OperatorDesk, logger: Logger, limit: Int64 = BookingRules.maximumBookings,
    clock: @escaping Clock
  ) {
    (self.store, self.desk, self.logger, self.limit, self.clock) = (store, desk, logger, limit, clock)
    known = KnownVehicles(store)
  }

  /// Follows changes of vehicles by this server and by others of the same database. Ends with the store.
  package func followAnnouncements() async { await known.follow() }

  /// Whether the database answers.
  func checkStore() async throws { _ = try await store.read { try $0.run("SELECT 1 AS one") } }

  /// Takes the next step of a change of the operator's key, and tells the vehicles. The operator may read why the key
  /// cannot be changed.
  ///
  /// - Returns: what was done, as text for people.
  func rotateKeys() async throws -> String {
    let done: String
    do { done = try await desk.rotateKeys(now: clock()) } catch let error as DeskError {
      throw OperatorFailure.keys(error.description)
    }
    try await publishToAll()
    return done
  }

  /// Ends a change of the operator's key, and tells the vehicles.
  func retireKey() async throws {
    do { try await desk.retireKey(now: clock()) } catch let error as DeskError {
      throw OperatorFailure.keys(error.description)
    }
    try await publishToAll()
  }

  /// Applies the effects of time: ends bookings, and removes data that nobody asks for again. Completes interrupted
  /// work.
  package func tidy() async throws {
    let now = clock()
    try await store.write { transaction in
      try BookingTable.end(at: now, in: transaction)
      try AnswerTable.forgetOld(at: now, in: transaction)
      // An account was suspended, and its bookings still exist.
      try BookingTable.cancel(.inactiveAccounts, at: now, in: transaction)
      try AccessTable.markOverdue(at: now, in: transaction)
    }
    try await withdraw()
    try await forgetRemoved()
    try await desk.tidy(now: now)
  }
}

/// The digest of a text, as the database keeps it: upper-case hexadecimal of its SHA-256.
func digest(_ bytes: some Sequence<UInt8>) -> String { hexadecimal(SHA256.hash(data: Array(bytes))) }
