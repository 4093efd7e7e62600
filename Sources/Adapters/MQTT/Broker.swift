/// An MQTT broker: where it listens, and how the two sides prove who they are.
package struct Broker: Hashable, Sendable {
  /// A host name or a numeric address; with TLS the broker's certificate must bear exactly this.
  package let host: String
  /// 1 to 65535.
  package let port: UInt16
  /// Nil for a connection in the clear.
  package let tls: TLS?

  package init(host: String, port: UInt16, tls: TLS?) {
    self.host = host
    self.port = port
    self.tls = tls
  }

  /// Reads the TLS files, as connecting would.
  ///
  /// - Throws: `unusableFile`, for the first of them that cannot serve.
  package func check() throws(MQTTError) {
    try tls?.checkReadable()
    if let tls { _ = try TLSContext(tls, self) }
  }

  /// Files in PEM for mutual TLS, version 1.2 or later.
  package struct TLS: Hashable, Sendable {
    /// The certificate authorities, one of which must have issued the broker's certificate.
    package let authority: String
    /// The client's certificate, with its chain, and the private key to it; nil for none.
    package let identity: Identity?

    package init(authority: String, identity: Identity?) {
      self.authority = authority
      self.identity = identity
    }
  }

  package struct Identity: Hashable, Sendable {
    package let certificate: String
    package let key: String

    package init(certificate: String, key: String) {
      self.certificate = certificate
      self.key = key
    }
  }
}
