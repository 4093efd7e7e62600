import Certificates
import Domain

/// The certificate authority of an operator. The broker and its clients trust no other authority.
struct CertificateAuthority: ~Copyable {
  let certificate: Certificate
  let key: PrivateKey
  /// The file of the certificate, for errors.
  private let path: String

  private static let secondsADay: Int64 = 86_400

  /// A new authority.
  ///
  /// - Parameters:
  ///   - name: whose authority it is: a vehicle's name, or what several vehicles are called.
  ///   - path: the file of its certificate, for errors.
  /// - Throws: `ClockError`, `OpenSSLError`.
  init(name: String, at path: String, now: Int64) throws {
    let role = CertificateRole.authority(name: name)
    let validity = try IssueTime(now).validity(lasting: role.days * Self.secondsADay)
    let key = try PrivateKey()
    certificate = try Certificate(selfSigned: role.content, by: key, validity: validity)
    self.key = key
    self.path = path
  }

  /// An existing authority. Throws if the key does not belong to the certificate.
  ///
  /// - Parameter path: the file of the certificate, for errors.
  init(certificate: consuming Certificate, key: consuming PrivateKey, at path: String) throws(OpenSSLError) {
    try certificate.require(isFor: key, to: "issue certificates")
    self.certificate = certificate
    self.key = key
    self.path = path
  }

  /// A time at which the authority issues something.
  ///
  /// - Throws: `ClockError`, `OpenSSLError`.
  func time(_ now: Int64) throws -> IssueTime { try IssueTime(now, of: certificate, at: path) }

  /// Issues a certificate. It lasts as long as usual for its role, or longer if asked, but never longer than the
  /// authority's own.
  ///
  /// - Parameters:
  ///   - days: the least validity; nil for the usual one.
  ///   - lastingUntil: Unix time; not beyond the end of the authority's certificate.
  /// - Throws: `ClockError`, `OpenSSLError`.
  func issue(
    _ role: CertificateRole, to key: borrowing PrivateKey, now: Int64, days: Int64? = nil, lastingUntil: Int64 = 0
  ) throws -> Certificate {
    try issue(role, to: key.lent, now: now, days: days, lastingUntil: lastingUntil)
  }

  /// Issues a certificate for the key in a request. Everything else in the request is ignored.
  func issue(
    _ role: CertificateRole, for request: borrowing CertificateRequest, now: Int64, days: Int64? = nil,
    lastingUntil: Int64
  ) throws -> Certificate {
    try issue(role, to: request.lentKey, now: now, days: days, lastingUntil: lastingUntil)
  }

  /// Issues a certificate for the key of an older certificate.
  func issue(
    _ role: CertificateRole, renewing old: borrowing Certificate, now: Int64
  ) throws -> Certificate {
    try issue(role, to: old.lentKey(), now: now, lastingUntil: 0)
  }

  /// The list of certificates that a broker no longer accepts.
  ///
  /// - Parameter revoked: each with the time of its revocation, Unix time.
  /// - Throws: `ClockError`, `OpenSSLError`.
  func revocationList(
    _ revoked: [(number: SerialNumber, since: Int64)], now: Int64
  ) throws -> RevocationList {
    try RevocationList(of: certificate, signedBy: key, revoked, now: time(now).now)
  }

  private func issue(
    _ role: CertificateRole, to key: LentKey, now: Int64, days: Int64? = nil, lastingUntil: Int64
  ) throws -> Certificate {
    let validity = try time(now).validity(lasting: (days ?? role.days) * Self.secondsADay, until: lastingUntil)
    return try Certificate(role.content, to: key, validity: validity, signer: self.key, issuer: certificate)
  }
}

/// The purpose of a certificate. It determines all of the content except key, serial number and time.
enum CertificateRole {
  /// Issues the other certificates, but not those of authorities.
  case authority(name: String)
  case broker(BrokerHost)
  /// Who uses the broker.
  case client(BrokerClient)

  /// The whole subject. The broker knows a client by it.
  var commonName: String {
    switch self {
    case .authority(let name): Self.truncated("stepctl CA for \(name)")
    case .broker: "broker"
    case .client(let client): client.name
    }
  }

  /// Days of validity from the day of issue.
  var days: Int64 {
    switch self {
    case .authority: 3650
    case .broker, .client(.controller), .client(.operator): 825
    case .client(.rider), .client(.watcher): 365
    }
  }

  /// What the certificate says.
  var content: CertificateContent { CertificateContent(commonName: commonName, use: use) }

  private var use: CertificateUse {
    switch self {
    case .authority: .authority
    case .broker(let host): .server(alternativeNames: host.alternativeNames)
    case .client: .client
    }
  }

  /// A common name has at most 64 characters (RFC 5280 A.1, ub-common-name). Cuts only between visible characters.
  private static func truncated(_ text: String) -> String {
    var text = text
    while text.unicodeScalars.count > 64 { text.removeLast() }
    return text
  }
}
