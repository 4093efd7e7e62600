import Certificates
import Domain
import FileFormats
import Glibc
import MQTT
import SystemIO

extension OperatorPlace {
  /// The user of a certificate.
  package enum Holder: Sendable, Equatable {
    case `operator`, broker
    /// A controller, which may run from another folder.
    case controller(elsewhere: Bool)
  }

  /// A certificate that the operator's authority has issued and that is kept here.
  package struct IssuedCertificate: Sendable, Equatable {
    /// The path of its file, from the operator's folder.
    package let name: String
    package let holder: Holder
    /// Unix time.
    package let end: Int64
  }

  /// A time at which this operator issues something.
  ///
  /// - Parameter now: Unix time.
  /// - Throws: `ClockError`.
  func issueTime(_ now: Int64) throws -> IssueTime {
    let file = path(VehiclePaths.authorityCertificate)
    let authority = try VehicleFolder(path).readCertificate(VehiclePaths.authorityCertificate)
    return try about(file) { try IssueTime(now, of: authority, at: file) }
  }

  /// Throws `ClockError` if this operator issues nothing at the time.
  ///
  /// - Parameter now: Unix time.
  package func checkClock(_ now: Int64) throws { _ = try issueTime(now) }

  /// The certificates of the operator, the broker and the controllers, the earliest end first. A rider's ends no
  /// earlier than the rider's access, and is issued with it, so that the ledger knows it and revoking the access
  /// revokes it.
  package func certificates() throws -> [IssuedCertificate] {
    try roles().map { name, _, holder in
      IssuedCertificate(name: name, holder: holder, end: try read(name) { try $0.end() })
    }.sorted { ($0.end, $0.name) < ($1.end, $1.name) }
  }

  /// Replaces a certificate by a new one for the same key.
  ///
  /// - Parameters:
  ///   - name: from `certificates`.
  ///   - address: the broker's; nil for the recorded one.
  ///   - now: Unix time, from which it is valid.
  /// - Returns: when it ends, Unix time.
  package func renewCertificate(_ name: String, at address: BrokerAddress? = nil, now: Int64) throws -> Int64 {
    guard let role = try roles(address).first(where: { $0.name == name })?.role else {
      throw SystemError("open", path(name), code: ENOENT)
    }
    let authority = try VehicleFolder(path).readAuthority()
    let (pem, end) = try read(name) { old in
      let certificate = try authority.issue(role, renewing: old, now: now)
      return (try certificate.pem(), try certificate.end())
    }
    try Files.replaceForOwner(path(name), with: pem, mode: 0o644)
    return end
  }

  private func read<Result>(_ name: String, _ body: (borrowing Certificate) throws -> Result) throws -> Result {
    let certificate = try VehicleFolder(path).readCertificate(name)
    return try about(path(name)) { try body(certificate) }
  }

  private typealias Role = (name: String, role: CertificateRole, holder: Holder)

  /// - Parameter address: the broker's; nil for the recorded one.
  private func roles(_ address: BrokerAddress? = nil) throws -> [Role] {
    var roles: [Role] = [
      (VehiclePaths.operatorCertificate, .client(.operator), .operator),
      (VehiclePaths.brokerCertificate, .broker(try (address ?? broker()).host), .broker),
    ]
    for vehicle in try vehicles() {
      let uuid = try vehicle.readVehicleFile().vehicle.uuid
      roles.append(
        (
          controllerCertificate(of: vehicle), .client(.controller(of: uuid)),
          .controller(elsewhere: vehicle.path != path)
        ))
    }
    return roles.filter { Files.exists(path($0.name)) }
  }

  /// The name of a controller's certificate, as in `certificates`.
  func controllerCertificate(of vehicle: VehicleFolder) -> String {
    name(of: VehiclePaths.controllerCertificate, in: vehicle)
  }

  /// The path of a vehicle's file from this folder.
  private func name(of file: String, in vehicle: VehicleFolder) -> String {
    vehicle.path == path ? file : "\(VehiclePaths.vehicles)/\(vehicle.name)/\(file)"
  }
}
