import CLibcrypto

/// Signatures (RFC 8032, Ed25519).
package enum Ed25519 {
  /// The size of a signature, bytes.
  package static let signatureSize = 64

  package struct PrivateKey: Sendable {
    private let key: KeyHandle

    /// A new key.
    package init() { key = KeyHandle(.ed25519) }

    /// - Returns: nil unless there are 32 bytes.
    package init?(_ bytes: [UInt8]) {
      guard bytes.count == KeyHandle.size else { return nil }
      key = KeyHandle(privateKey: bytes, .ed25519)
    }

    /// A key of which libcrypto may have no private bytes: `bytes` ends the process then.
    ///
    /// - Returns: nil if libcrypto cannot read it, or if it is no Ed25519 key.
    package init?(pem: [UInt8]) {
      guard let key = KeyHandle(pem: pem, .ed25519) else { return nil }
      self.key = key
    }

    package var bytes: [UInt8] { key.privateKey }
    /// The library derives 32 bytes, and the public key checks nothing else.
    package var publicKey: PublicKey { PublicKey(key.publicKey)! }

    package func signature(for message: [UInt8]) -> [UInt8] {
      let context = Libcrypto.require("sign", EVP_MD_CTX_new())
      defer { EVP_MD_CTX_free(context) }
      var (signature, count) = ([UInt8](repeating: 0, count: signatureSize), signatureSize)
      // Ed25519 does its own hashing, so no digest is named (EVP_PKEY-ED25519(7)).
      Libcrypto.require("sign", EVP_DigestSignInit_ex(context, nil, nil, nil, nil, key.pointer, nil))
      Libcrypto.require("sign", EVP_DigestSign(context, &signature, &count, message, message.count))
      precondition(count == signatureSize)
      return signature
    }
  }

  /// A public key. It may be of small order or not canonical, because libcrypto refuses neither.
  package struct PublicKey: Sendable {
    package let bytes: [UInt8]

    /// - Returns: nil unless there are 32 bytes.
    package init?(_ bytes: [UInt8]) {
      guard bytes.count == KeyHandle.size else { return nil }
      self.bytes = bytes
    }

    package func isValid(_ signature: [UInt8], for message: [UInt8]) -> Bool {
      guard signature.count == signatureSize else { return false }
      let key = KeyHandle(publicKey: bytes, .ed25519)
      let context = Libcrypto.require("verify", EVP_MD_CTX_new())
      defer { EVP_MD_CTX_free(context) }
      Libcrypto.require("verify", EVP_DigestVerifyInit_ex(context, nil, nil, nil, nil, key.pointer, nil))
      return Libcrypto.isRight(EVP_DigestVerify(context, signature, signature.count, message, message.count))
    }
  }
}
