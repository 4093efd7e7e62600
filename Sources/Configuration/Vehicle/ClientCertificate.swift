/// Who one is to a broker: the paths of two PEM files.
package struct ClientCertificate: Equatable, Sendable {
  package var cert: String
  /// The private key; nobody but its owner may read it.
  package var key: String

  package init(cert: String, key: String) {
    self.cert = cert
    self.key = key
  }
}
