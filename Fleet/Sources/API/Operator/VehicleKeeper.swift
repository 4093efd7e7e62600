import Domain
import Logging
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
  private let logger: Logger
  private let clock: Clock
  private lazy var runs = SharedRun { [weak self] in try await self?.bringTogether() }
  /// Whether `agreeSoon` waits, and when the last run began.
  private var isAwaited = false
  private var last: ContinuousClock.Instant?
  /// The folders of vehicles that were made by hand, as the last run has seen them.
  private var byHand: Set<String>?

  init(store: any Store, issuer: any AccessIssuer, logger: Logger, clock: @escaping Clock) {
    (self.store, self.issuer, self.logger, self.clock) = (store, issuer, logger, clock)
  }

  /// The operator forgets a removed vehicle as soon as that vehicle knows all revocations, or all revoked tokens have
  /// ended. Until then the broker admits the vehicle's clients.
  func agree() async throws { try await runs.run() }

  /// The same, at most once a second: each run looks at all vehicles, and many may join at once.
  func agreeSoon() async throws {
    guard !isAwaited else { return }
    isAwaited = true
    if let last { try? await Task.sleep(until: last + Self.pause, clock: .continuous) }
    isAwaited = false
    try await agree()
  }

  private static let pause = Duration.seconds(1)

  /// How many folders are made at once: meanwhile commands by hand wait.
  private static let batch = 100

  private func bringTogether() async throws {
    last = .now
    let now = clock()
    let (removed, folders) = try await store.read { transaction in
      (try VehicleTable.removed(at: now, in: transaction), try VehicleTable.folders(in: transaction))
    }
    let former = removed.filter { !$0.waits }
    let names = Dictionary(grouping: former, by: \.folder).mapValues { Set($0.compactMap { UUID($0.id) }) }
    try await issuer.keep([:], without: names)
    let present = try await issuer.folders()
    byHand = present.subtracting(folders)
    var missing = folders.subtracting(present)[...]
    while !missing.isEmpty {
      let batch = Array(missing.prefix(Self.batch))
      missing = missing.dropFirst(Self.batch)
      try await issuer.keep(store.read { try VehicleTable.records(inFolders: batch, in: $0) }, without: [:])
    }
    if issuer.listed != .none {
      let known = try await store.read { [listed = issuer.listed] in try VehicleTable.topics(listed, in: $0) }
      let lists = BrokerLists(
        known: known, others: folders.subtracting(known.keys), former: Set(former.compactMap { UUID($0.id) }))
      try await issuer.write(lists)
    }
    let noted = former.filter(\.hasNotice).map(\.id)
    if !noted.isEmpty { try await store.write { for id in noted { try NoticeTable.forget(id, in: $0) } } }
  }

  /// Takes in the public parts of vehicles that an earlier version kept in the folder alone. A vehicle whose folder
  /// cannot be used is left out.
  func takeIn() async throws {
    for (id, folder) in try await store.read({ try VehicleTable.lacking(in: $0) }) {
      do {
        guard let record = try await issuer.record(in: folder), record.vehicle.uuid.description == id else { continue }
        try await store.write { try VehicleTable.complete(record, in: $0) }
      } catch {
        logger.error("a vehicle's public part is unknown", metadata: ["vehicle": "\(id)", "error": "\(error)"])
      }
    }
  }

  /// Whether a vehicle that was made by hand, and that the database does not have, has this one's id or topic. One that
  /// was made since the last run is not found: a run looks at all vehicles, and a vehicle that joins does not wait for
  /// it.
  func hasByHand(_ record: VehicleRecord) async throws -> Bool {
    if byHand == nil { try await agree() }
    for folder in byHand ?? [] {
      guard let other = try await issuer.record(in: folder) else { continue }
      if other.topic == record.topic || other.vehicle.uuid == record.vehicle.uuid { return true }
    }
    return false
  }
}
