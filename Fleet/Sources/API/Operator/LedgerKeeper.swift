import Operator
import Store
import Web

/// Lets the operator's ledger and the database's tokens agree: what was given or revoked by hand becomes rows, and what
/// commands by hand have to know of the rows becomes the ledger, with the broker's list of revoked certificates. The
/// ledger never has tokens that only the server has to know, so it stays small.
///
/// Every server does so for its own folder: it may be one that several servers share.
actor LedgerKeeper {
  private let store: any Store
  private let issuer: any AccessIssuer
  private let clock: Clock
  /// One run after the other: else an older state could be written after a newer one.
  private lazy var runs = SharedRun { [weak self] in try await self?.bringTogether() }
  /// Whether the last run has put everything there.
  private var isKept = false

  init(store: any Store, issuer: any AccessIssuer, clock: @escaping Clock) {
    (self.store, self.issuer, self.clock) = (store, issuer, clock)
  }

  func agree() async throws { try await runs.run() }

  private func bringTogether() async throws {
    let now = clock()
    let ledger = try await issuer.ledger(now: now)
    var rows = try await store.read { try TokenTable.known(at: now, in: $0) }
    if !rows.hasSameEntries(as: ledger) {
      try await store.write { [rows] transaction in
        try transaction.reserve(AccessTable.lock)
        try TokenTable.takeIn(ledger, beyond: rows, at: now, in: transaction)
      }
      rows = try await store.read { try TokenTable.known(at: now, in: $0) }
    }
    if isKept, rows.hasSameEntries(as: ledger) { return }
    isKept = false
    try await issuer.keep(rows, inPlaceOf: ledger, now: now)
    isKept = true
  }
}
