import Configuration
import SystemIO

/// The folder of a vehicle: what its broker and its controller run from, and what its riders are given.
///
///     vehicle.toml                     the vehicle, for everyone
///     stepd.toml                       the controller
///     mosquitto.conf, mosquitto.acl    the broker
///     tls/                             certificates, and the keys of broker and controller
///     keys/                            the controller's keys of the protocol
///     operator/                        what certificates and tokens are signed with; need not be on the vehicle
///     riders/NAME/                     all that one rider needs, and nobody else
///
/// Only mosquitto.conf has absolute paths in it.
package struct VehicleFolder: Sendable {
  package let path: String

  /// - Parameter path: as people see it in errors; the folder need not exist yet.
  package init(_ path: String) {
    var path = path
    while path.hasSuffix("/"), path != "/" { path.removeLast() }
    self.path = path.isEmpty ? "." : path
  }

  /// A path from this folder, as the caller sees it.
  package func path(_ name: String) -> String { "\(path)/\(name)" }

  /// Throws when a run on this folder did not come to its end: what is in it may not belong together.
  func checkFinished() throws(ProvisioningError) {
    let staging = path(VehicleLayout.staging)
    if Files.exists(staging) { throw .unfinished(staging) }
  }

  func readVehicleFile() throws(ProvisioningError) -> VehicleFile {
    try rethrowing { () throws(ConfigurationError) in try VehicleFile(reading: path(VehicleLayout.vehicle)) }
  }

  /// A part that vehicle.toml had when it was made, and that somebody may have taken out.
  func present<Part>(_ part: Part?, _ name: String) throws(ProvisioningError) -> Part {
    guard let part else {
      throw .configuration(ConfigurationError(path(VehicleLayout.vehicle), "\(name) is missing"))
    }
    return part
  }

  func readCertificate(_ name: String) throws(ProvisioningError) -> Certificate {
    let path = path(name)
    let pem = try rethrowing { () throws(SystemError) in try Files.read(path) }
    return try rethrowing(about: path) { () throws(OpenSSLError) in try Certificate(pem: pem) }
  }

  func readPrivateKey(_ name: String) throws(ProvisioningError) -> PrivateKey {
    let path = path(name)
    try rethrowing { () throws(ConfigurationError) in try PrivateFile.check(path) }
    let pem = try rethrowing { () throws(SystemError) in try Files.read(path) }
    return try rethrowing(about: path) { () throws(OpenSSLError) in try PrivateKey(pem: pem) }
  }

  /// What issues the vehicle's certificates.
  func readAuthority() throws(ProvisioningError) -> CertificateAuthority {
    let certificate = try readCertificate(VehicleLayout.authorityCertificate)
    let key = try readPrivateKey(VehicleLayout.authorityKey)
    do throws(OpenSSLError) {
      return try CertificateAuthority(certificate: certificate, key: key)
    } catch {
      throw .openSSL(path(VehicleLayout.authorityKey), error)
    }
  }
}
