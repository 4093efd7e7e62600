import Cryptography
import Domain
import Encoding
import Testing

@testable import StepProtocol

@Suite("Statements and tokens") struct StatementTests {
  let key = SigningKey()
  let step = StepID("left")!
  let uuid = UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!

  func statement(_ answer: Statement.Answer?, fault: Fault? = nil) -> Statement {
    Statement(
      vehicle: uuid, step: step, position: fault == nil ? .open : .unknown, phase: fault == nil ? .idle : .fault,
      fault: fault, sequence: 9, epoch: randomBytes(16), clock: 1234, answer: answer)
  }

  @Test("what is signed is read back, in every form")
  func roundTrip() throws {
    let digest = CommandDigest(of: [1, 2, 3])
    let nonce = randomBytes(16)
    let answers: [Statement.Answer?] = [
      nil, .init(command: digest, nonce: nonce, outcome: .obeyed),
      .init(
        command: digest, nonce: nonce,
        outcome: .challenge(
          .init(randomBytes(16), policy: .init(methods: [.beacon, .qr], zone: .immediate, acceptsStatic: false)))),
      .init(command: digest, nonce: nil, outcome: .refused(Refusal(.malformed))),
    ]
    for answer in answers {
      let original = statement(answer)
      #expect(try Statement(payload: original.payload(signedBy: key), verifiedBy: key.verificationKey) == original)
    }
    let faulty = statement(nil, fault: .obstructed)
    #expect(try Statement(payload: faulty.payload(signedBy: key), verifiedBy: key.verificationKey) == faulty)
  }

  @Test("the plain fields beside the statement are not believed")
  func plainFields() throws {
    let signed = try JSON(parsing: statement(nil).payload(signedBy: key))["statement"]!
    let lie: JSON = ["position": "close", "phase": "moving", "statement": signed]
    #expect(try Statement(payload: lie.bytes, verifiedBy: key.verificationKey).position == .open)
  }

  @Test("every claim that is missing, of another kind or unknown is refused, though the controller signed it")
  func strictClaims() throws {
    let claims = try SignedObject(
      parsing: try JSON(
        parsing: statement(.init(command: CommandDigest(of: []), nonce: randomBytes(16), outcome: .obeyed))
          .payload(signedBy: key))["statement"]!.string!, as: .status
    ).payload
    func read(_ claims: JSON) throws -> Statement {
      let signed = SignedObject.sign(claims, as: .status, by: key)
      return try Statement(
        payload: JSON.object([.init("statement", .string(signed))]).bytes, verifiedBy: key.verificationKey)
    }
    _ = try read(claims)
    for name in ["vehicle", "step", "position", "phase", "seq", "epoch", "clock", "command"] {
      #expect(throws: ProtocolError.self, "without \(name)") { try read(claims.without(name)) }
    }
    for member in claims.object! {
      for wrong in [JSON.null, true, -1, .number(1.5), "", [], [:], "X"] as [JSON] {
        let changed = JSON.object(claims.object!.map { $0.name == member.name ? .init(member.name, wrong) : $0 })
        #expect(throws: ProtocolError.self, "\(member.name) \(wrong)") { try read(changed) }
      }
    }
    #expect(throws: ProtocolError.malformed("extra is not a member that version 1 knows")) {
      try read(.object(claims.object! + [.init("extra", 1)]))
    }
    #expect(throws: ProtocolError.malformed("fault and phase do not agree")) {
      try read(.object(claims.object! + [.init("fault", "timeout")]))
    }
  }

  /// What a controller of a later version says: some claims, changed, and signed.
  func read(
    _ answer: Statement.Outcome = .obeyed, _ change: ([JSON.Member]) -> [JSON.Member]
  ) throws -> Statement {
    let original = statement(.init(command: CommandDigest(of: []), nonce: randomBytes(16), outcome: answer))
    let text = try JSON(parsing: original.payload(signedBy: key))["statement"]!.string!
    let claims = try SignedObject(parsing: text, as: .status).payload
    let signed = SignedObject.sign(.object(change(claims.object!)), as: .status, by: key)
    return try Statement(
      payload: JSON.object([.init("statement", .string(signed))]).bytes, verifiedBy: key.verificationKey)
  }

  @Test("words of a later version are kept, and the retry is the one that came")
  func laterWords() throws {
    let refusal: JSON = ["code": "token_revoked", "retry": true]
    let refused = try read { $0 + [.init("refusal", refusal)] }
    #expect(refused.answer?.refusal == Refusal(.other("token_revoked"), retryCanHelp: true))
    let busy = try read { $0 + [.init("refusal", ["code": "busy", "retry": false])] }
    #expect(busy.answer?.refusal == Refusal(.busy, retryCanHelp: false))

    func with(_ phase: JSON, _ fault: JSON?) throws -> Statement {
      try read { claims in
        claims.filter { $0.name != "phase" } + [.init("phase", phase)] + (fault.map { [.init("fault", $0)] } ?? [])
      }
    }
    #expect(try with("opening", nil).phase == .other("opening"))
    #expect(try with("opening", "tired").fault == .other("tired"))
    #expect(try with("fault", "tired").fault == .other("tired"))
    #expect(throws: ProtocolError.malformed("a fault without its kind")) { try with("fault", nil) }
    #expect(throws: ProtocolError.malformed("fault and phase do not agree")) { try with("idle", "tired") }
  }

  @Test("of a policy, unknown ways to prove presence are left out, and an unknown zone is the nearest")
  func laterPolicy() throws {
    let known = PresencePolicy(methods: [.beacon], zone: .near, acceptsStatic: true)
    func policy(_ policy: JSON?) throws -> PresencePolicy? {
      let statement = try read(.challenge(.init(randomBytes(16), policy: known))) { claims in
        claims.filter { $0.name != "policy" } + (policy.map { [.init("policy", $0)] } ?? [])
      }
      guard case .challenge(let challenge)? = statement.answer?.outcome else { return nil }
      return challenge.policy
    }
    #expect(try policy(["proofs": ["beacon"], "zone": "near", "static": true]) == known)
    #expect(
      try policy(["proofs": ["uwb", "nfc"], "zone": "two_metres", "static": false, "ext": ["x": 1]])
        == PresencePolicy(methods: [.nfc], zone: .immediate, acceptsStatic: false))
    #expect(try policy(["proofs": [], "zone": "far", "static": true])?.zone == .immediate)
    #expect(throws: ProtocolError.malformed("challenge and policy go together")) { try policy(nil) }
    for wrong: JSON in [
      ["proofs": ["Beacon"], "zone": "near", "static": true], ["proofs": [1], "zone": "near", "static": true],
      ["proofs": ["beacon"], "zone": "", "static": true], ["proofs": ["beacon"], "zone": "near", "static": 1],
      ["proofs": ["beacon"], "zone": "near"], [:], [],
    ] {
      #expect(throws: ProtocolError.self, "\(wrong.text)") { try policy(wrong) }
    }
  }

  @Test("an extension is ignored, and a critical one makes the statement malformed")
  func extensions() throws {
    func with(_ ext: JSON?, _ crit: JSON?) throws -> Statement {
      try read { $0 + (ext.map { [.init("ext", $0)] } ?? []) + (crit.map { [.init("crit", $0)] } ?? []) }
    }
    #expect(try with(["x": ["phase": "fault"], "": []], nil).phase == .idle)
    #expect(try with([:], nil).phase == .idle)
    #expect(throws: ProtocolError.malformed("the statement takes a newer version: x must be understood")) {
      try with(["y": 1, "x": 2], ["x"])
    }
    let notCritical = ProtocolError.malformed("crit is not a list of members of ext, each once")
    for crit: JSON in [[], nil, "x", ["x", "x"], ["z"], ["x", "z"], [1], ["x": 1], ["phase"], true] {
      #expect(throws: notCritical, "\(crit.text)") { try with(["x": 1], crit) }
    }
    #expect(throws: notCritical) { try with(nil, ["x"]) }
    for ext: JSON in [nil, [], "x", 1, true] {
      #expect(throws: ProtocolError.malformed("ext is not an object"), "\(ext.text)") { try with(ext, nil) }
    }
  }

  @Test("another controller's statement is refused")
  func otherController() {
    let payload = statement(nil).payload(signedBy: key)
    #expect(throws: ProtocolError.unknownKey) {
      try Statement(payload: payload, verifiedBy: SigningKey().verificationKey)
    }
  }

  @Test("a token is read back, and refused in every other form")
  func tokens() throws {
    let device = SigningKey().verificationKey
    let token = Token(
      issuer: "fleet", subject: "alice", vehicle: uuid, steps: [step], notBefore: 10, expires: 20, device: device)
    #expect(try Token(verifying: token.signed(by: key), by: key.verificationKey) == token)
    #expect(throws: ProtocolError.unknownKey) {
      try Token(verifying: token.signed(by: key), by: SigningKey().verificationKey)
    }
    let endless = Token(
      issuer: "fleet", subject: "alice", vehicle: uuid, steps: [step], notBefore: 20, expires: 20, device: device)
    #expect(throws: ProtocolError.malformed("exp is not after nbf")) {
      try Token(verifying: endless.signed(by: key), by: key.verificationKey)
    }
    let claims = try SignedObject(parsing: token.signed(by: key), as: .token).payload
    for member in claims.object! {
      let without = SignedObject.sign(claims.without(member.name), as: .token, by: key)
      #expect(throws: ProtocolError.self, "without \(member.name)") {
        try Token(verifying: without, by: key.verificationKey)
      }
    }
  }
}
