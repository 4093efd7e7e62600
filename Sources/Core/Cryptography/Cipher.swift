import CLibcrypto

/// A symmetric cipher operation on one message (EVP_CIPHER_CTX(3)).
private struct Cipher: ~Copyable {
  let context: OpaquePointer

  /// - Parameter initial: the initialization vector or the nonce.
  init(_ algorithm: OpaquePointer, key: Secret, initial: Secret, encrypts: Bool) {
    let context = Libcrypto.require("encrypt", EVP_CIPHER_CTX_new())
    self.context = context
    key.withBytes { key in
      initial.withBytes { initial in
        precondition(key.count == EVP_CIPHER_get_key_length(algorithm))
        precondition(initial.count == EVP_CIPHER_get_iv_length(algorithm))
        Libcrypto.require(
          "encrypt",
          EVP_CipherInit_ex2(context, algorithm, key.baseAddress, initial.baseAddress, encrypts ? 1 : 0, nil))
      }
    }
  }

  /// Adds data that is authenticated but not encrypted.
  func authenticate(_ additional: [UInt8]) {
    var count: Int32 = 0
    Libcrypto.require("encrypt", EVP_CipherUpdate(context, nil, &count, additional, Int32(additional.count)))
  }

  /// Processes the whole message. In block modes, its length must be a multiple of the block size.
  func update(_ input: [UInt8]) -> [UInt8] {
    var (output, count) = ([UInt8](repeating: 0, count: input.count), Int32(0))
    Libcrypto.require("encrypt", EVP_CipherUpdate(context, &output, &count, input, Int32(input.count)))
    precondition(count == input.count)
    return output
  }

  /// Returns the result of EVP_CipherFinal_ex, which has no output here: no mode used here adds bytes to the message.
  func finish() -> Int32 {
    var (block, count) = ([UInt8](repeating: 0, count: Int(EVP_MAX_BLOCK_LENGTH)), Int32(0))
    return EVP_CipherFinal_ex(context, &block, &count)
  }

  deinit { EVP_CIPHER_CTX_free(context) }
}

/// Authenticated encryption (RFC 8439 2.8). The tag follows the ciphertext.
package enum ChaCha20Poly1305 {
  // In bytes.
  static let keySize = 32
  package static let nonceSize = 12
  private static let tagSize = 16

  package static func seal(_ message: [UInt8], key: Secret, nonce: Secret, additional: [UInt8]) -> [UInt8] {
    let cipher = Cipher(Libcrypto.chaCha20Poly1305, key: key, initial: nonce, encrypts: true)
    cipher.authenticate(additional)
    let ciphertext = cipher.update(message)
    Libcrypto.require("encrypt", cipher.finish())
    var tag = [UInt8](repeating: 0, count: tagSize)
    Libcrypto.require(
      "encrypt", EVP_CIPHER_CTX_ctrl(cipher.context, EVP_CTRL_AEAD_GET_TAG, Int32(tagSize), &tag))
    return ciphertext + tag
  }

  /// - Returns: nil unless the tag authenticates both the ciphertext and the additional data.
  package static func open(_ sealed: [UInt8], key: Secret, nonce: Secret, additional: [UInt8]) -> [UInt8]? {
    guard sealed.count >= tagSize else { return nil }
    var tag = Array(sealed.suffix(tagSize))
    let cipher = Cipher(Libcrypto.chaCha20Poly1305, key: key, initial: nonce, encrypts: false)
    Libcrypto.require(
      "decrypt", EVP_CIPHER_CTX_ctrl(cipher.context, EVP_CTRL_AEAD_SET_TAG, Int32(tagSize), &tag))
    cipher.authenticate(additional)
    let message = cipher.update(Array(sealed.dropLast(tagSize)))
    return Libcrypto.isRight(cipher.finish()) ? message : nil
  }
}

/// The block cipher (FIPS 197) in two modes. A key has 16 bytes.
package enum AES128 {
  package static let blockSize = 16

  /// CBC without padding (NIST SP 800-38A, 6.2).
  ///
  /// - Parameter plain: a whole number of blocks.
  package static func encrypt(_ plain: [UInt8], _ key: [UInt8], initial: [UInt8] = zeros) -> [UInt8] {
    transform(plain, key, initial, encrypts: true)
  }

  package static func decrypt(_ cipher: [UInt8], _ key: [UInt8], initial: [UInt8] = zeros) -> [UInt8] {
    transform(cipher, key, initial, encrypts: false)
  }

  private static func transform(_ input: [UInt8], _ key: [UInt8], _ initial: [UInt8], encrypts: Bool) -> [UInt8] {
    let cipher = Cipher(Libcrypto.aes128CBC, key: Secret(key), initial: Secret(initial), encrypts: encrypts)
    Libcrypto.require("encrypt", EVP_CIPHER_CTX_set_padding(cipher.context, 0))
    let output = cipher.update(input)
    Libcrypto.require("encrypt", cipher.finish())
    return output
  }

  /// CMAC (NIST SP 800-38B).
  package static func mac(_ message: [UInt8], _ key: [UInt8]) -> [UInt8] {
    precondition(key.count == blockSize)
    return Libcrypto.code(
      for: Secret(message), Libcrypto.cmac, with: (OSSL_MAC_PARAM_CIPHER, "AES-128-CBC"), key: Secret(key),
      count: blockSize
    ).bytes
  }

  package static let zeros = [UInt8](repeating: 0, count: blockSize)
}
