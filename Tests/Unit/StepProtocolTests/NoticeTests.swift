import Domain
import Encoding
import Testing

@testable import StepProtocol

@Suite("The operator's notice") struct NoticeTests {
  let present = SigningKey()
  let next = SigningKey()
  let vehicle = UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!

  func notice(_ sequence: Int64 = 7, revoked: [Notice.Revocation] = []) -> Notice {
    Notice(
      vehicle: vehicle, sequence: sequence, issued: 1_767_254_400,
      keys: [present.verificationKey, next.verificationKey], revoked: revoked)
  }

  func read(_ text: String, by keys: [SigningKey], after: Int64? = nil) throws(ProtocolError) -> Notice? {
    try Notice.read(Array(text.utf8), verifiedBy: keys.map(\.verificationKey), after: after)
  }

  func token(_ id: String, _ device: SigningKey) -> Token {
    Token(
      issuer: "arena2036", subject: "anna", vehicle: vehicle, steps: [StepID("left")!], notBefore: 0, expires: 1,
      id: id,
      device: device.verificationKey)
  }

  @Test("is read back by any of the keys that count, and by no other")
  func roundTrip() throws {
    let device = SigningKey()
    let notice = notice(revoked: [
      .init(.token("a"), until: 5), .init(.device(device.verificationKey.thumbprint), until: 6),
    ])
    #expect(try read(notice.signed(by: present), by: [present]) == notice)
    #expect(try read(notice.signed(by: next), by: [present, next]) == notice)
    #expect(throws: ProtocolError.unknownKey) { try read(notice.signed(by: next), by: [present]) }
    // The name of one key, and the signature of another.
    let parts = notice.signed(by: present).split(separator: ".")
    let input = "\(parts[0]).\(parts[1])"
    let forged = "\(input).\(Base64URL.encode(next.signature(for: Array(input.utf8))))"
    #expect(throws: ProtocolError.badSignature) { try read(forged, by: [present, next]) }
  }

  @Test("that is not newer is none, even by a key that counts no more")
  func older() throws {
    #expect(try read(notice(7).signed(by: present), by: [present], after: 7) == nil)
    #expect(try read(notice(6).signed(by: next), by: [present], after: 7) == nil)
    #expect(try read(notice(8).signed(by: present), by: [present], after: 7) == notice(8))
  }

  @Test("revokes one token, or every token of a device")
  func revokes() {
    let (lost, kept) = (SigningKey(), SigningKey())
    let notice = notice(revoked: [
      .init(.token("a"), until: 0), .init(.device(lost.verificationKey.thumbprint), until: 0),
    ])
    #expect(notice.revokes(token("a", kept)))
    #expect(notice.revokes(token("b", lost)))
    #expect(!notice.revokes(token("b", kept)))
    // What looks the same is not the same.
    let composed = Notice.Revocation(.token("\u{E9}"), until: 0)
    #expect(!self.notice(revoked: [composed]).revokes(token("e\u{301}", kept)))
  }

  @Test("with any character changed is refused")
  func changed() {
    let text = Array(notice().signed(by: present).utf8)
    for index in stride(from: 0, to: text.count, by: 5) {
      var changed = text
      changed[index] = changed[index] == 0x41 ? 0x42 : 0x41
      #expect(throws: ProtocolError.self, "byte \(index)") {
        try Notice.read(changed, verifiedBy: [present.verificationKey])
      }
    }
  }

  @Test("no other signed object is taken for one")
  func otherKinds() {
    let claims = notice().claims
    for kind in [SignedObject.Kind.token, .status, .vehicle, .command] {
      #expect(throws: ProtocolError.self) { try read(SignedObject.sign(claims, as: kind, by: present), by: [present]) }
    }
    #expect(throws: ProtocolError.self) {
      try Token(verifying: notice().signed(by: present), by: present.verificationKey)
    }
  }

  @Test(
    "that has another form is refused, though the operator has signed it",
    arguments: [
      #""seq":1,"iat":1,"revoked":[]"#, #""seq":1,"iat":1,"keys":[],"revoked":[]"#,
      #""seq":1,"iat":1,"keys":[KEY,KEY],"revoked":[]"#, #""seq":-1,"iat":1,"keys":[KEY],"revoked":[]"#,
      #""seq":1,"iat":1,"keys":[KEY],"revoked":{}"#, #""seq":1,"iat":1,"keys":[KEY],"revoked":[{"until":1}]"#,
      #""seq":1,"iat":1,"keys":[KEY],"revoked":[{"jti":"a"}]"#,
      #""seq":1,"iat":1,"keys":[KEY],"revoked":[{"jti":"","until":1}]"#,
      #""seq":1,"iat":1,"keys":[KEY],"revoked":[{"jkt":"short","until":1}]"#,
      #""seq":1,"iat":1,"keys":[KEY],"revoked":[{"jti":"a","jkt":"\#(String(repeating: "A", count: 43))","until":1}]"#,
      #""seq":1,"iat":1,"keys":[KEY],"revoked":[],"more":1"#,
      #""seq":1,"iat":1,"keys":[KEY],"revoked":[],"ext":{"a":1},"crit":["a"]"#,
      #""seq":1,"iat":1,"keys":[{"kty":"OKP","crv":"Ed25519","x":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}],"revoked":[]"#,
    ])
  func malformed(members: String) throws {
    let text = "{\"vehicle\":\"\(vehicle)\",\(members)}".split(separator: "KEY", omittingEmptySubsequences: false)
      .joined(separator: present.verificationKey.jwk.text)
    let claims = try JSON(parsing: Array(text.utf8))
    #expect(throws: ProtocolError.self) { try read(SignedObject.sign(claims, as: .notice, by: present), by: [present]) }
  }

  @Test("may have members that an old reader can do without, and no more than a packet holds")
  func limits() throws {
    var claims = try #require(notice().claims.object)
    claims.append(.init("ext", ["note": "later"]))
    #expect(try read(SignedObject.sign(.object(claims), as: .notice, by: present), by: [present]) == notice())
    let many = notice(revoked: (0..<200).map { .init(.token("token number \($0)"), until: 1) })
    #expect(throws: ProtocolError.malformed("larger than 8192 bytes")) {
      try read(many.signed(by: present), by: [present])
    }
  }
}
