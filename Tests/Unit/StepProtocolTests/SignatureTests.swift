import Crypto
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
    #expect(key.verificationKey.key.isValidSignature(Base64URL.decode(parts[2])!, for: input))
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
