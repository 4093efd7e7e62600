import COpenSSL
package import Domain
import Encoding
package import StepProtocol

/// A device's key that a passphrase protects: PKCS #8 (RFC 5958) with PBES2 (RFC 8018), scrypt (RFC 7914) and
/// AES-256-CBC, as PEM. The public key follows, so that it can be read without the passphrase.
package enum ProtectedKey {
  /// scrypt's N, r and p: one guess takes 16 MB and a fifth of a second.
  private static let cost: (UInt64, UInt64, UInt64) = (16_384, 8, 5)
  private static let saltSize: Int32 = 16
  private static let curve = "Ed25519"

  package static func seal(_ key: SigningKey, by passphrase: [UInt8]) throws -> [UInt8] {
    let operation = "protect the device's key"
    let secret = key.jwk["d"]?.string.flatMap { Base64URL.decode($0) } ?? []
    let pair = try OpenSSLHandle(
      operation, adopting: EVP_PKEY_new_raw_private_key(NID_ED25519, nil, secret, secret.count), freedBy: EVP_PKEY_free)
    let plain = try OpenSSLHandle(operation, adopting: EVP_PKEY2PKCS8(pair.pointer), freedBy: PKCS8_PRIV_KEY_INFO_free)
    guard let scheme = PKCS5_pbe2_set_scrypt(EVP_aes_256_cbc(), nil, saltSize, nil, cost.0, cost.1, cost.2) else {
      throw OpenSSLError(operation)
    }
    // On success, the result owns the scheme from here on.
    let sealed = PKCS8_set0_pbe(Self.characters(passphrase), Int32(passphrase.count), plain.pointer, scheme)
    if sealed == nil { X509_ALGOR_free(scheme) }
    let protected = try OpenSSLHandle(operation, adopting: sealed, freedBy: X509_SIG_free)
    let bio = try MemoryBIO()
    try check(operation, PEM_write_bio_PKCS8(bio.pointer, protected.pointer))
    try check(operation, PEM_write_bio_PUBKEY(bio.pointer, pair.pointer))
    return bio.read()
  }

  /// - Parameter path: for errors.
  /// - Throws: `ProtectedKeyError`.
  package static func open(_ pem: [UInt8], _ path: String, by passphrase: [UInt8]) throws -> SigningKey {
    let protected = try sealed(in: pem, path)
    guard let found = PKCS8_decrypt(protected.pointer, Self.characters(passphrase), Int32(passphrase.count)) else {
      ERR_clear_error()
      throw ProtectedKeyError.wrongPassphrase(path)
    }
    return try signingKey(adopting: found, path)
  }

  // MARK: - Without the passphrase

  /// What scrypt makes of a passphrase for this file: it opens this file, and no other, nor this one after another
  /// passphrase was set. The passphrase cannot be computed from it.
  ///
  /// - Throws: `ProtectedKeyError`.
  package static func openingKey(of pem: [UInt8], _ path: String, by passphrase: [UInt8]) throws -> [UInt8] {
    let scheme = try scheme(of: sealed(in: pem, path), path)
    var key = [UInt8](repeating: 0, count: Int(EVP_CIPHER_get_key_length(EVP_aes_256_cbc())))
    try check(
      operation,
      EVP_PBE_scrypt(
        Self.characters(passphrase), passphrase.count, scheme.salt, scheme.salt.count, scheme.cost.n, scheme.cost.r,
        scheme.cost.p, 0, &key, key.count))
    guard try open(pem, path, with: key) != nil else { throw ProtectedKeyError.wrongPassphrase(path) }
    return key
  }

  /// - Returns: nil if the key does not open this file.
  /// - Throws: `ProtectedKeyError`.
  package static func open(_ pem: [UInt8], _ path: String, with openingKey: [UInt8]) throws -> SigningKey? {
    let protected = try sealed(in: pem, path)
    let scheme = try scheme(of: protected, path)
    guard openingKey.count == EVP_CIPHER_get_key_length(EVP_aes_256_cbc()) else { return nil }
    let cipher = try OpenSSLHandle(operation, adopting: EVP_CIPHER_CTX_new(), freedBy: EVP_CIPHER_CTX_free)
    try check(operation, EVP_DecryptInit_ex2(cipher.pointer, EVP_aes_256_cbc(), openingKey, scheme.vector, nil))
    var plain = [UInt8](repeating: 0, count: scheme.content.count + Int(EVP_MAX_BLOCK_LENGTH))
    var (size, rest): (Int32, Int32) = (0, 0)
    try check(
      operation, EVP_DecryptUpdate(cipher.pointer, &plain, &size, scheme.content, Int32(scheme.content.count)))
    let isPadded = plain.withUnsafeMutableBufferPointer { plain in
      EVP_DecryptFinal_ex(cipher.pointer, plain.baseAddress! + Int(size), &rest) == 1
    }
    let found = plain.withUnsafeBufferPointer { plain in
      var bytes = plain.baseAddress
      return isPadded ? d2i_PKCS8_PRIV_KEY_INFO(nil, &bytes, Int(size + rest)) : nil
    }
    guard let found else {
      ERR_clear_error()
      return nil
    }
    return try signingKey(adopting: found, path)
  }

  /// How a file of `seal` is encrypted, and its encrypted bytes.
  private struct Scheme {
    let salt: [UInt8]
    let cost: (n: UInt64, r: UInt64, p: UInt64)
    let vector: [UInt8]
    let content: [UInt8]
  }

  private static func scheme(of sealed: borrowing OpenSSLHandle, _ path: String) throws -> Scheme {
    var (outer, content): (UnsafePointer<X509_ALGOR>?, UnsafePointer<ASN1_OCTET_STRING>?)
    X509_SIG_get0(sealed.pointer, &outer, &content)
    guard let outer, let content, OBJ_obj2nid(outer.pointee.algorithm) == NID_pbes2,
      let unpacked = ASN1_TYPE_unpack_sequence(PBE2PARAM_it(), outer.pointee.parameter)
    else { throw otherScheme(path) }
    let parts = unpacked.assumingMemoryBound(to: PBE2PARAM.self)
    defer { PBE2PARAM_free(parts) }
    var vector = [UInt8](repeating: 0, count: Int(EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())))
    guard let derivation = parts.pointee.keyfunc?.pointee, let encryption = parts.pointee.encryption?.pointee,
      OBJ_obj2nid(derivation.algorithm) == NID_id_scrypt, OBJ_obj2nid(encryption.algorithm) == NID_aes_256_cbc,
      let parameter = encryption.parameter,
      ASN1_TYPE_get_octetstring(parameter, &vector, Int32(vector.count)) == vector.count,
      let unpacked = ASN1_TYPE_unpack_sequence(SCRYPT_PARAMS_it(), derivation.parameter)
    else { throw otherScheme(path) }
    let scrypt = unpacked.assumingMemoryBound(to: SCRYPT_PARAMS.self)
    defer { SCRYPT_PARAMS_free(scrypt) }
    func number(_ integer: UnsafeMutablePointer<ASN1_INTEGER>?) -> UInt64? {
      var number: UInt64 = 0
      return integer.flatMap { ASN1_INTEGER_get_uint64(&number, $0) == 1 ? number : nil }
    }
    guard let salt = scrypt.pointee.salt, let n = number(scrypt.pointee.costParameter),
      let r = number(scrypt.pointee.blockSize), let p = number(scrypt.pointee.parallelizationParameter)
    else { throw otherScheme(path) }
    return Scheme(salt: bytes(salt), cost: (n, r, p), vector: vector, content: bytes(content))
  }

  private static func otherScheme(_ path: String) -> ProtectedKeyError {
    ERR_clear_error()
    return .otherScheme(path)
  }

  private static func bytes(_ string: UnsafePointer<ASN1_OCTET_STRING>) -> [UInt8] {
    Array(UnsafeBufferPointer(start: ASN1_STRING_get0_data(string), count: Int(ASN1_STRING_length(string))))
  }

  // MARK: -

  private static let operation = "read the device's key"

  private static func sealed(in pem: [UInt8], _ path: String) throws -> OpenSSLHandle {
    let bio = try MemoryBIO(pem)
    guard let sealed = PEM_read_bio_PKCS8(bio.pointer, nil, nil, nil) else {
      ERR_clear_error()
      throw ProtectedKeyError.damaged(path)
    }
    return try OpenSSLHandle(operation, adopting: sealed, freedBy: X509_SIG_free)
  }

  private static func signingKey(adopting found: OpaquePointer, _ path: String) throws -> SigningKey {
    let plain = try OpenSSLHandle(operation, adopting: found, freedBy: PKCS8_PRIV_KEY_INFO_free)
    var (secret, known) = ([UInt8](repeating: 0, count: 32), [UInt8](repeating: 0, count: 32))
    var (secretSize, knownSize) = (secret.count, known.count)
    guard let pair = EVP_PKCS82PKEY(plain.pointer) else {
      ERR_clear_error()
      throw ProtectedKeyError.damaged(path)
    }
    let handle = try OpenSSLHandle(operation, adopting: pair, freedBy: EVP_PKEY_free)
    guard EVP_PKEY_get_id(handle.pointer) == NID_ED25519,
      EVP_PKEY_get_raw_private_key(handle.pointer, &secret, &secretSize) == 1, secretSize == 32,
      EVP_PKEY_get_raw_public_key(handle.pointer, &known, &knownSize) == 1, knownSize == 32
    else { throw ProtectedKeyError.damaged(path) }
    return try SigningKey(jwk: [
      "kty": "OKP", "crv": .string(curve), "x": .string(Base64URL.encode(known)),
      "d": .string(Base64URL.encode(secret)),
    ])
  }

  private static func characters(_ bytes: [UInt8]) -> [CChar] { bytes.map { CChar(bitPattern: $0) } }
}

/// Why a key that is protected by a passphrase cannot be used.
package enum ProtectedKeyError: Failure, Equatable {
  case wrongPassphrase(String)
  case damaged(String)
  /// A passphrase protects it in another way than `ProtectedKey.seal` does.
  case otherScheme(String)

  package var exitStatus: ExitStatus {
    switch self {
    case .wrongPassphrase: .noPermission
    case .damaged, .otherScheme: .configuration
    }
  }

  package var description: String {
    switch self {
    case .wrongPassphrase(let path): "\(path): the passphrase is wrong"
    case .damaged(let path): "\(path): not an Ed25519 key that a passphrase protects, or a damaged one"
    case .otherScheme(let path): "\(path): a passphrase protects this key in another way than scrypt and AES-256-CBC"
    }
  }

  package var hint: String? {
    switch self {
    case .wrongPassphrase, .damaged: nil
    case .otherScheme: "set its passphrase again: stepctl enroll --passphrase"
    }
  }
}
