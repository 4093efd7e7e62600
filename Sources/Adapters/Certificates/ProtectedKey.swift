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
    let operation = "read the device's key"
    let bio = try MemoryBIO(pem)
    guard let sealed = PEM_read_bio_PKCS8(bio.pointer, nil, nil, nil) else {
      ERR_clear_error()
      throw ProtectedKeyError.damaged(path)
    }
    let protected = try OpenSSLHandle(operation, adopting: sealed, freedBy: X509_SIG_free)
    guard let found = PKCS8_decrypt(protected.pointer, Self.characters(passphrase), Int32(passphrase.count)) else {
      ERR_clear_error()
      throw ProtectedKeyError.wrongPassphrase(path)
    }
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

  package var exitStatus: ExitStatus {
    switch self {
    case .wrongPassphrase: .noPermission
    case .damaged: .configuration
    }
  }

  package var description: String {
    switch self {
    case .wrongPassphrase(let path): "\(path): the passphrase is wrong"
    case .damaged(let path): "\(path): not an Ed25519 key that a passphrase protects, or a damaged one"
    }
  }
}
