import Access
import Certificates
package import Domain
import Encoding
import FileFormats
import Glibc
package import MQTT
package import StepProtocol
import SystemIO

/// The folder that an operator works from: a vehicle's own, or that of a fleet.
///
///     operator/token.jwk               signs tokens, codes and notices
///     operator/next.jwk, previous.jwk  the key after it and the one before, while keys change
///     operator/next.seq                the number of the last notice that did not list the next key
///     operator/ca.key                  signs certificates
///     operator/client.pem, client.key  who the operator is to the broker
///     operator/ledger.json             what was handed out, and what was taken back
///     operator/events.jwk              what vehicles' events are encrypted to
///     operator/events.old.jwk          the same from before, while the keys change
///     operator/events/UUID.jwt         a vehicle's events
///     operator/handover/UUID.jwt       a vehicle's notice in which the key before lists the present one
package struct OperatorPlace: Sendable {
  package let path: String

  /// - Parameter path: the folder that contains `operator/`.
  package init(_ path: String) { self.path = VehicleFolder(path).path }

  func path(_ name: String) -> String { "\(path)/\(name)" }

  /// The folders with the vehicles' files, in the order of their names.
  package func vehicles() throws -> [VehicleFolder] {
    guard isFleet else { return [VehicleFolder(path)] }
    let names = try Files.names(in: path(VehiclePaths.vehicles)).filter { !$0.hasPrefix(".") }
    return names.sorted().map { VehicleFolder("\(path(VehiclePaths.vehicles))/\($0)") }
  }

  // MARK: - Keys

  /// The operator's private keys.
  package struct Keys: Sendable {
    /// Signs tokens and codes.
    package let present: SigningKey
    /// Not in use yet.
    package let next: SigningKey?
    /// Its tokens are still valid, and it signs the notices.
    package let previous: SigningKey?

    /// The valid keys, the present one first.
    package var counting: [VerificationKey] {
      var keys: [VerificationKey] = []
      for key in [present, next, previous].compactMap({ $0?.verificationKey }) where !keys.contains(key) {
        keys.append(key)
      }
      return keys
    }

    /// A vehicle that has missed everything since the change began knows only the oldest key.
    var signingNotices: SigningKey { previous ?? present }
  }

  /// Throws if there are no operator's keys.
  private func checkPresent() throws(LedgerError) {
    guard Files.exists(path(VehiclePaths.tokenKey)) else { throw .noOperator(path) }
  }

  package func keys() throws -> Keys {
    try checkPresent()
    func key(_ name: String) throws -> SigningKey? {
      Files.exists(path(name)) ? try KeyFile.signingKey(path(name)) : nil
    }
    return Keys(
      present: try KeyFile.signingKey(path(VehiclePaths.tokenKey)), next: try key(VehiclePaths.nextKey),
      previous: try key(VehiclePaths.previousKey))
  }

  /// The stage of a key change.
  package enum KeyChange: Sendable {
    /// The next key is listed beside the present one, which still signs.
    case announced(Thumbprint)
    /// The former next key signs now; the previous key is still valid.
    case switched(Thumbprint)
  }

  /// Takes the next step of a key change. Notices must then tell the vehicles.
  ///
  /// - Parameter force: lets the next key sign even if a vehicle has not confirmed that key by an event.
  /// - Throws: `notAnnounced` if riders might get tokens that their vehicle does not obey.
  package func rotateKeys(now: Int64, force: Bool) throws -> KeyChange {
    let keys = try keys()
    guard let next = keys.next else {
      guard keys.previous == nil else { throw LedgerError.stillChanging(path) }
      let key = SigningKey()
      try Files.replaceForOwner(path(VehiclePaths.announced), with: "\(ledger().sequence)\n".utf8, mode: 0o600)
      try Files.replaceForOwner(path(VehiclePaths.nextKey), with: (key.jwk.text + "\n").utf8, mode: 0o600)
      return .announced(key.verificationKey.thumbprint)
    }
    let unaware = force ? [] : try unaware()
    guard unaware.isEmpty else { throw LedgerError.notAnnounced(unaware, path) }
    // After a crash between these two writes, the first is repeated with the same content.
    try Files.replaceForOwner(path(VehiclePaths.previousKey), with: (keys.present.jwk.text + "\n").utf8, mode: 0o600)
    // By this notice, riders who know only the previous key learn the present one.
    let handover = path(VehiclePaths.handover)
    try Files.createFolderForOwner(handover, mode: 0o700)
    for vehicle in try vehicles() {
      let uuid = try vehicle.readVehicleFile().vehicle.uuid
      let notice = try change {
        $0.notice(for: uuid, keys: [next.verificationKey, keys.present.verificationKey], now: now)
      }
      try Files.replaceForOwner(
        "\(handover)/\(uuid).jwt", with: notice.signed(by: keys.present).utf8, mode: 0o600)
    }
    try rotateEventKey()
    _ = try check("replace", path(VehiclePaths.tokenKey)) {
      rename(path(VehiclePaths.nextKey), path(VehiclePaths.tokenKey))
    }
    try StagingFolder.synchronize(path(VehiclePaths.operator))
    return .switched(next.verificationKey.thumbprint)
  }

  /// The vehicles that have not confirmed by an event that they have a notice with the next key.
  private func unaware() throws -> [String] {
    let file = path(VehiclePaths.announced)
    var announced: Int64 = 0
    // A change that an older program began has no such file.
    if Files.exists(file) {
      let text = String(decoding: try Files.readRegular(file), as: UTF8.self)
      guard let number = Int64(text.filter { $0 != "\n" }) else { throw LedgerError.damaged(file) }
      announced = number
    }
    return try vehicles().compactMap { folder in
      let vehicle = try folder.readVehicleFile().vehicle
      let archive = archive(of: vehicle.uuid)
      var isTold = false
      if archive.exists { try archive.read { if $0.event.content.notice ?? -1 > announced { isTold = true } } }
      return isTold ? nil : vehicle.name
    }
  }

  /// The end of a key change.
  package struct Retirement: Sendable {
    /// The last notices that the old key signs; they revoke the old key.
    package let letters: [Letter]
    /// The vehicles that have never sent an event: it is unknown whether they have the present key.
    package let unheard: [String]
    /// The vehicles that send events, but have not confirmed the present key.
    package let unconfirmed: [String]
    /// The riders whose last tokens are now void.
    package let lockedOut: [String]
  }

  /// Ends a key change: the previous key is no longer valid.
  ///
  /// - Parameters:
  ///   - force: retires the old key even if its tokens are still valid, or if a vehicle has not confirmed the present
  ///     key by an event.
  ///   - unheard: whether to accept vehicles from before the change that have never sent an event.
  /// - Throws: `tokensLast` if that would lock riders out, `notTold` if a vehicle might then obey no key.
  package func retireKey(
    now: Int64, force: Bool, unheard isAllowed: Bool = true
  ) throws -> Retirement {
    let keys = try keys()
    guard let previous = keys.previous, keys.next == nil else { throw LedgerError.nothingToRetire(path) }
    let name = previous.verificationKey.thumbprint
    let tokens = try ledger().current(at: now)
    // A rider with another valid token for the same device and vehicle, signed by another key, is not locked out.
    let riders = Set(
      tokens.filter { old in
        old.key == name
          && !tokens.contains { $0.key != name && $0.device == old.device && $0.vehicle == old.vehicle }
      }.map(\.rider)
    ).sorted()
    guard force || riders.isEmpty else { throw LedgerError.tokensLast(riders) }
    let (untold, unheard) = try untold(keys, unheard: isAllowed)
    guard force || untold.isEmpty else { throw LedgerError.notTold(untold, path) }
    let letters = try letters(by: previous, listing: [keys.present.verificationKey], now: now)
    for letter in letters { try letter.checkSize() }
    try retireEventKey()
    _ = try check("remove", path(VehiclePaths.previousKey)) { unlink(path(VehiclePaths.previousKey)) }
    return Retirement(letters: letters, unheard: unheard, unconfirmed: untold, lockedOut: riders)
  }

  /// The vehicles that have not confirmed a notice with the present key, and those that never send events.
  private func untold(_ keys: Keys, unheard isAllowed: Bool) throws -> (untold: [String], unheard: [String]) {
    var (untold, unheard): ([String], [String]) = ([], [])
    for folder in try vehicles() {
      let vehicle = try folder.readVehicleFile().vehicle
      let file = path("\(VehiclePaths.handover)/\(vehicle.uuid).jwt")
      let archive = archive(of: vehicle.uuid)
      guard archive.exists, Files.exists(file) else {
        // A vehicle that was added after the change has no handover, and needs none.
        if !isAllowed, Files.exists(file) { untold.append(vehicle.name) } else { unheard.append(vehicle.name) }
        continue
      }
      let handover = try about(file) {
        try Notice.read(Array(KeyFile.token(file).utf8), verifiedBy: keys.counting)?.sequence ?? 0
      }
      // Notices after the handover list the present key too.
      var isTold = false
      try archive.read { if $0.event.content.notice ?? -1 > handover { isTold = true } }
      if !isTold { untold.append(vehicle.name) }
    }
    return (untold, unheard)
  }

  // MARK: - The ledger

  package func ledger() throws -> Ledger {
    let file = path(VehiclePaths.ledger)
    try checkPresent()
    guard Files.exists(file) else { return try firstLedger() }
    let bytes = try Files.readRegular(file, limit: 1 << 26)
    do throws(Ledger.Damage) { return try Ledger(parsing: bytes) } catch { throw LedgerError.damaged(file) }
  }

  /// Changes the ledger, one program at a time.
  @discardableResult
  func change<Result>(_ body: (inout Ledger) throws -> Result) throws -> Result {
    try alone(in: VehiclePaths.operator) {
      var ledger = try ledger()
      let result = try body(&ledger)
      try Files.replaceForOwner(path(VehiclePaths.ledger), with: ledger.text.utf8, mode: 0o600)
      return result
    }
  }

  /// Reads and writes while no other program does so in that folder. Of two simultaneous runs, the second one reads
  /// what the first has written.
  func alone<Result>(in name: String, _ body: () throws -> Result) throws -> Result {
    let folder = path(name)
    let lock = try Descriptor.open(folder, O_RDONLY | O_DIRECTORY)
    let number = lock.number
    _ = try check("lock", folder) { flock(number, LOCK_EX) }
    defer { withExtendedLifetime(lock) {} }
    return try body()
  }

  /// For a folder from before ledgers: the tokens that are still in the riders' folders.
  private func firstLedger() throws -> Ledger {
    var ledger = Ledger()
    let key = try keys().present.verificationKey
    let riders = path(VehiclePaths.riders)
    guard Files.exists(riders) else { return ledger }
    for rider in try Files.names(in: riders).sorted() where !rider.hasPrefix(".") {
      let file = "\(riders)/\(rider)/\(RiderPaths.token)"
      guard Files.exists(file), let token = try? Token(verifying: KeyFile.token(file), by: key) else { continue }
      ledger.note(token, key: key.thumbprint)
    }
    return ledger
  }

  func note(_ token: Token, by key: SigningKey, _ certificate: Ledger.IssuedNumber) throws {
    try change { $0.note(token, key: key.verificationKey.thumbprint, certificate: certificate) }
  }

  /// Revokes subjects that have not ended. If all of them were revoked earlier, the broker's list is written again and
  /// they can be announced again, because an interrupted run may have told nobody.
  ///
  /// - Returns: the revoked tokens, and whether the broker has a new list of certificates to refuse.
  /// - Throws: `nothingToRevoke`.
  package func revoke(
    _ subjects: [Notice.Subject], now: Int64
  ) throws -> (entries: [Ledger.Entry], isListNew: Bool) {
    let (entries, isListNew) = try change { ledger in
      let before = ledger.revokedCertificates
      let entries = subjects.flatMap { ledger.withdraw($0, now: now) }
      if !entries.isEmpty { return (entries, ledger.revokedCertificates != before) }
      let earlier = subjects.flatMap { ledger.withdrawn($0, now: now) }
      guard !earlier.isEmpty else { throw LedgerError.nothingToRevoke(path) }
      return (earlier, !ledger.revokedCertificates.isEmpty)
    }
    if isListNew { try writeRevocationList(now: now) }
    return (entries, isListNew)
  }

  /// Writes the list of certificates that the broker must refuse.
  func writeRevocationList(now: Int64) throws {
    try alone(in: VehiclePaths.tls) { try writeRevocations(now: now) }
  }

  private func writeRevocations(now: Int64) throws {
    let revoked = try ledger().revokedCertificates.filter { $0.certificate.end > now }
    let authority = try VehicleFolder(path).readAuthority()
    let pem = try about(path(VehiclePaths.revocationList)) {
      try authority.revocationList(revoked.map { ($0.certificate.number, $0.since) }, now: now).pem()
    }
    try Files.replaceForOwner(path(VehiclePaths.revocationList), with: pem, mode: 0o644)
    // RabbitMQ finds it by the authority's name.
    if isFleet {
      try Files.replaceForOwner(
        path("\(VehiclePaths.tls)/\(authority.certificate.revocationListName)"), with: pem, mode: 0o644)
    }
  }

  // MARK: - Notices

  /// A vehicle's notice, to be published.
  package struct Letter: Sendable {
    package let vehicle: Vehicle
    package let topic: TopicPrefix
    package let broker: Broker
    package let sequence: Int64
    package let text: String
    let revocations: Int

    /// Throws if vehicles would reject the notice for its size.
    func checkSize() throws(LedgerError) {
      guard text.utf8.count <= Notice.maximumSize else { throw .noticeTooLarge(revocations) }
    }
  }

  /// New notices.
  ///
  /// - Parameter vehicles: the recipients; nil for all vehicles.
  package func letters(to vehicles: Set<UUID>? = nil, now: Int64) throws -> [Letter] {
    let keys = try keys()
    return try letters(to: vehicles, by: keys.signingNotices, listing: keys.counting, now: now)
  }

  /// A new notice for a vehicle.
  func letter(for folder: VehicleFolder, now: Int64) throws -> Letter {
    let keys = try keys()
    return try letter(for: folder, by: keys.signingNotices, listing: keys.counting, now: now)
  }

  private func letters(
    to wanted: Set<UUID>? = nil, by key: SigningKey, listing keys: [VerificationKey], now: Int64
  ) throws -> [Letter] {
    try vehicles().compactMap { folder in
      if let wanted, try !wanted.contains(folder.readVehicleFile().vehicle.uuid) { return nil }
      return try letter(for: folder, by: key, listing: keys, now: now)
    }
  }

  private func letter(
    for folder: VehicleFolder, by key: SigningKey, listing keys: [VerificationKey], now: Int64
  ) throws -> Letter {
    let file = try folder.readVehicleFile()
    let topic = try folder.present(file.topic, "topic")
    let broker = try folder.present(file.broker, "[broker]")
    let (eventKey, acknowledged) = (try eventKey().encryptionKey, try archive(of: file.vehicle.uuid).last()?.place)
    let notice = try change {
      $0.notice(for: file.vehicle.uuid, keys: keys, eventKey: eventKey, acknowledged: acknowledged, now: now)
    }
    return Letter(
      vehicle: file.vehicle, topic: topic, broker: asOperator(broker, try identity(now: now)),
      sequence: notice.sequence, text: notice.signed(by: key), revocations: notice.revoked.count)
  }

  /// A vehicle's broker, with the operator's identity.
  func asOperator(_ broker: Broker, _ identity: Broker.Identity) -> Broker {
    Broker(
      host: broker.host, port: broker.port,
      tls: .init(authority: path(VehiclePaths.authorityCertificate), identity: identity))
  }

  /// The operator's identity at the broker. Creates it in a folder that is older than notices.
  func identity(now: Int64) throws -> Broker.Identity {
    let (certificate, key) = (path(VehiclePaths.operatorCertificate), path(VehiclePaths.operatorKey))
    if !Files.exists(certificate) {
      let authority = try VehicleFolder(path).readAuthority()
      let new = try about(certificate) { try PrivateKey() }
      let files = try about(certificate) {
        (try authority.issue(.operator, to: new, now: now).pem(), try new.pem())
      }
      try Files.replaceForOwner(key, with: files.1, mode: 0o600)
      try Files.replaceForOwner(certificate, with: files.0, mode: 0o644)
    }
    return Broker.Identity(certificate: certificate, key: key)
  }
}

/// Why an operator's folder was left unchanged, or why a vehicle was not told.
package enum LedgerError: Failure, Equatable {
  case damaged(String)
  /// No valid subject has that name.
  case nothingToRevoke(String)
  case noticeTooLarge(Int)
  /// Every token for the device is refused until the device's last token has ended.
  case deviceRevoked(Thumbprint)
  /// A new key was requested, but the previous one is still valid.
  case stillChanging(String)
  case nothingToRetire(String)
  /// The riders whose tokens the key has signed.
  case tokensLast([String])
  /// The vehicles that have not confirmed a notice with the present key.
  case notTold([String], String)
  /// The vehicles that have not confirmed a notice with the next key.
  case notAnnounced([String], String)
  /// The broker accepted the notice, but does not keep it.
  case notKept(String)
  case noAnswer(String)
  /// The folder has no keys for signing.
  case noOperator(String)
  /// The folder does not belong to an operator of several vehicles.
  case notFleet(String)
  /// A vehicle of that folder has the same name, UUID or topic.
  case taken(String)
  /// Another run is creating this operator, or was interrupted.
  case interrupted(String)
  /// Something is already at the place of the new operator.
  case inTheWay(String)

  package var exitStatus: ExitStatus {
    switch self {
    case .damaged: .badData
    case .nothingToRevoke, .noticeTooLarge, .deviceRevoked, .stillChanging, .nothingToRetire, .tokensLast, .notTold,
      .notAnnounced:
      .failure
    case .notKept, .noAnswer: .unavailable
    case .noOperator, .notFleet: .noInput
    case .taken: .usage
    case .inTheWay, .interrupted: .failure
    }
  }

  package var description: String {
    switch self {
    case .damaged(let path): "\(path) is damaged: nothing was changed"
    case .nothingToRevoke: "no unexpired token matches"
    case .noticeTooLarge(let count): "\(count) revocations do not fit into one notice"
    case .deviceRevoked(let device): "the device \(device.grouped) is revoked"
    case .stillChanging: "the key before the present one still counts"
    case .nothingToRetire: "there is no old key to retire"
    case .tokensLast(let riders): "riders would be locked out: \(riders.joined(separator: ", "))"
    case .notTold(let vehicles, _):
      "not known to have the present key: \(printable(vehicles.joined(separator: ", ")))"
    case .notAnnounced(let vehicles, _):
      "not known to have the next key: \(printable(vehicles.joined(separator: ", ")))"
    case .notKept(let broker): "\(broker) does not keep the notice: its access list does not let the operator write"
    case .noAnswer(let broker): "\(broker) has not confirmed the notice"
    case .noOperator(let path): "\(path) is not an operator's folder: \(path)/\(VehiclePaths.tokenKey) is missing"
    case .notFleet(let path): "\(path) is not the folder of an operator of several vehicles"
    case .taken(let path): "\(path) is a vehicle of this operator with the same name, UUID or topic"
    case .inTheWay(let path): "\(path) already exists"
    case .interrupted(let path): "\(path) exists: making the operator was interrupted, or is still running"
    }
  }

  package var hint: String? {
    switch self {
    case .damaged: "take the file from a backup"
    case .nothingToRevoke(let folder): "`\(Self.command("tokens", folder))` lists them"
    case .noticeTooLarge: "revoke devices instead of tokens, or change the key: `stepctl operator keys rotate`"
    case .deviceRevoked: "the rider can ask with new keys: remove ~/.config/stepctl/device there, and enroll again"
    case .stillChanging(let folder): "`\(Self.command("keys", "retire", folder))` ends that change first"
    case .nothingToRetire(let folder): "`\(Self.command("keys", "rotate", folder))` begins a change"
    case .tokensLast: "give them new tokens, wait until the old ones have ended, or use --force"
    case .notTold(_, let folder):
      "`\(Self.command("log", folder))` asks them; a vehicle that knows only the old key obeys nobody once it is retired"
    case .notAnnounced(_, let folder):
      "`\(Self.command("log", folder))` asks them; a vehicle without that key would refuse new tokens; --force goes on"
    case .notKept: "run `stepctl provision update DIR`, which writes the access list, then restart the broker"
    case .noAnswer: "`stepctl operator publish` tries again"
    case .noOperator(let path):
      OperatorPlace(Files.resolve("../..", in: path)).isFleet
        ? "give its operator's folder: \(shellWord(Files.resolve("../..", in: path)))"
        : "give the folder with operator/, on the operator's computer: a vehicle's, or that of `stepctl operator init`"
    case .notFleet: "`stepctl operator init` makes one"
    case .taken: "give the new vehicle another folder, name, UUID and topic; --force replaces one of the same folder"
    case .inTheWay: "choose another folder; nothing was changed"
    case .interrupted(let path):
      "if no other `stepctl operator init` is running, remove it: \(shellCommand("rm", "-r", path))"
    }
  }

  private static func command(_ words: String...) -> String {
    (["stepctl", "operator"] + words).map(shellWord).joined(separator: " ")
  }
}
