import Cryptography
import Encoding
import Testing

@testable import StepProtocol

@Suite("Signatures and keys") struct SignatureTests {
  @Test("keys, thumbprint and signature are RFC 8037's")
  func rfc8037() throws {
    let vector = Vectors.rfc8037
    let key = try SigningKey(jwk: vector["jwk"]!)
    #expect(key.verificationKey.thumbprint.description == vector.text("thumbprint"))
    let parts = vector.text("jws").split(separator: ".")
    let input = Array("\(parts[0]).\(parts[1])".utf8)
    #expect(key.verificationKey.isValid(Base64URL.decode(parts[2])!, for: input))
    #expect(key.jwk["x"] == vector["jwk"]!["x"])
  }

  @Test("a key whose halves do not belong together is refused, and so is one of another kind")
  func wrongKeys() throws {
    let a = SigningKey().jwk
    let b = SigningKey().jwk
    #expect(throws: KeyError.unusable("the public part of the key does not belong to its private part")) {
      try SigningKey(jwk: ["kty": "OKP", "crv": "Ed25519", "x": a["x"]!, "d": b["d"]!])
    }
    #expect(throws: KeyError.self) { try SigningKey(jwk: DecryptionKey().jwk) }
    #expect(throws: KeyError.self) { try DecryptionKey(jwk: a) }
    #expect(throws: KeyError.self) { try SigningKey(jwk: a.without("d")) }
    #expect(throws: KeyError.self) { try VerificationKey([1, 2, 3]) }
  }

  /// The points of Ed25519 whose order divides 8, without the sign of x.
  static let smallOrderPoints = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    // Not below p: 0 and 1 once more.
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  ]

  @Test("points of small order, for which anyone can sign, are no keys in any encoding", arguments: smallOrderPoints)
  func smallOrder(text: String) throws {
    let bytes = try #require(hexadecimal(text))
    for bytes in [bytes, bytes.dropLast() + [bytes[31] | 0x80]] {
      #expect(throws: KeyError.self) { try VerificationKey(bytes) }
      let jwk: JSON = ["kty": "OKP", "crv": "Ed25519", "x": .string(Base64URL.encode(bytes))]
      #expect(throws: KeyError.self) { try VerificationKey(jwk: jwk) }
    }
  }

  @Test("the constant signature that is forged for the point of order 1 is one to libcrypto: the key has to be refused")
  func forgery() throws {
    let identity = [1] + [UInt8](repeating: 0, count: 31)
    let key = try #require(Ed25519.PublicKey(identity))
    #expect(key.isValid(identity + [UInt8](repeating: 0, count: 32), for: Array("open".utf8)))
  }

  @Test("a number that is not below p is no key: each key has one name", arguments: 0xED...0xFF as ClosedRange<UInt8>)
  func notCanonical(low: UInt8) {
    let bytes = [low] + [UInt8](repeating: 0xFF, count: 30) + [0x7F]
    for bytes in [bytes, bytes.dropLast() + [0xFF]] {
      #expect(throws: KeyError.unusable("the Ed25519 key is not in its canonical form")) { try VerificationKey(bytes) }
      #expect(throws: KeyError.unusable("the X25519 key is not in its canonical form")) { try EncryptionKey(bytes) }
    }
  }

  @Test("no key that is made is taken for a point of small order, and of a signature there is only one")
  func oneSignature() throws {
    // The order of the group, the low byte first (RFC 8032 5.1).
    let order = try #require(hexadecimal("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010"))
    for _ in 0..<100 {
      let key = SigningKey()
      let signature = key.signature(for: [1, 2, 3])
      #expect(key.verificationKey.isValid(signature, for: [1, 2, 3]))
      var larger = signature
      var carry = 0
      for index in 0..<32 {
        carry += Int(signature[32 + index]) + Int(order[index])
        larger[32 + index] = UInt8(carry & 0xFF)
        carry >>= 8
      }
      #expect(!key.verificationKey.isValid(larger, for: [1, 2, 3]))
    }
  }

  @Test("no error about a key repeats any of it")
  func noSecretsInErrors() {
    let jwk = SigningKey().jwk
    for wrong: JSON in [
      jwk.without("x"), jwk.without("kty"), ["kty": "OKP", "crv": "X25519", "x": jwk["x"]!, "d": jwk["d"]!],
    ] {
      do throws(KeyError) { _ = try SigningKey(jwk: wrong) } catch {
        #expect(!error.description.contains(jwk.text("d")))
      }
    }
  }

  @Test(
    "a header with any other algorithm, type or member is refused, whatever the signature",
    arguments: [
      #"{"alg":"none","typ":"step-token+jwt"}"#, #"{"alg":"HS256","typ":"step-token+jwt"}"#,
      #"{"alg":"ES256","typ":"step-token+jwt"}"#, #"{"alg":"eddsa","typ":"step-token+jwt"}"#,
      #"{"alg":"EdDSA","typ":"step-token+jwt"}"#,
      #"{"typ":"step-token+jwt"}"#, #"{"alg":"Ed25519"}"#, #"{"alg":"Ed25519","typ":"JWT"}"#,
      #"{"alg":"Ed25519","typ":"step-command+jwt"}"#, #"{"alg":"Ed25519","typ":"step-token+jwt","crit":["exp"]}"#,
      #"{"alg":"Ed25519","typ":"step-token+jwt","jwk":{}}"#, #"{"alg":"Ed25519","typ":"step-token+jwt","ext":{}}"#,
      #"{"alg":"Ed25519","alg":"Ed25519","typ":"step-token+jwt"}"#,
      "[]", "",
    ])
  func headers(header: String) {
    let key = SigningKey()
    let input = Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(Array("{}".utf8))
    let text = input + "." + Base64URL.encode(key.signature(for: Array(input.utf8)))
    #expect(throws: ProtocolError.self) { try SignedObject(parsing: text, as: .token) }
  }

  @Test("base64url has one text for one value")
  func base64() {
    for bytes in (0..<40).map({ count in (0..<count).map { UInt8(truncatingIfNeeded: $0 * 37 + count) } }) {
      #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes)
    }
    #expect(Base64URL.encode([0xFB, 0xFF]) == "-_8")
    for wrong in ["A", "AAAAA", "AB", "AAB", "AA==", "A A", "+/8", "-_9", "ÄÄ", "AA\n"] {
      #expect(Base64URL.decode(wrong) == nil, "\(wrong)")
    }
    #expect(Base64URL.decode("") == [])
  }
}

extension JSON {
  func without(_ name: String) -> JSON { .object(object!.filter { $0.name != name }) }
}
