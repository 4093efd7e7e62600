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
    /// The controller of one of several vehicles, which runs from another folder.
    case controller(elsewhere: Bool)
    /// The rider of a folder, which may have been replaced since.
    case rider(String)
  }

  /// A certificate that the operator's authority has issued and that is kept here.
  package struct IssuedCertificate: Sendable, Equatable {
    /// The path of its file, from the operator's folder.
    package let name: String
    package let holder: Holder
    /// Unix time.
    package let end: Int64
  }

  /// All certificates here, the earliest end first. Riders with enrolled devices keep their own certificates.
  package func certificates() throws -> [IssuedCertificate] {
    try roles().map { name, _, holder in
      IssuedCertificate(name: name, holder: holder, end: try read(name) { try $0.end() })
    }.sorted { ($0.end, $0.name) < ($1.end, $1.name) }
  }

  /// Replaces a certificate by a new one for the same key.
  ///
  /// - Parameters:
  ///   - name: from `certificates`.
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
    try Files.replaceForOwner(path(name), with: pem, mode: 0o644)
    return end
  }

  private func read<Result>(_ name: String, _ body: (borrowing Certificate) throws -> Result) throws -> Result {
    let certificate = try VehicleFolder(path).readCertificate(name)
    return try about(path(name)) { try body(certificate) }
  }

  private typealias Role = (name: String, role: CertificateRole, holder: Holder)

  private func roles() throws -> [Role] {
    var roles: [Role] = [(VehiclePaths.operatorCertificate, .operator, .operator)]
    if isFleet {
      roles.append((VehiclePaths.brokerCertificate, .broker(try broker().host), .broker))
      for vehicle in try vehicles() {
        let (uuid, folder) = (try vehicle.readVehicleFile().vehicle.uuid, "\(VehiclePaths.vehicles)/\(vehicle.name)/")
        let controller = folder + VehiclePaths.controllerCertificate
        roles.append((controller, .controller(of: uuid), .controller(elsewhere: true)))
        roles += try riders(in: folder, of: uuid)
      }
    } else {
      roles.append((VehiclePaths.brokerCertificate, .broker(try VehicleFolder(path).readBroker().host), .broker))
      roles.append((VehiclePaths.controllerCertificate, .controller(of: nil), .controller(elsewhere: false)))
      roles += try riders(in: "", of: nil)
    }
    return roles.filter { Files.exists(path($0.name)) }
  }

  /// - Parameter folder: a vehicle's, relative to this one.
  private func riders(in folder: String, of vehicle: UUID?) throws -> [Role] {
    let riders = folder + VehiclePaths.riders
    guard Files.exists(path(riders)) else { return [] }
    return try Files.names(in: path(riders)).sorted().filter { !$0.hasPrefix(".") }.map { rider in
      ("\(riders)/\(rider)/\(RiderPaths.certificate)", .rider(of: vehicle), .rider(rider))
    }
  }
}
