import Access
import Certificates
import Domain
import Encoding
import FileFormats
import Glibc
import MQTT
package import StepProtocol
import SystemIO

/// The folder that an operator works from. Every operator has one key, one authority and one broker, for one vehicle or
/// for many. The vehicle of an operator of one is in this folder itself; other vehicles have folders in `vehicles`.
///
///     broker.json                      where the broker is
///     mosquitto.conf, mosquitto.acl    the broker
///     mosquitto-limits.conf            the broker's unit, for systemd
///     mosquitto.nft                    who may connect to it how often, for nftables
///     data/                            what the broker keeps across a restart
///     tls/                             certificates, and the broker's key
///     vehicles/NAME/                   a vehicle's file, without anything private
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

  /// The folders with the vehicles' files: this one, if it is a vehicle's, and the others in the order of their names.
  package func vehicles() throws -> [VehicleFolder] {
    guard Files.exists(path(VehiclePaths.vehicles)) else { return [VehicleFolder(path)] }
    let own = Files.exists(path(VehiclePaths.vehicle)) ? [VehicleFolder(path)] : []
    let names = try Files.names(in: path(VehiclePaths.vehicles)).filter { !$0.hasPrefix(".") }
    return own + names.sorted().map(record)
  }

  /// The folder of a vehicle's public part.
  package func record(of name: String) -> VehicleFolder { VehicleFolder("\(path(VehiclePaths.vehicles))/\(name)") }

  /// Throws if there are no operator's keys.
  func checkPresent() throws(LedgerError) {
    guard Files.exists(path(VehiclePaths.tokenKey)) else { throw .noOperator(path) }
  }

  /// Reads and writes while no other program does so. Of two simultaneous runs, the second one reads what the first has
  /// written.
  func alone<Result>(_ body: () throws -> Result) throws -> Result {
    let folder = path(VehiclePaths.operator)
    let lock = try Descriptor.open(folder, O_RDONLY | O_DIRECTORY)
    let number = lock.number
    _ = try check("lock", folder) { flock(number, LOCK_EX) }
    defer { withExtendedLifetime(lock) {} }
    return try body()
  }

  // MARK: - The ledger

  package func ledger() throws -> Ledger {
    let file = path(VehiclePaths.ledger)
    try checkPresent()
    guard Files.exists(file) else { throw LedgerError.missing(file) }
    let bytes = try Files.readRegular(file, limit: 1 << 26)
    do throws(Ledger.Damage) { return try Ledger(parsing: bytes) } catch { throw LedgerError.damaged(file) }
  }

  /// Changes the ledger, one program at a time.
  @discardableResult
  func change<Result>(_ body: (inout Ledger) throws -> Result) throws -> Result {
    try alone {
      var ledger = try ledger()
      let result = try body(&ledger)
      try Files.replaceForOwner(path(VehiclePaths.ledger), with: ledger.text.utf8, mode: 0o600)
      return result
    }
  }

  /// Revokes subjects that have not ended. If all of them were revoked earlier, the broker's list is written again and
  /// they can be announced again, because an interrupted run may have told nobody.
  ///
  /// - Returns: the revoked tokens, and whether the broker has a new list of certificates to refuse.
  /// - Throws: `nothingToRevoke`.
  package func revoke(
    _ subjects: [Notice.Subject], now: Int64
  ) throws -> (entries: [Ledger.Entry], isListNew: Bool) {
    try checkPresent()
    try checkClock(now)
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
    try alone { try writeRevocations(now: now) }
  }

  private func writeRevocations(now: Int64) throws {
    let revoked = try ledger().revokedCertificates.filter { $0.certificate.end > now }
    let authority = try VehicleFolder(path).readAuthority()
    let pem = try about(path(VehiclePaths.revocationList)) {
      try authority.revocationList(revoked.map { ($0.certificate.number, $0.since) }, now: now).pem()
    }
    try Files.replaceForOwner(path(VehiclePaths.revocationList), with: pem, mode: 0o644)
    // RabbitMQ finds it by the authority's name.
    try Files.replaceForOwner(
      path("\(VehiclePaths.tls)/\(authority.certificate.revocationListName)"), with: pem, mode: 0o644)
  }
}
