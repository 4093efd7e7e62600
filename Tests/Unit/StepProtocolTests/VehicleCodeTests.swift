import Domain
import Encoding
import Testing

@testable import Access
@testable import StepProtocol

@Suite("A vehicle's code") struct VehicleCodeTests {
  let operatorKey = SigningKey()
  let code = try! VehicleCode(
    vehicle: Vehicle(
      name: "Rolling Chassis", uuid: UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!,
      steps: [
        Step(id: StepID("left")!, side: .left, major: 1, measuredPower: -59),
        Step(id: StepID("right")!, side: .right, major: 2, minor: 7),
      ]),
    topic: TopicPrefix("arena2036/rolling_chassis")!, host: "car.example", port: 8883,
    authority: [UInt8](repeating: 0x30, count: 480), encryptionKey: DecryptionKey().encryptionKey,
    signingKey: SigningKey().verificationKey, issued: 1_767_254_400)

  var claims: JSON { try! SignedObject(parsing: code.signed(by: operatorKey), as: .vehicle).payload }

  @Test("is read back, with the key that signed it, and fits a QR code")
  func roundTrip() throws {
    let text = code.signed(by: operatorKey)
    let read = try VehicleCode.verify(text)
    #expect(read.code == code)
    #expect(read.operatorKey == operatorKey.verificationKey)
    #expect(try VehicleCode.verify(text, pinned: operatorKey.verificationKey).code == code)
    #expect(text.utf8.count < 1_700, "with a certificate of 480 bytes")
  }

  @Test("by another operator than the pinned one is refused, whichever key it shows")
  func pinned() throws {
    let mallory = SigningKey()
    #expect(throws: ProtocolError.unknownKey) {
      try VehicleCode.verify(code.signed(by: mallory), pinned: operatorKey.verificationKey)
    }
    // The operator's key in the header, and another's signature.
    let parts = code.signed(by: operatorKey).split(separator: ".")
    let input = "\(parts[0]).\(parts[1])"
    let forged = "\(input).\(Base64URL.encode(mallory.signature(for: Array(input.utf8))))"
    for pinned in [nil, operatorKey.verificationKey] {
      #expect(throws: ProtocolError.badSignature) { try VehicleCode.verify(forged, pinned: pinned) }
    }
  }

  @Test("with any character changed is refused")
  func changed() {
    let text = Array(code.signed(by: operatorKey).utf8)
    for index in stride(from: 0, to: text.count, by: 5) {
      var changed = text
      changed[index] = changed[index] == 0x41 ? 0x42 : 0x41
      #expect(throws: ProtocolError.self, "byte \(index)") {
        try VehicleCode.verify(String(decoding: changed, as: UTF8.self), pinned: operatorKey.verificationKey)
      }
    }
  }

  @Test("a header with another algorithm, type, key or member is refused")
  func headers() {
    let jwk = operatorKey.verificationKey.jwk.text
    for header in [
      #"{"alg":"EdDSA","typ":"step-vehicle+jwt","jwk":\#(jwk)}"#, #"{"alg":"Ed25519","typ":"step-vehicle+jwt"}"#,
      #"{"alg":"none","typ":"step-vehicle+jwt","jwk":\#(jwk)}"#,
      #"{"alg":"Ed25519","typ":"step-token+jwt","jwk":\#(jwk)}"#,
      #"{"alg":"Ed25519","typ":"step-vehicle+jwt","jwk":\#(jwk),"kid":"x"}"#,
      #"{"alg":"Ed25519","typ":"step-vehicle+jwt","jwk":\#(operatorKey.jwk.text)}"#,
      #"{"alg":"Ed25519","typ":"step-vehicle+jwt","jwk":\#(DecryptionKey().jwk.text)}"#,
      #"{"alg":"Ed25519","typ":"step-vehicle+jwt","jwk":{}}"#, #"{"alg":"Ed25519","typ":"step-vehicle+jwt","jwk":"x"}"#,
    ] {
      let input = Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(claims.bytes)
      let text = input + "." + Base64URL.encode(operatorKey.signature(for: Array(input.utf8)))
      #expect(throws: ProtocolError.self, "\(header)") { try VehicleCode.verify(text) }
    }
  }

  @Test("every claim that is missing, of another kind or unknown is refused, though the operator signed it")
  func strictClaims() throws {
    func read(_ claims: JSON) throws -> VehicleCode {
      try VehicleCode.verify(SignedObject.sign(claims, as: .vehicle, by: operatorKey)).code
    }
    let claims = claims
    #expect(try read(claims) == code)
    for member in claims.object! {
      #expect(throws: ProtocolError.self, "without \(member.name)") { try read(claims.without(member.name)) }
      for wrong in [JSON.null, true, -1, .number(1.5), "", [], [:], "\u{1B}[2J"] as [JSON] {
        let changed = JSON.object(claims.object!.map { $0.name == member.name ? .init(member.name, wrong) : $0 })
        #expect(throws: ProtocolError.self, "\(member.name) \(wrong)") { try read(changed) }
      }
    }
    #expect(throws: ProtocolError.self) { try read(.object(claims.object! + [.init("rider", "x")])) }
    func with(_ name: String, _ value: JSON) -> JSON {
      .object(claims.object!.map { $0.name == name ? .init(name, value) : $0 })
    }
    for host in ["a b", "a/b", "ä", "a\n", "$(x)", String(repeating: "a", count: 254)] {
      #expect(throws: ProtocolError.self, "\(host)") { try read(with("host", .string(host))) }
    }
    for port: JSON in [0, 65_536] { #expect(throws: ProtocolError.self) { try read(with("port", port)) } }
    // Of low order: nothing that is encrypted to it is secret.
    #expect(throws: ProtocolError.self) {
      try read(with("encryption_key", .string(Base64URL.encode([UInt8](repeating: 0, count: 32)))))
    }
    let step = claims["steps"]!.array![0]
    #expect(throws: ProtocolError.malformed("two steps share an id, a side or a major")) {
      try read(with("steps", [step, step]))
    }
    #expect(throws: ProtocolError.self) { try read(with("steps", [.object(step.object! + [.init("tags", [])])])) }
    #expect(throws: ProtocolError.self) { try read(with("steps", [step.without("major")])) }
  }

  @Test("one that names a point of small order as a key is refused")
  func smallOrder() {
    for name in ["encryption_key", "signing_key"] {
      let changed = JSON.object(
        claims.object!.map {
          $0.name == name ? .init(name, .string(Base64URL.encode([1] + [UInt8](repeating: 0, count: 31)))) : $0
        })
      #expect(throws: ProtocolError.self, "\(name)") {
        try VehicleCode.verify(SignedObject.sign(changed, as: .vehicle, by: operatorKey))
      }
    }
  }

  @Test("one that was signed more than a day ahead is refused: it would make all others look old")
  func future() throws {
    let text = code.signed(by: operatorKey)
    for now in [code.issued - 86_400, code.issued, code.issued + 1_000_000_000] {
      #expect(try VehicleCode.verify(text, now: now).code == code)
    }
    for now in [code.issued - 86_401, 0] {
      #expect(throws: ProtocolError.issuedInFuture) { try VehicleCode.verify(text, now: now) }
    }
    let last = JSON.object(claims.object!.map { $0.name == "iat" ? .init("iat", .integer(1 << 53 - 1)) : $0 })
    #expect(throws: ProtocolError.issuedInFuture) {
      try VehicleCode.verify(SignedObject.sign(last, as: .vehicle, by: operatorKey), now: code.issued)
    }
  }

  @Test("a larger one than any QR code can hold is refused before it is read")
  func size() {
    #expect(throws: ProtocolError.malformed("larger than 2953 bytes")) {
      try VehicleCode.verify(String(repeating: "A", count: 2954))
    }
  }

  @Test("the operator's key is shown in groups of four")
  func fingerprint() throws {
    let key = try SigningKey(jwk: Vectors.rfc8037["jwk"]!).verificationKey
    #expect(key.thumbprint.grouped == "kPrK _qmx VWaY VA9w wBF6 Iuo3 vVzz 7TxH CTwX Bygr S4k")
  }
}
