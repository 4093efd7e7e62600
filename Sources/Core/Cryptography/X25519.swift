import CLibcrypto

/// Key agreement (RFC 7748, X25519).
package enum X25519 {
  package struct PrivateKey: Sendable {
    private let key: KeyHandle

    /// A new key.
    package init() { key = KeyHandle(.x25519) }

    /// - Returns: nil unless there are 32 bytes.
    package init?(_ bytes: [UInt8]) {
      guard bytes.count == KeyHandle.size else { return nil }
      key = KeyHandle(privateKey: bytes, .x25519)
    }

    package var bytes: [UInt8] { key.privateKey }
    /// The library derives 32 bytes, and the public key checks nothing else.
    package var publicKey: PublicKey { PublicKey(key.publicKey)! }

    /// - Returns: nil if the secret is all zero, as with every point of small order (RFC 7748 6.1).
    package func sharedSecret(with publicKey: PublicKey) -> Secret? {
      let context = Libcrypto.require("agree on a secret", EVP_PKEY_CTX_new_from_pkey(nil, key.pointer, nil))
      defer { EVP_PKEY_CTX_free(context) }
      let peer = KeyHandle(publicKey: publicKey.bytes, .x25519)
      Libcrypto.require("agree on a secret", EVP_PKEY_derive_init(context))
      Libcrypto.require("agree on a secret", EVP_PKEY_derive_set_peer_ex(context, peer.pointer, 0))
      var isAgreed = false
      let secret = Secret(count: KeyHandle.size) { secret in
        var count = secret.count
        isAgreed = Libcrypto.isRight(EVP_PKEY_derive(context, secret.baseAddress, &count)) && count == secret.count
      }
      // libcrypto also refuses the zero secret, but its manual does not say so.
      return isAgreed && secret != zero ? secret : nil
    }
  }

  package struct PublicKey: Sendable {
    package let bytes: [UInt8]

    /// - Returns: nil unless there are 32 bytes.
    package init?(_ bytes: [UInt8]) {
      guard bytes.count == KeyHandle.size else { return nil }
      self.bytes = bytes
    }
  }

  private static let zero = Secret([UInt8](repeating: 0, count: KeyHandle.size))
}
