import Domain
import Encoding
import Testing

@testable import StepProtocol

/// What a controller says of itself.
@Suite("About") struct AboutTests {
  private let signing = SigningKey()
  private let policy = PresencePolicy(methods: [.beacon], zone: .near, acceptsStatic: true)

  private func statement(_ outcome: Statement.Outcome) -> Statement {
    Statement(
      vehicle: .random(), step: StepID("left")!, position: .close, phase: .idle, fault: nil, sequence: 1,
      epoch: [UInt8](repeating: 1, count: 16), clock: 5,
      answer: .init(command: CommandDigest(of: []), nonce: [UInt8](repeating: 3, count: 16), outcome: outcome))
  }

  private func challenge(_ about: About?) -> Statement.Outcome {
    .challenge(.init([UInt8](repeating: 2, count: 16), policy: policy, about: about))
  }

  private func read(_ statement: Statement, ext: JSON? = nil) throws -> Statement {
    let payload = statement.payload(signedBy: signing)
    guard let ext else { return try Statement(payload: payload, verifiedBy: signing.verificationKey) }
    let claims = try SignedObject(parsing: JSON(parsing: payload)["statement"]!.string!, as: .status).payload
    let members = claims.object!.filter { $0.name != "ext" } + [.init("ext", ext)]
    let signed = SignedObject.sign(.object(members), as: .status, by: signing)
    return try Statement(
      payload: JSON.object([.init("statement", .string(signed))]).bytes, verifiedBy: signing.verificationKey)
  }

  @Test("an answer tells version and time where that was asked, and nothing otherwise")
  func told() throws {
    let told = statement(challenge(About(version: "0.1.0 (abc)", time: 1_800_000_000_123)))
    #expect(try read(told) == told)
    #expect(!String(decoding: statement(challenge(nil)).payload(signedBy: signing), as: UTF8.self).contains("about"))
  }

  @Test(
    "a report of another form is refused",
    arguments: [
      ["about": 1], ["about": ["version": "1"]], ["about": ["version": "", "time": 1]],
      ["about": ["version": "1\n", "time": 1]], ["about": ["version": "ä", "time": 1]],
      ["about": ["version": "1", "time": -1]], ["about": ["version": "1", "time": 1, "more": 1]],
      ["about": ["version": .string(String(repeating: "1", count: 65)), "time": 1]],
    ] as [JSON])
  func malformed(ext: JSON) {
    #expect(throws: ProtocolError.self) { try read(statement(challenge(nil)), ext: ext) }
  }

  @Test("only an answer with a challenge has one")
  func withoutChallenge() {
    #expect(throws: ProtocolError.self) {
      try read(statement(.obeyed), ext: ["about": ["version": "1", "time": 1]])
    }
  }
}
