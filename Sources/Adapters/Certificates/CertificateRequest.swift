import COpenSSL
package import Domain

/// A request for a certificate (PKCS #10, RFC 2986): a public key, signed by its private key.
package struct CertificateRequest: ~Copyable {
  private let handle: OpenSSLHandle
  /// The key for the certificate.
  private let key: OpenSSLHandle

  /// The name in every rider's request. The operator decides the content of the certificate.
  package static let riderName = "rider"

  /// A new request for the caller's own key.
  ///
  /// - Parameter name: a rider's, or `controller`.
  package init(for own: borrowing PrivateKey, name: String = Self.riderName) throws(OpenSSLError) {
    let handle = try OpenSSLHandle("make a certificate request", adopting: X509_REQ_new(), freedBy: X509_REQ_free)
    try check("set the version", X509_REQ_set_version(handle.pointer, 0))
    try check(
      "set the common name",
      X509_NAME_add_entry_by_NID(
        X509_REQ_get_subject_name(handle.pointer), NID_commonName, MBSTRING_UTF8, Array(name.utf8),
        Int32(name.utf8.count), -1, 0))
    try check("set the public key", X509_REQ_set_pubkey(handle.pointer, own.handle.pointer))
    try check("sign the certificate request", X509_REQ_sign(handle.pointer, own.handle.pointer, EVP_sha256()))
    let key = try Self.key(of: handle)
    self.handle = handle
    self.key = key
  }

  /// Reads a request.
  ///
  /// - Parameter name: a rider's, or `controller`.
  /// - Throws: `CertificateRequestError` if it asks for another name, or if its key is not of the kind used here.
  package init(der: [UInt8], name expected: String = Self.riderName) throws {
    let bio = try MemoryBIO(der)
    let handle = try OpenSSLHandle(
      "read the certificate request", adopting: d2i_X509_REQ_bio(bio.pointer, nil), freedBy: X509_REQ_free,
      orBecause: "it is damaged, or not a certificate request")
    let key = try Self.key(of: handle)
    guard X509_REQ_verify(handle.pointer, key.pointer) == 1 else {
      throw OpenSSLError("verify the certificate request", because: "the signature does not match its key")
    }
    var group = [CChar](repeating: 0, count: 32)
    guard EVP_PKEY_get_group_name(key.pointer, &group, group.count, nil) == 1,
      String(decoding: group.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) == "prime256v1"
    else { throw CertificateRequestError.foreignKey }
    guard let subject = X509_REQ_get_subject_name(handle.pointer), X509_NAME_entry_count(subject) == 1 else {
      throw CertificateRequestError.foreignName
    }
    var name = [CChar](repeating: 0, count: 65)
    let length = X509_NAME_get_text_by_NID(subject, NID_commonName, &name, Int32(name.count))
    guard length > 0, name.prefix(Int(length)).map({ UInt8(bitPattern: $0) }) == Array(expected.utf8) else {
      throw CertificateRequestError.foreignName
    }
    self.handle = handle
    self.key = key
  }

  private static func key(of request: borrowing OpenSSLHandle) throws(OpenSSLError) -> OpenSSLHandle {
    try OpenSSLHandle("read the request's key", adopting: X509_REQ_get_pubkey(request.pointer), freedBy: EVP_PKEY_free)
  }

  /// The key for the certificate, for the time of a call.
  package var lentKey: LentKey { LentKey(pointer: key.pointer) }

  /// A SubjectPublicKeyInfo, DER.
  package func publicKey() throws(OpenSSLError) -> [UInt8] {
    try shownPublicKey(X509_REQ_get_X509_PUBKEY(handle.pointer))
  }

  package func der() throws(OpenSSLError) -> [UInt8] {
    let bio = try MemoryBIO()
    try check("write the certificate request", i2d_X509_REQ_bio(bio.pointer, handle.pointer))
    return bio.read()
  }
}

/// Why a certificate request, although it is well formed, is not granted.
package enum CertificateRequestError: Failure, Equatable {
  /// It asks for a name that is not a rider's.
  case foreignName
  /// Its key is not on P-256.
  case foreignKey

  package var exitStatus: ExitStatus { .badData }

  package var description: String {
    switch self {
    case .foreignName: "the request asks for a certificate with another name than `rider`"
    case .foreignKey: "the certificate request is not for a key on P-256"
    }
  }

  package var hint: String? { "ask the rider to run `stepctl enroll` again" }
}
