/// The names in a rider's folder.
package enum RiderPaths {
  /// The folder of all riders' folders, in a vehicle's.
  package static let folder = "riders"
  package static let vehicle = "vehicle.toml"
  package static let authorityCertificate = "ca.pem"
  package static let certificate = "rider.pem"
  package static let key = "rider.key"
  package static let deviceKey = "device.jwk"
  package static let token = "token.jwt"
}
