import COpenSSL
import Glibc

/// The serial number of a certificate, unique for its authority.
package struct SerialNumber: Hashable, Sendable {
  /// Most significant byte first; at most 20 bytes.
  package let bytes: [UInt8]

  package init(bytes: [UInt8]) { self.bytes = bytes }
}

/// The certificates of an authority that a broker no longer accepts (RFC 5280 5).
///
/// It is valid as long as the authority, because a broker refuses everybody once its list has expired.
package struct RevocationList: ~Copyable {
  private let handle: OpenSSLHandle

  /// - Parameters:
  ///   - authority: whose certificates are revoked.
  ///   - key: the authority's key, which signs the list.
  ///   - revoked: each with the time of its revocation, Unix time.
  package init(
    of authority: borrowing Certificate, signedBy key: borrowing PrivateKey,
    _ revoked: [(number: SerialNumber, since: Int64)], now: Int64
  ) throws(OpenSSLError) {
    let handle = try OpenSSLHandle("make a revocation list", adopting: X509_CRL_new(), freedBy: X509_CRL_free)
    let (list, issuer) = (handle.pointer, authority.handle.pointer)
    try check("set the version", X509_CRL_set_version(list, Int(X509_CRL_VERSION_2)))
    try check("set the issuer", X509_CRL_set_issuer_name(list, X509_get_subject_name(issuer)))
    // The broker's clock may be behind.
    let begin = try Self.time(now - 300)
    let end = try Self.time(authority.end())
    try check("set the time", X509_CRL_set1_lastUpdate(list, Self.pointer(begin)))
    try check("set the time", X509_CRL_set1_nextUpdate(list, Self.pointer(end)))
    for (number, since) in revoked {
      let entry = try OpenSSLHandle("revoke a certificate", adopting: X509_REVOKED_new(), freedBy: X509_REVOKED_free)
      let big = try OpenSSLHandle(
        "revoke a certificate", adopting: BN_bin2bn(number.bytes, Int32(number.bytes.count), nil), freedBy: BN_free)
      guard let serial = BN_to_ASN1_INTEGER(big.pointer, nil) else { throw OpenSSLError("revoke a certificate") }
      defer { ASN1_INTEGER_free(serial) }
      try check("revoke a certificate", X509_REVOKED_set_serialNumber(entry.pointer, serial))
      let date = try Self.time(since)
      try check("revoke a certificate", X509_REVOKED_set_revocationDate(entry.pointer, Self.pointer(date)))
      // The list gets its own copy, so that the entry has one owner.
      guard let copy = X509_REVOKED_dup(entry.pointer) else { throw OpenSSLError("revoke a certificate") }
      guard X509_CRL_add0_revoked(list, copy) == 1 else {
        X509_REVOKED_free(copy)
        throw OpenSSLError("revoke a certificate")
      }
    }
    var context = X509V3_CTX()
    X509V3_set_ctx(&context, issuer, nil, nil, list, 0)
    let identifier = try OpenSSLHandle(
      "name the authority",
      adopting: X509V3_EXT_conf_nid(nil, &context, NID_authority_key_identifier, "keyid:always"),
      freedBy: X509_EXTENSION_free)
    try check("name the authority", X509_CRL_add_ext(list, identifier.pointer, -1))
    try check("sign the revocation list", X509_CRL_sign(list, key.handle.pointer, EVP_sha256()))
    self.handle = handle
  }

  private static func time(_ seconds: Int64) throws(OpenSSLError) -> OpenSSLHandle {
    try OpenSSLHandle(
      "make a time", adopting: ASN1_TIME_set(nil, time_t(seconds)).map { OpaquePointer($0) },
      freedBy: { ASN1_TIME_free($0.map { UnsafeMutablePointer($0) }) })
  }

  private static func pointer(_ time: borrowing OpenSSLHandle) -> UnsafeMutablePointer<ASN1_TIME> {
    UnsafeMutablePointer(time.pointer)
  }

  package func pem() throws(OpenSSLError) -> [UInt8] {
    let bio = try MemoryBIO()
    try check("write the revocation list", PEM_write_bio_X509_CRL(bio.pointer, handle.pointer))
    return bio.read()
  }
}

extension Certificate {
  package var serialNumber: SerialNumber {
    let number = X509_get0_serialNumber(handle.pointer)
    let count = Int(ASN1_STRING_length(number))
    return SerialNumber(bytes: Array(UnsafeBufferPointer(start: ASN1_STRING_get0_data(number), count: count)))
  }
}
