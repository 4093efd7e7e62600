import COpenSSL
import Encoding
import Glibc

/// An X.509 certificate (RFC 5280).
package struct Certificate: ~Copyable {
  let handle: OpenSSLHandle

  /// OpenSSL's reason only names the byte that does not fit.
  private static let damaged = "it is damaged, or not a certificate"

  package init(pem: [UInt8]) throws(OpenSSLError) {
    let bio = try MemoryBIO(pem.withoutByteOrderMark)
    handle = try OpenSSLHandle(
      "read the certificate", adopting: PEM_read_bio_X509(bio.pointer, nil, nil, nil), freedBy: X509_free,
      orBecause: Self.damaged)
  }

  package init(der: [UInt8]) throws(OpenSSLError) {
    let bio = try MemoryBIO(der)
    handle = try OpenSSLHandle(
      "read the certificate", adopting: d2i_X509_bio(bio.pointer, nil), freedBy: X509_free,
      orBecause: Self.damaged)
  }

  /// Issues a certificate.
  ///
  /// - Parameters:
  ///   - key: the holder's key; only its public part is used.
  ///   - validity: the first and the last second, Unix time. They differ: a certificate lasts.
  ///   - signer: the issuer's key.
  ///   - issuer: the issuer's certificate.
  package init(
    _ content: CertificateContent, to key: LentKey, validity: ClosedRange<Int64>, signer: borrowing PrivateKey,
    issuer: borrowing Certificate
  ) throws(OpenSSLError) {
    try self.init(content, key, validity, signer, issuer.handle.pointer)
  }

  /// Issues a certificate that its own key signs.
  package init(
    selfSigned content: CertificateContent, by key: borrowing PrivateKey, validity: ClosedRange<Int64>
  ) throws(OpenSSLError) {
    try self.init(content, key.lent, validity, key, nil)
  }

  private init(
    _ content: CertificateContent, _ key: LentKey, _ validity: ClosedRange<Int64>, _ signer: borrowing PrivateKey,
    _ issuer: OpaquePointer?
  ) throws(OpenSSLError) {
    precondition(validity.lowerBound < validity.upperBound, "a certificate that ends when it begins")
    let handle = try OpenSSLHandle("make a certificate", adopting: X509_new(), freedBy: X509_free)
    let certificate = handle.pointer
    let issuer = issuer ?? certificate
    try check("set the version", X509_set_version(certificate, Int(X509_VERSION_3)))
    try Self.setRandomSerialNumber(of: certificate)
    try check(
      "set the common name",
      Array(content.commonName.utf8).withUnsafeBufferPointer {
        X509_NAME_add_entry_by_NID(
          X509_get_subject_name(certificate), NID_commonName, MBSTRING_UTF8, $0.baseAddress, Int32($0.count), -1, 0)
      })
    try check("set the issuer", X509_set_issuer_name(certificate, X509_get_subject_name(issuer)))
    try check(
      "set the validity", ASN1_TIME_set(X509_getm_notBefore(certificate), time_t(validity.lowerBound)))
    try check(
      "set the validity", ASN1_TIME_set(X509_getm_notAfter(certificate), time_t(validity.upperBound)))
    try check("set the public key", X509_set_pubkey(certificate, key.pointer))

    var context = X509V3_CTX()
    X509V3_set_ctx(&context, issuer, certificate, nil, nil, 0)
    for (identifier, value) in content.use.extensions {
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

  package func pem() throws(OpenSSLError) -> [UInt8] {
    let bio = try MemoryBIO()
    try check("write the certificate", PEM_write_bio_X509(bio.pointer, handle.pointer))
    return bio.read()
  }

  package func der() throws(OpenSSLError) -> [UInt8] {
    let bio = try MemoryBIO()
    try check("write the certificate", i2d_X509_bio(bio.pointer, handle.pointer))
    return bio.read()
  }

  /// A SubjectPublicKeyInfo, DER. One key has several possible encodings.
  package func publicKey() throws(OpenSSLError) -> [UInt8] { try shownPublicKey(X509_get_X509_PUBKEY(handle.pointer)) }

  /// Throws unless the certificate is for the key.
  ///
  /// - Parameter operation: what would be done with both, for the error.
  package func require(
    isFor key: borrowing PrivateKey, to operation: String = "use the certificate"
  ) throws(OpenSSLError) {
    guard X509_check_private_key(handle.pointer, key.handle.pointer) == 1 else {
      throw OpenSSLError(operation, because: "the key does not belong to the certificate")
    }
  }

  /// Throws unless the authority's key has signed the certificate.
  package func require(isFrom authority: borrowing Certificate) throws(OpenSSLError) {
    guard X509_verify(handle.pointer, X509_get0_pubkey(authority.handle.pointer)) == 1 else {
      throw OpenSSLError("verify the certificate", because: "another authority issued it, or it was changed")
    }
  }

  /// Throws unless it may issue certificates (X509_check_ca(3)).
  package func requireAuthority() throws(OpenSSLError) {
    guard X509_check_ca(handle.pointer) != 0 else {
      throw OpenSSLError("use the certificate", because: "it is no authority's, so a broker cannot be checked with it")
    }
  }

  /// The holder's public key, for the time of a call.
  package func lentKey() throws(OpenSSLError) -> LentKey {
    guard let key = X509_get0_pubkey(handle.pointer) else { throw OpenSSLError("read the certificate's key") }
    return LentKey(pointer: key)
  }

  /// The name under which programs look up an authority's lists in a folder (openssl-rehash(1)).
  package var revocationListName: String {
    let digits = String(X509_subject_name_hash(handle.pointer), radix: 16)
    return "\(String(repeating: "0", count: max(0, 8 - digits.count)))\(digits).r0"
  }

  /// The first and the last second of its validity, Unix time.
  package func validity() throws(OpenSSLError) -> (begin: Int64, end: Int64) {
    func seconds(_ text: UnsafePointer<ASN1_TIME>?) throws(OpenSSLError) -> Int64 {
      var time = tm()
      try check("read the certificate's validity", ASN1_TIME_to_tm(text, &time))
      return Int64(timegm(&time))
    }
    return (try seconds(X509_get0_notBefore(handle.pointer)), try seconds(X509_get0_notAfter(handle.pointer)))
  }

  /// The last second of its validity, Unix time.
  package func end() throws(OpenSSLError) -> Int64 { try validity().end }
}

/// The private P-256 key of a certificate. (RSA would slow down each TLS handshake of a small computer.)
package struct PrivateKey: ~Copyable {
  let handle: OpenSSLHandle

  /// A new key.
  package init() throws(OpenSSLError) {
    handle = try OpenSSLHandle("make a key", adopting: shim_EVP_EC_gen("P-256"), freedBy: EVP_PKEY_free)
  }

  package init(pem: [UInt8]) throws(OpenSSLError) {
    let bio = try MemoryBIO(pem.withoutByteOrderMark)
    // Without this callback, OpenSSL would ask for a passphrase on the terminal.
    let key = PEM_read_bio_PrivateKey(bio.pointer, nil, { _, _, _, _ in -1 }, nil)
    handle = try OpenSSLHandle(
      "read the private key", adopting: key, freedBy: EVP_PKEY_free,
      orBecause: "it is damaged, not a private key in PEM, or protected by a passphrase")
  }

  /// The key, for the time of a call.
  package var lent: LentKey { LentKey(pointer: handle.pointer) }

  /// PKCS #8 (RFC 5958), not encrypted: a broker and a controller start unattended.
  package func pem() throws(OpenSSLError) -> [UInt8] {
    let bio = try MemoryBIO()
    try check(
      "write the private key", PEM_write_bio_PKCS8PrivateKey(bio.pointer, handle.pointer, nil, nil, 0, nil, nil))
    return bio.read()
  }
}

/// A key for the time of one call: its owner keeps and frees it.
package struct LentKey {
  let pointer: OpaquePointer
}

/// Everything in a certificate but key, serial number and time.
package struct CertificateContent {
  package let commonName: String
  package let use: CertificateUse

  package init(commonName: String, use: CertificateUse) { (self.commonName, self.use) = (commonName, use) }
}

/// What a certificate may be used for (RFC 5280 4.2).
package enum CertificateUse {
  /// Issues other certificates, but not those of authorities.
  case authority
  /// - Parameter alternativeNames: the value of subjectAltName in the notation of x509v3_config(5).
  case server(alternativeNames: String)
  case client

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
      // Without the authority key identifier, which a self-signed certificate does not need (RFC 5280 4.2.1.1).
      return [
        keyIdentifiers[0], (NID_basic_constraints, "critical,CA:TRUE,pathlen:0"),
        (NID_key_usage, "critical,keyCertSign,cRLSign"),
      ]
    case .server(let names):
      return leaf + [(NID_ext_key_usage, "serverAuth"), (NID_subject_alt_name, names)]
    case .client:
      return leaf + [(NID_ext_key_usage, "clientAuth")]
    }
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
