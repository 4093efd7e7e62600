import CLibcrypto

/// SHA-256 (FIPS 180-4).
package enum SHA256 {
  /// The size of a digest, bytes.
  package static let size = 32

  package static func digest(of message: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: size)
    Libcrypto.require("hash", EVP_Digest(message, message.count, &digest, nil, Libcrypto.sha256, nil))
    return digest
  }
}

/// HMAC (RFC 2104) with SHA-256.
package enum HMAC {
  package static func code(for message: [UInt8], by key: Secret) -> [UInt8] {
    code(for: Secret(message), by: key).bytes
  }

  static func code(for message: Secret, by key: Secret) -> Secret {
    Libcrypto.code(
      for: message, Libcrypto.hmac, with: (OSSL_MAC_PARAM_DIGEST, "SHA2-256"), key: key, count: SHA256.size)
  }
}

/// HKDF (RFC 5869) with SHA-256.
enum HKDF {
  /// Section 2.2.
  static func extract(salt: Secret, _ keyMaterial: Secret) -> Secret { HMAC.code(for: keyMaterial, by: salt) }

  /// Section 2.3, for at most the size of one hash: the beginning of T(1).
  static func expand(_ key: Secret, info: [UInt8], count: Int) -> Secret {
    precondition(count <= SHA256.size)
    return HMAC.code(for: Secret(info + [0x01]), by: key).prefix(count)
  }
}
