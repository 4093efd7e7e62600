import Configuration
import Domain
import Glibc
import MQTT
import SystemIO

extension OperatorPlace {
  /// A certificate that the operator's authority has issued, and that is kept here.
  package struct IssuedCertificate: Sendable, Equatable {
    /// The path of its file, from the operator's folder.
    package let name: String
    /// Unix time.
    package let end: Int64
  }

  /// All of them, the one that ends first is the first. Those of riders who have asked with their devices are with the
  /// riders alone.
  package func certificates() throws -> [IssuedCertificate] {
    try roles().map { name, _ in
      IssuedCertificate(name: name, end: try read(name) { try $0.end() })
    }.sorted { ($0.end, $0.name) < ($1.end, $1.name) }
  }

  /// Replaces a certificate by a new one for the same key.
  ///
  /// - Parameters:
  ///   - name: as `certificates` says it.
  ///   - now: Unix time, from which it is valid.
  /// - Returns: when it ends, Unix time.
  package func renewCertificate(_ name: String, now: Int64) throws -> Int64 {
    guard let role = try roles().first(where: { $0.name == name })?.role else {
      throw SystemError("open", path(name), code: ENOENT)
    }
    let authority = try VehicleFolder(path).readAuthority()
    let (pem, end) = try read(name) { old in
      let certificate = try authority.issue(role, renewing: old, now: now)
      return (try certificate.pem(), try certificate.end())
    }
    try Files.replace(path(name), with: pem, mode: 0o644)
    return end
  }

  private func read<Result>(_ name: String, _ body: (borrowing Certificate) throws -> Result) throws -> Result {
    let certificate = try VehicleFolder(path).readCertificate(name)
    return try about(path(name)) { try body(certificate) }
  }

  private func roles() throws -> [(name: String, role: CertificateRole)] {
    var roles: [(name: String, role: CertificateRole)] = [(VehiclePaths.operatorCertificate, .operator)]
    if isFleet {
      roles.append((VehiclePaths.brokerCertificate, .broker(try broker().host)))
      for vehicle in try vehicles() {
        let uuid = try vehicle.readVehicleFile().vehicle.uuid
        roles.append(
          ("\(VehiclePaths.vehicles)/\(vehicle.name)/\(VehiclePaths.controllerCertificate)", .controller(of: uuid)))
      }
    } else {
      roles.append((VehiclePaths.brokerCertificate, .broker(try VehicleFolder(path).readBroker().host)))
      roles.append((VehiclePaths.controllerCertificate, .controller(of: nil)))
      let riders = Files.exists(path(VehiclePaths.riders)) ? try Files.names(in: path(VehiclePaths.riders)) : []
      for rider in riders.sorted() where !rider.hasPrefix(".") {
        roles.append(("\(VehiclePaths.riders)/\(rider)/\(RiderPaths.certificate)", .rider(of: nil)))
      }
    }
    return roles.filter { Files.exists(path($0.name)) }
  }
}
