import COpenSSL

/// A vehicle's own certificate authority, which its broker and everyone who connects to that believe, and no other.
struct CertificateAuthority: ~Copyable {
  let certificate: Certificate
  let key: PrivateKey

  private static let secondsADay: Int64 = 86_400
  /// How far a clock may be behind the one that a certificate was issued by, seconds.
  private static let leeway: Int64 = 300

  /// A new authority.
  init(vehicleName: String, now: Int64) throws(OpenSSLError) {
    let role = CertificateRole.authority(vehicleName: vehicleName)
    let key = try PrivateKey()
    let validity = now - Self.leeway...now + role.days * Self.secondsADay
    certificate = try Certificate(role, key: key, validity: validity, signer: key, issuer: nil)
    self.key = key
  }

  /// Takes up an authority that was made before; throws when the key is not that of the certificate.
  init(certificate: consuming Certificate, key: consuming PrivateKey) throws(OpenSSLError) {
    try check(
      "issue certificates", X509_check_private_key(certificate.handle.pointer, key.handle.pointer))
    self.certificate = certificate
    self.key = key
  }

  /// Issues a certificate that ends with the usual time of its role, or later if it has to, but not after the
  /// authority's own, which it could not outlive.
  ///
  /// - Parameter lastingUntil: Unix time; not beyond the end of the authority's certificate.
  func issue(
    _ role: CertificateRole, to key: borrowing PrivateKey, now: Int64, lastingUntil: Int64 = 0
  ) throws(OpenSSLError) -> Certificate {
    let end = min(max(now + role.days * Self.secondsADay, lastingUntil), try certificate.end())
    let begin = min(now - Self.leeway, end)
    return try Certificate(
      role, key: key, validity: begin...end, signer: self.key, issuer: certificate.handle.pointer)
  }
}

/// What a certificate is for; all that is in it but key, serial number and time follows from that.
enum CertificateRole {
  /// Issues the others, and nothing that issues.
  case authority(vehicleName: String)
  case broker(BrokerHost)
  case controller
  /// Any rider: who it is stands in the token, which the broker cannot read.
  case rider

  /// The subject, and all of it. A client's is its name in the broker's access list.
  var commonName: String {
    switch self {
    case .authority(let name): Self.truncated("stepctl CA for \(name)")
    case .broker: "broker"
    case .controller: "controller"
    case .rider: "rider"
    }
  }

  /// Whole days of validity from the day of issue.
  var days: Int64 {
    switch self {
    case .authority: 3650
    case .broker, .controller: 825
    case .rider: 365
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
    case .controller, .rider:
      return leaf + [(NID_ext_key_usage, "clientAuth")]
    }
  }

  /// A common name has at most 64 characters (RFC 5280 A.1, ub-common-name); what people see as one is not cut.
  private static func truncated(_ text: String) -> String {
    var text = text
    while text.unicodeScalars.count > 64 { text.removeLast() }
    return text
  }
}
