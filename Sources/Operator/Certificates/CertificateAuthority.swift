import COpenSSL
import Domain

/// The certificate authority of a vehicle or of a fleet. Its broker and the broker's clients trust no other.
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
    certificate = try Certificate(role, key: key.handle.pointer, validity: validity, signer: key, issuer: nil)
    self.key = key
  }

  /// An authority that was made before. Throws when the key does not belong to the certificate.
  init(certificate: consuming Certificate, key: consuming PrivateKey) throws(OpenSSLError) {
    try check(
      "issue certificates", X509_check_private_key(certificate.handle.pointer, key.handle.pointer))
    self.certificate = certificate
    self.key = key
  }

  /// Issues a certificate that lasts as long as its role's usually do, or longer if asked, but never longer than the
  /// authority's own.
  ///
  /// - Parameters:
  ///   - days: at least; nil for as many as is usual.
  ///   - lastingUntil: Unix time; not beyond the end of the authority's certificate.
  func issue(
    _ role: CertificateRole, to key: borrowing PrivateKey, now: Int64, days: Int64? = nil, lastingUntil: Int64 = 0
  ) throws(OpenSSLError) -> Certificate {
    try issue(role, to: key.handle.pointer, now: now, days: days, lastingUntil: lastingUntil)
  }

  /// Issues a certificate for the key in a request. Whatever else the request asks for is ignored.
  func issue(
    _ role: CertificateRole, for request: borrowing CertificateRequest, now: Int64, days: Int64? = nil,
    lastingUntil: Int64
  ) throws(OpenSSLError) -> Certificate {
    try issue(role, to: request.key.pointer, now: now, days: days, lastingUntil: lastingUntil)
  }

  /// Issues a certificate for the key that an older certificate is for.
  func issue(
    _ role: CertificateRole, renewing old: borrowing Certificate, now: Int64
  ) throws(OpenSSLError) -> Certificate {
    guard let key = X509_get0_pubkey(old.handle.pointer) else { throw OpenSSLError("read the certificate's key") }
    return try issue(role, to: key, now: now, lastingUntil: 0)
  }

  private func issue(
    _ role: CertificateRole, to key: OpaquePointer, now: Int64, days: Int64? = nil, lastingUntil: Int64
  ) throws(OpenSSLError) -> Certificate {
    let end = min(max(now + (days ?? role.days) * Self.secondsADay, lastingUntil), try certificate.end())
    let begin = min(now - Self.leeway, end)
    return try Certificate(
      role, key: key, validity: begin...end, signer: self.key, issuer: certificate.handle.pointer)
  }
}

/// What a certificate is for. All of its content follows from that, except key, serial number and time.
enum CertificateRole {
  /// Issues the other certificates, but no authority's.
  case authority(vehicleName: String)
  case broker(BrokerHost)
  /// The controller of a vehicle, which is named where the broker serves several.
  case controller(of: UUID?)
  /// Whoever publishes notices.
  case `operator`
  /// Any rider of a vehicle, which is named where the broker serves several. The token names the rider, and the broker
  /// cannot read it.
  case rider(of: UUID?)
  /// Whoever may read how a vehicle's steps stand, and nothing else.
  case watcher(of: UUID?)

  /// The whole subject. The broker's access list knows a client by it.
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

  /// It says what may be touched, the topics of one vehicle, and not whose it is.
  static func name(_ role: String, _ vehicle: UUID?) -> String { vehicle.map { "\(role):\($0)" } ?? role }

  /// Days of validity from the day of issue.
  var days: Int64 {
    switch self {
    case .authority: 3650
    case .broker, .controller, .operator: 825
    case .rider, .watcher: 365
    }
  }

  /// The extensions, each as its NID and its value in the notation of x509v3_config(5).
  var extensions: [(identifier: Int32, value: String)] {
    let keyIdentifiers = [
      (NID_subject_key_identifier, "hash"), (NID_authority_key_identifier, "keyid:always"),
    ]
    let leaf =
      keyIdentifiers + [
        (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
      ]
    switch self {
    case .authority:
      // Without the authority key identifier, which a self-signed certificate need not have (RFC 5280 4.2.1.1).
      return [
        keyIdentifiers[0], (NID_basic_constraints, "critical,CA:TRUE,pathlen:0"),
        (NID_key_usage, "critical,keyCertSign,cRLSign"),
      ]
    case .broker(let host):
      return leaf + [(NID_ext_key_usage, "serverAuth"), (NID_subject_alt_name, host.alternativeNames)]
    case .controller, .operator, .rider, .watcher:
      return leaf + [(NID_ext_key_usage, "clientAuth")]
    }
  }

  /// A common name has at most 64 characters (RFC 5280 A.1, ub-common-name). No visible character is cut in two.
  private static func truncated(_ text: String) -> String {
    var text = text
    while text.unicodeScalars.count > 64 { text.removeLast() }
    return text
  }
}
