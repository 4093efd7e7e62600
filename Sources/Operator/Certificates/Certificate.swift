import COpenSSL
import Glibc

/// An X.509 certificate (RFC 5280).
struct Certificate: ~Copyable {
  let handle: OpenSSLHandle

  init(pem: [UInt8]) throws(OpenSSLError) {
    let bio = try MemoryBIO(pem)
    handle = try OpenSSLHandle(
      "read the certificate", adopting: PEM_read_bio_X509(bio.pointer, nil, nil, nil), freedBy: X509_free)
  }

  init(der: [UInt8]) throws(OpenSSLError) {
    let bio = try MemoryBIO(der)
    handle = try OpenSSLHandle("read the certificate", adopting: d2i_X509_bio(bio.pointer, nil), freedBy: X509_free)
  }

  /// Issues a certificate.
  ///
  /// - Parameters:
  ///   - key: the holder's key, lent; only its public part is used.
  ///   - validity: the first and the last second, Unix time.
  ///   - signer: the issuer's key.
  ///   - issuer: the issuer's certificate, lent; nil for a self-signed certificate.
  init(
    _ role: CertificateRole, key: OpaquePointer, validity: ClosedRange<Int64>,
    signer: borrowing PrivateKey, issuer: OpaquePointer?
  ) throws(OpenSSLError) {
    let handle = try OpenSSLHandle("make a certificate", adopting: X509_new(), freedBy: X509_free)
    let certificate = handle.pointer
    let issuer = issuer ?? certificate
    try check("set the version", X509_set_version(certificate, Int(X509_VERSION_3)))
    try Self.setRandomSerialNumber(of: certificate)
    try check(
      "set the common name",
      Array(role.commonName.utf8).withUnsafeBufferPointer {
        X509_NAME_add_entry_by_NID(
          X509_get_subject_name(certificate), NID_commonName, MBSTRING_UTF8, $0.baseAddress, Int32($0.count), -1, 0)
      })
    try check("set the issuer", X509_set_issuer_name(certificate, X509_get_subject_name(issuer)))
    try check(
      "set the validity", ASN1_TIME_set(X509_getm_notBefore(certificate), time_t(validity.lowerBound)))
    try check(
      "set the validity", ASN1_TIME_set(X509_getm_notAfter(certificate), time_t(validity.upperBound)))
    try check("set the public key", X509_set_pubkey(certificate, key))

    var context = X509V3_CTX()
    X509V3_set_ctx(&context, issuer, certificate, nil, nil, 0)
    for (identifier, value) in role.extensions {
      let entry = try OpenSSLHandle(
        "make the extension \(value)", adopting: X509V3_EXT_conf_nid(nil, &context, identifier, value),
        freedBy: X509_EXTENSION_free)
      try check("add the extension \(value)", X509_add_ext(certificate, entry.pointer, -1))
    }
    try check("sign the certificate", X509_sign(certificate, signer.handle.pointer, EVP_sha256()))
    self.handle = handle
  }

  /// 159 random bits: a positive number of at most 20 bytes (RFC 5280 4.1.2.2), unique in practice.
  private static func setRandomSerialNumber(of certificate: OpaquePointer) throws(OpenSSLError) {
    let number = try OpenSSLHandle("make a serial number", adopting: BN_new(), freedBy: BN_free)
    try check("make a serial number", BN_rand(number.pointer, 159, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY))
    try check("set the serial number", BN_to_ASN1_INTEGER(number.pointer, X509_get_serialNumber(certificate)))
  }

  func pem() throws(OpenSSLError) -> [UInt8] {
    let bio = try MemoryBIO()
    try check("write the certificate", PEM_write_bio_X509(bio.pointer, handle.pointer))
    return bio.read()
  }

  func der() throws(OpenSSLError) -> [UInt8] {
    let bio = try MemoryBIO()
    try check("write the certificate", i2d_X509_bio(bio.pointer, handle.pointer))
    return bio.read()
  }

  /// A SubjectPublicKeyInfo, DER. One key has several possible encodings.
  func publicKey() throws(OpenSSLError) -> [UInt8] { try shownPublicKey(X509_get_X509_PUBKEY(handle.pointer)) }

  /// Throws unless the certificate is for the key.
  func require(isFor key: borrowing PrivateKey) throws(OpenSSLError) {
    try check("use the certificate", X509_check_private_key(handle.pointer, key.handle.pointer))
  }

  /// Throws unless the authority's key has signed the certificate.
  func require(isFrom authority: borrowing Certificate) throws(OpenSSLError) {
    try check(
      "verify the certificate", X509_verify(handle.pointer, X509_get0_pubkey(authority.handle.pointer)))
  }

  /// The last second of its validity, Unix time.
  func end() throws(OpenSSLError) -> Int64 {
    var time = tm()
    try check("read the certificate's end", ASN1_TIME_to_tm(X509_get0_notAfter(handle.pointer), &time))
    return Int64(timegm(&time))
  }
}

/// The private P-256 key of a certificate. (RSA would slow down each TLS handshake of a small computer.)
struct PrivateKey: ~Copyable {
  let handle: OpenSSLHandle

  /// A new key.
  init() throws(OpenSSLError) {
    handle = try OpenSSLHandle("make a key", adopting: shim_EVP_EC_gen("P-256"), freedBy: EVP_PKEY_free)
  }

  init(pem: [UInt8]) throws(OpenSSLError) {
    let bio = try MemoryBIO(pem)
    // Without this callback, OpenSSL would ask for a passphrase on the terminal.
    let key = PEM_read_bio_PrivateKey(bio.pointer, nil, { _, _, _, _ in -1 }, nil)
    handle = try OpenSSLHandle("read the private key", adopting: key, freedBy: EVP_PKEY_free)
  }

  /// PKCS #8 (RFC 5958), not encrypted: a broker and a controller start unattended.
  func pem() throws(OpenSSLError) -> [UInt8] {
    let bio = try MemoryBIO()
    try check(
      "write the private key", PEM_write_bio_PKCS8PrivateKey(bio.pointer, handle.pointer, nil, nil, 0, nil, nil))
    return bio.read()
  }
}

/// The DER form of the key in a certificate or a request.
func shownPublicKey(_ key: OpaquePointer?) throws(OpenSSLError) -> [UInt8] {
  let count = i2d_X509_PUBKEY(key, nil)
  try check("write the public key", count)
  return [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, done in
    var place = buffer.baseAddress
    done = Int(i2d_X509_PUBKEY(key, &place))
  }
}
