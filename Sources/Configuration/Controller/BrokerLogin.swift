/// Who the controller is to its broker, and where that is when the vehicle file does not say what holds for it.
package struct BrokerLogin: Equatable, Sendable {
  package var certificate: ClientCertificate
  /// These three take the place of the vehicle file's: on the vehicle, the broker may be `localhost`.
  package var host: String?
  package var port: UInt16?
  package var ca: String?

  package init(certificate: ClientCertificate, host: String? = nil, port: UInt16? = nil, ca: String? = nil) {
    self.certificate = certificate
    self.host = host
    self.port = port
    self.ca = ca
  }

  init(_ table: TOMLTable<Broker.Key>) throws(ConfigurationError) {
    certificate = ClientCertificate(
      cert: try table.required(.cert, table.path), key: try table.required(.key, table.path))
    host = try table.optional(.host, .text)
    port = try table.optional(.port, .port)
    ca = try table.optional(.ca, table.path)
  }
}
