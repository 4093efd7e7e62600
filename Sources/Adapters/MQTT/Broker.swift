/// An MQTT broker: its address, and the credentials of both sides.
public struct Broker: Hashable, Sendable {
  /// The port that IANA registered for MQTT over TLS (secure-mqtt).
  public static let standardPort: UInt16 = 8883

  /// A host name or a numeric address; with TLS the broker's certificate must contain exactly this.
  public var host: String
  /// 1 to 65535.
  public var port: UInt16
  /// Nil for an unencrypted connection.
  public var tls: TLS?

  public init(host: String, port: UInt16, tls: TLS?) {
    self.host = host
    self.port = port
    self.tls = tls
  }

  /// Reads the TLS files, as connecting would.
  ///
  /// - Throws: `unusableFile` for the first unusable file.
  package func check() throws(MQTTError) {
    try tls?.checkReadable()
    if let tls { _ = try TLSContext(tls, self) }
  }

  /// Files in PEM for mutual TLS, version 1.2 or later.
  public struct TLS: Hashable, Sendable {
    /// The certificate authorities, one of which must have issued the broker's certificate.
    public var authority: String
    /// The client's certificate with its chain, and its private key; nil for none.
    public var identity: Identity?

    public init(authority: String, identity: Identity?) {
      self.authority = authority
      self.identity = identity
    }
  }

  /// A client's identity: the paths of its certificate and its private key, PEM.
  public struct Identity: Hashable, Sendable {
    public var certificate: String
    public var key: String

    public init(certificate: String, key: String) {
      self.certificate = certificate
      self.key = key
    }
  }
}
