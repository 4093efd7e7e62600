import Certificates
import Domain

/// The certificate authority of a vehicle or of a fleet. The broker and its clients trust no other authority.
struct CertificateAuthority: ~Copyable {
  let certificate: Certificate
  let key: PrivateKey

  private static let secondsADay: Int64 = 86_400
  /// How far a reader's clock may be behind the issuer's, seconds.
  private static let leeway: Int64 = 300

  /// A new authority.
  init(vehicleName: String, now: Int64) throws(OpenSSLError) {
    let role = CertificateRole.authority(vehicleName: vehicleName)
    let key = try PrivateKey()
    let validity = now - Self.leeway...now + role.days * Self.secondsADay
    certificate = try Certificate(selfSigned: role.content, by: key, validity: validity)
    self.key = key
  }

  /// An existing authority. Throws if the key does not belong to the certificate.
  init(certificate: consuming Certificate, key: consuming PrivateKey) throws(OpenSSLError) {
    try certificate.require(isFor: key, to: "issue certificates")
    self.certificate = certificate
    self.key = key
  }

  /// Issues a certificate. It lasts as long as usual for its role, or longer if asked, but never longer than the
  /// authority's own.
  ///
  /// - Parameters:
  ///   - days: the least validity; nil for the usual one.
  ///   - lastingUntil: Unix time; not beyond the end of the authority's certificate.
  func issue(
    _ role: CertificateRole, to key: borrowing PrivateKey, now: Int64, days: Int64? = nil, lastingUntil: Int64 = 0
  ) throws(OpenSSLError) -> Certificate {
    try issue(role, to: key.lent, now: now, days: days, lastingUntil: lastingUntil)
  }

  /// Issues a certificate for the key in a request. Everything else in the request is ignored.
  func issue(
    _ role: CertificateRole, for request: borrowing CertificateRequest, now: Int64, days: Int64? = nil,
    lastingUntil: Int64
  ) throws(OpenSSLError) -> Certificate {
    try issue(role, to: request.lentKey, now: now, days: days, lastingUntil: lastingUntil)
  }

  /// Issues a certificate for the key of an older certificate.
  func issue(
    _ role: CertificateRole, renewing old: borrowing Certificate, now: Int64
  ) throws(OpenSSLError) -> Certificate {
    try issue(role, to: old.lentKey(), now: now, lastingUntil: 0)
  }

  /// The list of certificates that a broker no longer accepts.
  ///
  /// - Parameter revoked: each with the time of its revocation, Unix time.
  func revocationList(
    _ revoked: [(number: SerialNumber, since: Int64)], now: Int64
  ) throws(OpenSSLError) -> RevocationList {
    try RevocationList(of: certificate, signedBy: key, revoked, now: now)
  }

  private func issue(
    _ role: CertificateRole, to key: LentKey, now: Int64, days: Int64? = nil, lastingUntil: Int64
  ) throws(OpenSSLError) -> Certificate {
    let end = min(max(now + (days ?? role.days) * Self.secondsADay, lastingUntil), try certificate.end())
    let begin = min(now - Self.leeway, end)
    return try Certificate(role.content, to: key, validity: begin...end, signer: self.key, issuer: certificate)
  }
}

/// The purpose of a certificate. It determines all of the content except key, serial number and time.
enum CertificateRole {
  /// Issues the other certificates, but not those of authorities.
  case authority(vehicleName: String)
  case broker(BrokerHost)
  /// The controller of a vehicle. The vehicle is named if the broker serves several.
  case controller(of: UUID?)
  /// The publisher of notices.
  case `operator`
  /// Any rider of a vehicle. The vehicle is named if the broker serves several. The rider's name is in the token, which
  /// the broker cannot read.
  case rider(of: UUID?)
  /// A client that may read the status of a vehicle's steps, and nothing else.
  case watcher(of: UUID?)

  /// The whole subject. The broker's access list identifies a client by it.
  var commonName: String {
    switch self {
    case .authority(let name): Self.truncated("stepctl CA for \(name)")
    case .broker: "broker"
    case .controller(let vehicle): Self.name("controller", vehicle)
    case .operator: "operator"
    case .rider(let vehicle): Self.name("rider", vehicle)
    case .watcher(let vehicle): Self.name("watcher", vehicle)
    }
  }

  /// The name shows what the client may access, namely the topics of one vehicle, but not who the client is.
  static func name(_ role: String, _ vehicle: UUID?) -> String { vehicle.map { "\(role):\($0)" } ?? role }

  /// Days of validity from the day of issue.
  var days: Int64 {
    switch self {
    case .authority: 3650
    case .broker, .controller, .operator: 825
    case .rider, .watcher: 365
    }
  }

  /// What the certificate says.
  var content: CertificateContent { CertificateContent(commonName: commonName, use: use) }

  private var use: CertificateUse {
    switch self {
    case .authority: .authority
    case .broker(let host): .server(alternativeNames: host.alternativeNames)
    case .controller, .operator, .rider, .watcher: .client
    }
  }

  /// A common name has at most 64 characters (RFC 5280 A.1, ub-common-name). Cuts only between visible characters.
  private static func truncated(_ text: String) -> String {
    var text = text
    while text.unicodeScalars.count > 64 { text.removeLast() }
    return text
  }
}
