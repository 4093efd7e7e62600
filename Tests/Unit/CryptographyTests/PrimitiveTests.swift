import Encoding
import Glibc
import Testing

@testable import Cryptography

/// What the standards publish, for each primitive that libcrypto gives.
@Suite("Primitives") struct PrimitiveTests {
  @Test("SHA-256 is FIPS 180-4's")
  func sha256() {
    #expect(
      SHA256.digest(of: Array("abc".utf8))
        == bytes("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"))
    #expect(
      SHA256.digest(of: []) == bytes("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"))
  }

  @Test(
    "HMAC is RFC 4231's: keys of less than a block, and of more",
    arguments: [
      (
        [UInt8](repeating: 0x0B, count: 20), Array("Hi There".utf8),
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
      ),
      (
        Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
      ),
      (
        [UInt8](repeating: 0xAA, count: 131), Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
      ),
    ])
  func hmac(key: [UInt8], message: [UInt8], code: String) {
    #expect(HMAC.code(for: message, by: Secret(key)) == bytes(code))
  }

  @Test("HKDF is RFC 5869's (A.1, and A.3 with an empty salt)")
  func hkdf() {
    let material = Secret([UInt8](repeating: 0x0B, count: 22))
    let first = HKDF.extract(salt: Secret(Array(0...12)), material)
    #expect(first.bytes == bytes("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5"))
    #expect(
      HKDF.expand(first, info: Array(0xF0...0xF9), count: 32).bytes
        == bytes("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"))
    let third = HKDF.extract(salt: .empty, material)
    #expect(third.bytes == bytes("19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04"))
    #expect(HKDF.expand(third, info: [], count: 12).bytes == bytes("8da4e775a563c18f715f802a"))
  }

  @Test(
    "Ed25519 signs and verifies as in RFC 8032 7.1",
    arguments: [
      (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
          + "d25bf5f0595bbe24655141438e7a100b"
      ),
      (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", "72",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
          + "387b2eaeb4302aeeb00d291612bb0c00"
      ),
      (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7", "af82",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
          + "4a7c15e9716ed28dc027beceea1ec40a"
      ),
    ])
  func ed25519(secret: String, message: String, publicKey: String, signature: String) throws {
    let key = try #require(Ed25519.PrivateKey(bytes(secret)))
    #expect(key.bytes == bytes(secret) && key.publicKey.bytes == bytes(publicKey))
    #expect(key.signature(for: bytes(message)) == bytes(signature))
    let verifier = try #require(Ed25519.PublicKey(bytes(publicKey)))
    #expect(verifier.isValid(bytes(signature), for: bytes(message)))
    #expect(!verifier.isValid(bytes(signature), for: bytes(message) + [0]))
    for position in 0..<64 {
      var changed = bytes(signature)
      changed[position] ^= 1
      #expect(!verifier.isValid(changed, for: bytes(message)))
    }
    for wrong in [[], Array(bytes(signature).dropLast()), bytes(signature) + [0]] {
      #expect(!verifier.isValid(wrong, for: bytes(message)))
    }
  }

  @Test(
    "X25519 agrees on RFC 7748's secrets (5.2)",
    arguments: [
      (
        "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
        "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
        "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"
      ),
      (
        // The top bit is set, and ignored.
        "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
        "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
        "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957"
      ),
      (
        "0900000000000000000000000000000000000000000000000000000000000000",
        "0900000000000000000000000000000000000000000000000000000000000000",
        "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"
      ),
    ])
  func x25519(secret: String, point: String, agreed: String) throws {
    let key = try #require(X25519.PrivateKey(bytes(secret)))
    let publicKey = try #require(X25519.PublicKey(bytes(point)))
    #expect(try #require(key.sharedSecret(with: publicKey)).bytes == bytes(agreed))
    let other = X25519.PrivateKey()
    #expect(other.sharedSecret(with: key.publicKey) == key.sharedSecret(with: other.publicKey))
  }

  @Test("AES-128-CBC is SP 800-38A's (F.2.1 and F.2.2)")
  func cbc() {
    let key = bytes("2b7e151628aed2a6abf7158809cf4f3c")
    let plain = bytes("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51")
    let cipher = bytes("7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2")
    #expect(AES128.encrypt(plain, key, initial: Array(0...15)) == cipher)
    #expect(AES128.decrypt(cipher, key, initial: Array(0...15)) == plain)
    #expect(AES128.encrypt([], key) == [] && AES128.decrypt([], key) == [])
  }

  @Test("ChaCha20-Poly1305 is RFC 8439's (2.8.2), and opens nothing that was changed")
  func aead() {
    let key = Secret(Array(0x80...0x9F))
    let nonce = Secret(bytes("070000004041424344454647"))
    let additional = bytes("50515253c0c1c2c3c4c5c6c7")
    let plain = Array(
      """
      Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.
      """.utf8)
    let sealed = ChaCha20Poly1305.seal(plain, key: key, nonce: nonce, additional: additional)
    #expect(sealed.prefix(16).elementsEqual(bytes("d31a8d34648e60db7b86afbc53ef7ec2")))
    #expect(sealed.suffix(16).elementsEqual(bytes("1ae10b594f09e26a7e902ecbd0600691")))
    func open(_ sealed: [UInt8], _ additional: [UInt8]) -> [UInt8]? {
      ChaCha20Poly1305.open(sealed, key: key, nonce: nonce, additional: additional)
    }
    #expect(open(sealed, additional) == plain)
    for position in sealed.indices {
      var changed = sealed
      changed[position] ^= 0x80
      #expect(open(changed, additional) == nil)
    }
    for wrong in [[], Array(sealed.prefix(15)), Array(sealed.dropLast()), sealed + [0]] {
      #expect(open(wrong, additional) == nil)
    }
    #expect(open(sealed, []) == nil && open(sealed, additional + [0]) == nil)
    let empty = ChaCha20Poly1305.seal([], key: key, nonce: nonce, additional: [])
    #expect(empty.count == 16 && open(empty, []) == [] && open(empty, [0]) == nil)
  }

  @Test("a key has 32 bytes")
  func sizes() {
    for count in [0, 31, 33, 64] {
      let bytes = [UInt8](repeating: 9, count: count)
      #expect(Ed25519.PrivateKey(bytes) == nil && Ed25519.PublicKey(bytes) == nil)
      #expect(X25519.PrivateKey(bytes) == nil && X25519.PublicKey(bytes) == nil)
    }
  }

  @Test("secrets are equal when all of their bytes are")
  func equality() {
    #expect(constantTimeEqual([1, 2, 3], [1, 2, 3]))
    #expect(!constantTimeEqual([1, 2, 3], [1, 2, 4]))
    #expect(!constantTimeEqual([1, 2, 3], [1, 2]))
    #expect(constantTimeEqual([], []))
    #expect(Secret([1, 2]) == Secret([1, 2]) && Secret([1, 2]) != Secret([1, 3]) && Secret([1]) != Secret([1, 0]))
    #expect(Secret([1], Secret([2, 3])).bytes == [1, 2, 3] && Secret([1, 2, 3]).prefix(2).bytes == [1, 2])
  }

  /// TLS on the same thread reads this queue to learn why it failed.
  @Test("what is refused leaves nothing in libcrypto's error queue")
  func errors() throws {
    let key = X25519.PrivateKey()
    #expect(key.sharedSecret(with: X25519.PublicKey([UInt8](repeating: 0, count: 32))!) == nil)
    #expect(!Ed25519.PrivateKey().publicKey.isValid([UInt8](repeating: 0xFF, count: 64), for: [1]))
    let zeros = Secret([UInt8](repeating: 0, count: 32))
    #expect(
      ChaCha20Poly1305.open([UInt8](repeating: 0, count: 40), key: zeros, nonce: zeros.prefix(12), additional: [])
        == nil)
    let symbol = try #require(dlsym(nil, "ERR_peek_error"))
    #expect(unsafeBitCast(symbol, to: (@convention(c) () -> UInt).self)() == 0)
  }

  @Test("one key serves many threads")
  func threads() async {
    let signing = Ed25519.PrivateKey()
    let recipient = X25519.PrivateKey()
    await withTaskGroup { group in
      for number in 0..<8 as Range<UInt8> {
        group.addTask {
          for round in 0..<50 as Range<UInt8> {
            let message = [number, round]
            let signature = signing.signature(for: message)
            guard signing.publicKey.isValid(signature, for: message),
              let sealed = HPKE.seal(message, to: recipient.publicKey, additional: []),
              let opened = HPKE.open(
                sealed.ciphertext, encapsulatedKey: sealed.encapsulatedKey, with: recipient, additional: []),
              opened.message == message
            else { return false }
          }
          return true
        }
      }
      for await result in group { #expect(result) }
    }
  }
}

func bytes(_ text: String) -> [UInt8] { hexadecimal(text)! }
