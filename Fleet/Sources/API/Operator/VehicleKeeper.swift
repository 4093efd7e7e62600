import Domain
import Operator
import Store
import Web

/// Lets the operator's folder have the public parts of the vehicles that are in the database: commands by hand, and the
/// broker, know the vehicles from there.
///
/// Every server does so for its own folder: it may be one that several servers share.
actor VehicleKeeper {
  private let store: any Store
  private let issuer: any AccessIssuer
  private let clock: Clock
  private lazy var runs = SharedRun { [weak self] in try await self?.bringTogether() }

  init(store: any Store, issuer: any AccessIssuer, clock: @escaping Clock) {
    (self.store, self.issuer, self.clock) = (store, issuer, clock)
  }

  /// The operator forgets a removed vehicle as soon as that vehicle knows all revocations, or all revoked tokens have
  /// ended. Until then the broker admits the vehicle's clients.
  func agree() async throws { try await runs.run() }

  private func bringTogether() async throws {
    let now = clock()
    let (removed, folders) = try await store.read { transaction in
      (try VehicleTable.removed(at: now, in: transaction), try VehicleTable.folders(in: transaction))
    }
    let missing = folders.subtracting(try await issuer.folders())
    let new = try await store.read { try VehicleTable.records(inFolders: missing, in: $0) }
    let former = removed.filter { !$0.waits }
    let names = Dictionary(former.map { ($0.folder, UUID($0.id)!) }, uniquingKeysWith: { $1 })
    if try await issuer.keep(new, without: names) {
      try await issuer.writeLists(knowing: store.read { try VehicleTable.topics(in: $0) })
    }
    let told = former.filter(\.isUntold).map(\.id)
    if !told.isEmpty { try await store.write { for id in told { try NoticeTable.forget(id, in: $0) } } }
  }

  /// Takes in the public parts of vehicles that an earlier version kept in the folder alone.
  func takeIn() async throws {
    for (id, folder) in try await store.read({ try VehicleTable.lacking(in: $0) }) {
      guard let record = try await issuer.record(in: folder), record.vehicle.uuid.description == id else { continue }
      try await store.write { try VehicleTable.complete(record, in: $0) }
    }
  }

  /// Whether a vehicle that was made by hand, and that the database does not have, has this one's id or topic.
  func hasByHand(_ record: VehicleRecord) async throws -> Bool {
    let known = try await store.read { try VehicleTable.folders(in: $0) }
    for folder in try await issuer.folders().subtracting(known) {
      guard let other = try await issuer.record(in: folder) else { continue }
      if other.topic == record.topic || other.vehicle.uuid == record.vehicle.uuid { return true }
    }
    return false
  }
}
