package import Booking
import Crypto
import Encoding
package import Logging
import StepProtocol
package import Store
package import Web

/// Vehicles, bookings and access, for the riders' routes and the operator's.
///
/// Each method reads what it needs, lets the rules of `Booking` decide, and writes what they say, in one transaction of
/// the tables. What the operator has to sign is asked of the issuer, outside of a transaction.
package final class FleetService: Sendable {
  let store: any Store
  let issuer: any AccessIssuer
  let clock: Clock
  let logger: Logger
  /// The maximum number of an account's bookings that are not over.
  let limit: Int64
  /// For how long what vehicles have reported is kept, seconds.
  let retention: Int64
  /// The usual one, in days.
  package static let retentionDays: Int64 = 365
  let known: KnownFleet
  let changes = Changes()
  let shared = SharedView()
  package let presence = Presence()
  let ledger: LedgerKeeper
  let folders: VehicleKeeper

  package init(
    store: any Store, issuer: any AccessIssuer, logger: Logger, limit: Int64 = BookingRules.maximumBookings,
    retentionDays: Int64 = FleetService.retentionDays, clock: @escaping Clock
  ) {
    (self.store, self.issuer, self.logger, self.limit, self.clock) = (store, issuer, logger, limit, clock)
    retention = retentionDays * 86_400
    known = KnownFleet(store, logger: logger)
    ledger = LedgerKeeper(store: store, issuer: issuer, clock: clock)
    folders = VehicleKeeper(store: store, issuer: issuer, logger: logger, clock: clock)
  }

  /// Follows changes of vehicles by this server and by others of the same database. Ends with the store.
  package func followAnnouncements() async {
    // It ends with this function.
    async let _ = tellChanges()
    let announcements = store.announcements()
    known.forget()
    for await announcement in announcements {
      var change: FleetChange?
      if case .change(let text) = announcement {
        change = FleetChange(text)
        if change == nil { continue }
      }
      known.forget(change)
      changes.note(change)
      if change == nil || change == .fleet { Task { await noteFailure { try await folders.agreeSoon() } } }
    }
  }

  private func tellChanges() async {
    await changes.tell {
      // It is what those who wait have read last.
      let before = await shared.present
      // Who waits is told as well if the database cannot be read, and hears of that.
      guard let before, let view = try? await sharedView() else { return true }
      return !view.isSame(as: before)
    }
  }

  /// Answers the requests that wait, and lets none wait from now on.
  package func endWaiting() { changes.end() }

  /// Whether the database answers.
  func checkStore() async throws { _ = try await store.read { try $0.run("SELECT 1 AS one") } }

  /// Takes the next step of a change of the operator's key, and tells the vehicles. The operator may read why the key
  /// cannot be changed.
  ///
  /// - Returns: what was done, as text for people.
  func rotateKeys(next key: [UInt8]? = nil) async throws -> String {
    let now = clock()
    let last = try await store.read { try NoticeTable.last(in: $0) }
    let (done, number): (String, Int64)
    // Riders of a vehicle that has joined at another server learn of the change, too.
    await agreeOnVehicles()
    do { (done, number) = try await issuer.rotateKeys(above: last, next: key, now: now) } catch let error as IssuerError
    {
      throw OperatorFailure.keys(error.description)
    }
    let key = try await presentKey()
    try await store.write { transaction in
      try OperatorTable.set(key, in: transaction)
      try NoticeTable.raise(to: number, in: transaction)
      try NoticeTable.wantAll(at: now, in: transaction)
    }
    return done
  }

  /// The thumbprint of the key that signs tokens.
  private func presentKey() async throws -> String { try await issuer.keys()[0].thumbprint.description }

  /// Ends a change of the operator's key, and tells the vehicles.
  func retireKey() async throws {
    let now = clock()
    let key = try await presentKey()
    let tokens = try await store.read { try TokenTable.givenByOldKeys(key, at: now, in: $0) }
    do { try await issuer.retireKey(tokens: tokens, now: now) } catch let error as IssuerError {
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
      try MessageTable.remind(at: now, in: transaction)
    }
    if try await !store.read({ try AccessTable.ofInactiveAccounts(at: now, in: $0) }).isEmpty {
      try await withdraw { try AccessTable.ofInactiveAccounts(at: now, in: $0) }
    }
    await agreeOnVehicles()
    try await ledger.agree()
    // It would have thrown if the clock were not right.
    try await store.write { try TokenTable.forget(at: now, in: $0) }
    try await store.write { [retention] in
      try EventTable.forget(before: now - retention, in: $0)
      try BookingTable.forgetPlaces(before: now - retention, in: $0)
    }
  }

  /// Tells riders what waits for them, one after the other.
  ///
  /// - Parameter send: returns when the message was handed over.
  package func sendMessages(_ send: (RiderMessage) async -> Void) async throws {
    while !Task.isCancelled {
      let now = clock()
      switch try await store.write({ try MessageTable.take(at: now, in: $0) }) {
      case .none: return
      case .outdated: continue
      case .message(let message): await send(message)
      }
    }
  }

  /// An account was suspended: its rider is to be told.
  package func noteSuspension(of account: String) async throws {
    let now = clock()
    try await store.write { try MessageTable.add(.suspended, to: account, about: nil, at: now, in: $0) }
  }

  /// Revokes what was left.
  private func withdraw(
    _ tokens: @escaping @Sendable (borrowing Transaction) throws -> [String]
  ) async throws {
    let now = clock()
    let count = try await store.write { transaction in
      try transaction.reserve(AccessTable.lock)
      return try TokenTable.withdraw(tokens(transaction), at: now, in: transaction)
    }
    if count > 0 { logger.notice("access revoked", metadata: ["tokens": "\(count)"]) }
  }

  /// Lets the operator's ledger and the rows agree. If that fails, the housekeeping tries it again.
  func agreeWithLedger() async {
    do { try await ledger.agree() } catch {
      logger.error("the operator's ledger is not kept", metadata: ["error": "\(error)"])
    }
  }

  /// Lets the operator's folder have the database's vehicles. If that fails, the housekeeping tries it again.
  func agreeOnVehicles() async { await noteFailure { try await folders.agree() } }

  private func noteFailure(_ agree: () async throws -> Void) async {
    do { try await agree() } catch {
      logger.error("the operator's folder lacks vehicles", metadata: ["error": "\(error)"])
    }
  }

  /// Makes sure that the operator's keys are those of the database.
  ///
  /// - Throws: `OtherOperator`.
  package func checkOperator() async throws {
    // The next key signs nothing yet: who has it so, and finds it in the database, has slept through the change.
    let keys = try await issuer.signers().map(\.thumbprint.description)
    try await store.write { transaction in
      // Of two servers that start at once with keys of their own, one starts.
      try transaction.reserve("operator")
      if let known = try OperatorTable.key(in: transaction), !keys.contains(known) {
        throw OtherOperator(key: keys[0], expected: known)
      }
      try OperatorTable.set(keys[0], in: transaction)
    }
  }

  /// Takes in what the operator's folder has, before anything else is done. An earlier version kept all tokens and the
  /// vehicles' public parts there.
  ///
  /// - Returns: whether that was done. Notices must wait for it: else they would not revoke what is revoked there.
  package func takeInFolder() async -> Bool {
    do {
      try await folders.takeIn()
      await agreeOnVehicles()
      try await ledger.agree()
      let (now, key) = (clock(), try await presentKey())
      try await store.write { try TokenTable.complete(signedBy: key, at: now, in: $0) }
      try await withdraw { try AccessTable.notWithdrawn(at: now, in: $0) }
      return true
    } catch {
      logger.error("the operator's folder is not taken in: vehicles are told nothing", metadata: ["error": "\(error)"])
      return false
    }
  }
}

/// The server's keys are not those of the operator whose vehicles, bookings and tokens the database has.
package struct OtherOperator: Error, Equatable {
  /// The thumbprints of the keys that sign tokens: the server's, and the one that the database knows.
  package let key, expected: String
}

/// The digest of a text, as the database keeps it: upper-case hexadecimal of its SHA-256.
func digest(_ bytes: some Sequence<UInt8>) -> String { hexadecimal(SHA256.hash(data: Array(bytes))) }
