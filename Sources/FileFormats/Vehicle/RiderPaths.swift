/// The names in a rider's folder.
package enum RiderPaths {
  package static let vehicle = "vehicle.toml"
  package static let authorityCertificate = "ca.pem"
  package static let certificate = "rider.pem"
  package static let key = "rider.key"
  package static let deviceKey = "device.jwk"
  package static let token = "token.jwt"
}
