import Domain
import Encoding
import Testing

@testable import StepProtocol

@Suite("Minors that rotate") struct RotatingMinorTests {
  let left = StepID("left")!
  let secret = try! BeaconSecret(jwk: ["kty": "oct", "k": .string(Base64URL.encode(0..<32))])

  @Test("last for a period, and the one before is accepted with them")
  func periods() {
    let minor = RotatingMinor(secret: secret, step: left, period: 10)
    #expect(minor.minor(at: 1_000) == minor.minor(at: 1_009))
    #expect(minor.minor(at: 1_009) != minor.minor(at: 1_010))
    #expect(minor.accepted(at: 1_010) == [minor.minor(at: 1_010), minor.minor(at: 1_000)])
    #expect(minor.change(after: 1_000) == 1_010)
    #expect(minor.change(after: 1_009) == 1_010)
    // The first period has none before it, and a clock that is not set is in it.
    #expect(minor.accepted(at: 0) == [minor.minor(at: 0), minor.minor(at: 0)])
    #expect(minor.minor(at: -1) == minor.minor(at: 0))
    #expect(minor.minor(at: .max) != minor.minor(at: 0))
  }

  @Test("differ by step and by secret, and take every value")
  func distinct() throws {
    func run(_ minor: RotatingMinor) -> [UInt16] { (0..<64).map { minor.minor(at: $0 * 8) } }
    let own = run(RotatingMinor(secret: secret, step: left))
    #expect(own != run(RotatingMinor(secret: secret, step: StepID("right")!)))
    #expect(own != run(RotatingMinor(secret: BeaconSecret(), step: left)))
    #expect(Set(own).count > 60)
  }

  @Test("a secret is a symmetric JWK of 32 bytes")
  func secrets() throws {
    #expect(try BeaconSecret(jwk: secret.jwk).bytes == secret.bytes)
    #expect(BeaconSecret().bytes != BeaconSecret().bytes)
    let short = Base64URL.encode(0..<31)
    for wrong: JSON in [
      [:], ["kty": "oct"], ["kty": "oct", "k": .string(short)], ["kty": "OKP", "k": secret.jwk["k"]!],
      SigningKey().jwk,
    ] {
      #expect(throws: KeyError.notJWK(expected: #"{"kty":"oct","k":…} of 32 bytes"#)) { try BeaconSecret(jwk: wrong) }
    }
  }
}
