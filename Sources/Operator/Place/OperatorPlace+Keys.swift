import Access
import Certificates
import Domain
import Encoding
import FileFormats
import Glibc
import MQTT
package import StepProtocol
import SystemIO

extension OperatorPlace {
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

  package func keys() throws -> Keys {
    try checkPresent()
    func key(_ name: String) throws -> SigningKey? {
      Files.exists(path(name)) ? try KeyFile.operatorKey(path(name)) : nil
    }
    return Keys(
      present: try KeyFile.operatorKey(path(VehiclePaths.tokenKey)), next: try key(VehiclePaths.nextKey),
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
  /// - Parameters:
  ///   - force: lets the next key sign even if a vehicle has not confirmed that key by an event.
  ///   - given: the content of a file with the next key (`KeyFile.operatorKey`), for the first step; nil to make one.
  /// - Throws: `notAnnounced` if riders might get tokens that their vehicle does not obey, `nextKeyIsKnown` if a key is
  ///   given that cannot be the next one.
  package func rotateKeys(now: Int64, force: Bool, next given: [UInt8]? = nil) throws -> KeyChange {
    let keys = try keys()
    try checkClock(now)
    guard let next = keys.next else {
      guard keys.previous == nil else { throw LedgerError.stillChanging(path) }
      let (key, content) = try given.map { (try KeyFile.operatorKey($0, "the next key"), $0) } ?? Self.newKey()
      guard key.verificationKey != keys.present.verificationKey else { throw LedgerError.nextKeyIsKnown(path) }
      try Files.replaceForOwner(path(VehiclePaths.announced), with: "\(ledger().sequence)\n".utf8, mode: 0o600)
      try Files.replaceForOwner(path(VehiclePaths.nextKey), with: content, mode: 0o600)
      return .announced(key.verificationKey.thumbprint)
    }
    guard given == nil else { throw LedgerError.nextKeyIsKnown(path) }
    let unaware = force ? [] : try unaware()
    guard unaware.isEmpty else { throw LedgerError.notAnnounced(unaware, path) }
    // After a crash between these two writes, the first is repeated with the same content. What the file has is
    // copied: the key itself may be elsewhere.
    try Files.replaceForOwner(
      path(VehiclePaths.previousKey), with: Files.readRegular(path(VehiclePaths.tokenKey)), mode: 0o600)
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

  private static func newKey() -> (SigningKey, [UInt8]) {
    let key = SigningKey()
    return (key, Array("\(key.jwk.text)\n".utf8))
  }

  /// The vehicles that have not confirmed by an event that they have a notice with the next key.
  private func unaware() throws -> [String] {
    let file = path(VehiclePaths.announced)
    let text = String(decoding: try Files.readRegular(file), as: UTF8.self)
    guard let announced = Int64(text.filter { $0 != "\n" }) else { throw LedgerError.damaged(file) }
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
    package let notices: [AddressedNotice]
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
  ///   - tokens: those that count; nil for the ledger's.
  ///   - force: retires the old key even if its tokens are still valid, or if a vehicle has not confirmed the present
  ///     key by an event.
  ///   - unheard: whether to accept vehicles from before the change that have never sent an event.
  /// - Throws: `tokensLast` if that would lock riders out, `notTold` if a vehicle might then obey no key.
  package func retireKey(
    tokens: [Ledger.Entry]? = nil, now: Int64, force: Bool, unheard isAllowed: Bool = true
  ) throws -> Retirement {
    let keys = try keys()
    try checkClock(now)
    guard let previous = keys.previous, keys.next == nil else { throw LedgerError.nothingToRetire(path) }
    let name = previous.verificationKey.thumbprint
    let tokens = try tokens ?? ledger().current(at: now)
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
    let notices = try notices(by: previous, listing: [keys.present.verificationKey], now: now)
    for notice in notices { try notice.checkSize() }
    try retireEventKey()
    _ = try check("remove", path(VehiclePaths.previousKey)) { unlink(path(VehiclePaths.previousKey)) }
    // The vehicles are told next, and from then on the old key signs nothing that they obey.
    try StagingFolder.synchronize(path(VehiclePaths.operator))
    return Retirement(notices: notices, unheard: unheard, unconfirmed: untold, lockedOut: riders)
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
}
