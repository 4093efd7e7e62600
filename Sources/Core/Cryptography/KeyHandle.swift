import CLibcrypto

/// The only owner of an Ed25519 or X25519 key in libcrypto (EVP_PKEY(3)). libcrypto clears a private key when it frees
/// it.
///
/// A key never changes after its creation, so threads may share it (openssl-threads(7)).
final class KeyHandle: Sendable {
  enum Algorithm: String {
    case ed25519 = "ED25519"
    case x25519 = "X25519"
  }

  /// The size of a private or a public key, bytes. libcrypto accepts any 32 bytes.
  static let size = 32
  // Unsafe only for the compiler: see above.
  nonisolated(unsafe) let pointer: OpaquePointer

  init(privateKey bytes: [UInt8], _ algorithm: Algorithm) {
    Libcrypto.start()
    precondition(bytes.count == Self.size)
    pointer = Libcrypto.require(
      "make a private key", EVP_PKEY_new_raw_private_key_ex(nil, algorithm.rawValue, nil, bytes, bytes.count))
  }

  init(publicKey bytes: [UInt8], _ algorithm: Algorithm) {
    Libcrypto.start()
    precondition(bytes.count == Self.size)
    pointer = Libcrypto.require(
      "make a public key", EVP_PKEY_new_raw_public_key_ex(nil, algorithm.rawValue, nil, bytes, bytes.count))
  }

  /// A private key that libcrypto reads, or that one of its providers keeps elsewhere and signs with there
  /// (PEM_read_bio_PrivateKey(3), provider(7)).
  ///
  /// - Returns: nil if it cannot be read, is protected by a passphrase, is for another algorithm, or has no public
  ///   part.
  init?(pem: [UInt8], _ algorithm: Algorithm) {
    Libcrypto.start()
    let bio = Libcrypto.require("read a key", BIO_new_mem_buf(pem, Int32(clamping: pem.count)))
    defer { BIO_free(bio) }
    // Without this callback, libcrypto would ask for a passphrase on the terminal.
    guard let key = PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in -1 }, nil) else {
      ERR_clear_error()
      return nil
    }
    var size = 0
    guard EVP_PKEY_is_a(key, algorithm.rawValue) == 1,
      Libcrypto.isRight(EVP_PKEY_get_raw_public_key(key, nil, &size)), size == Self.size
    else {
      EVP_PKEY_free(key)
      return nil
    }
    pointer = key
  }

  /// A new private key from random bytes (RFC 7748 6.1, RFC 8032 5.1.5).
  convenience init(_ algorithm: Algorithm) {
    var bytes = randomBytes(Self.size)
    defer { OPENSSL_cleanse(&bytes, bytes.count) }
    self.init(privateKey: bytes, algorithm)
  }

  deinit { EVP_PKEY_free(pointer) }

  var privateKey: [UInt8] { bytes(EVP_PKEY_get_raw_private_key) }
  var publicKey: [UInt8] { bytes(EVP_PKEY_get_raw_public_key) }

  private func bytes(
    _ get: (OpaquePointer?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<Int>?) -> Int32
  ) -> [UInt8] {
    var (bytes, count) = ([UInt8](repeating: 0, count: Self.size), Self.size)
    Libcrypto.require("give a key", get(pointer, &bytes, &count))
    precondition(count == Self.size)
    return bytes
  }
}
