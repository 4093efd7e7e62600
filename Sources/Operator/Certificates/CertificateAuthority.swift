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
