import Domain
import Encoding
import Testing

@testable import StepProtocol

/// What a statement says of the road.
@Suite("Watch") struct WatchTests {
  private let signing = SigningKey()

  private func statement(_ outcome: Statement.Outcome) -> Statement {
    Statement(
      vehicle: .random(), step: StepID("left")!, position: .close, phase: .idle, fault: nil, sequence: 1,
      epoch: [UInt8](repeating: 1, count: 16), clock: 5,
      answer: .init(command: CommandDigest(of: []), nonce: [UInt8](repeating: 3, count: 16), outcome: outcome))
  }

  private func challenge(_ watch: Watch?) -> Statement.Outcome {
    let policy = PresencePolicy(methods: [.beacon], zone: .near, acceptsStatic: true)
    return .challenge(.init([UInt8](repeating: 2, count: 16), policy: policy, watch: watch))
  }

  private func read(_ payload: [UInt8]) throws -> Statement {
    try Statement(payload: payload, verifiedBy: signing.verificationKey)
  }

  /// The statement with another member.
  private func read(_ statement: Statement, _ name: String, _ value: JSON) throws -> Statement {
    let payload = statement.payload(signedBy: signing)
    let claims = try SignedObject(parsing: JSON(parsing: payload)["statement"]!.string!, as: .status).payload
    let members = claims.object!.filter { $0.name != name } + [.init(name, value)]
    let signed = SignedObject.sign(.object(members), as: .status, by: signing)
    return try read(JSON.object([.init("statement", .string(signed))]).bytes)
  }

  @Test("a statement tells what the guard knows, and a later word is kept")
  func told() throws {
    for watch in Watch.known + [.other("wet")] {
      let told = statement(challenge(watch))
      #expect(try read(told.payload(signedBy: signing)) == told)
    }
    let silent = statement(challenge(nil)).payload(signedBy: signing)
    #expect(!String(decoding: silent, as: UTF8.self).contains("watch"))
    #expect(throws: ProtocolError.self) { try read(statement(challenge(nil)), "ext", ["watch": 1]) }
    #expect(throws: ProtocolError.self) { try read(statement(challenge(nil)), "ext", ["watch": "Not a word"]) }
    #expect(throws: ProtocolError.self) { try read(statement(.obeyed), "ext", ["watch": "clear"]) }
  }

  @Test("a refusal tells what comes, and when")
  func oncoming() throws {
    let told = statement(.refused(Refusal(.approaching, oncoming: Oncoming(category: "bicycle", arrival: 1900))))
    #expect(try read(told.payload(signedBy: signing)) == told)
    for ext: JSON in [
      ["oncoming": 1], ["oncoming": ["category": "bicycle"]], ["oncoming": ["category": "A b", "arrival": 1]],
      ["oncoming": ["category": "car", "arrival": -1]], ["oncoming": ["category": "car", "arrival": 1, "more": 1]],
    ] {
      #expect(throws: ProtocolError.self) {
        try read(told, "refusal", ["code": "approaching", "retry": true, "ext": ext])
      }
    }
    // An older reader passes over what it does not know.
    let plain = try read(told, "refusal", ["code": "approaching", "retry": true, "ext": ["later": 1]])
    #expect(plain.answer?.refusal == Refusal(.approaching))
    #expect(Oncoming(category: "light_truck", arrival: 1).phrase == "a light truck")
    #expect(Oncoming(category: "other", arrival: 1).phrase == "something")
  }
}
