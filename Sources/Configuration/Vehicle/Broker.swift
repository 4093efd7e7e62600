/// An MQTT broker, and the certificate authority that vouches for it.
package struct Broker: Equatable, Sendable {
  /// The port that IANA registered for MQTT over TLS (secure-mqtt).
  package static let standardPort: UInt16 = 8883

  package var host: String
  package var port: UInt16
  /// The path of a PEM file.
  package var ca: String

  package init(host: String, port: UInt16 = Broker.standardPort, ca: String) {
    self.host = host
    self.port = port
    self.ca = ca
  }
}
