import Certificates
import Domain
import StepProtocol
import Testing

@testable import Operator

@Suite("The operator's ledger") struct LedgerTests {
  let key = SigningKey().verificationKey
  let phone = SigningKey().verificationKey
  let tablet = SigningKey().verificationKey
  let car = UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!
  let van = UUID("00000000-0000-4000-8000-000000000001")!

  func token(_ id: String, _ vehicle: UUID, _ device: VerificationKey, until expires: Int64 = 2_000) -> Token {
    Token(
      issuer: "o", subject: "anna", vehicle: vehicle, steps: [.left], notBefore: 0, expires: expires, id: id,
      device: device)
  }

  func ledger(_ tokens: Token...) -> Ledger {
    var ledger = Ledger()
    for token in tokens { ledger.note(.init(token, key: key.thumbprint)) }
    return ledger
  }

  @Test("is read back from its text, and a damaged one is not guessed at")
  func roundTrip() throws {
    var ledger = ledger(token("a", car, phone), token("b", van, tablet))
    #expect(ledger.withdraw(.token("a"), now: 1_000).map(\.id) == ["a"])
    #expect(ledger.withdraw(.device(tablet.thumbprint), now: 1_000).map(\.id) == ["b"])
    _ = ledger.notice(for: car, keys: [key], now: 1_000)
    let text = ledger.text
    #expect(try Ledger(parsing: Array(text.utf8)) == ledger)
    #expect(try Ledger(parsing: Array(Ledger().text.utf8)) == Ledger())
    for length in stride(from: 0, to: text.utf8.count - 2, by: 7) {
      #expect(throws: Ledger.Damage.self) { try Ledger(parsing: Array(text.utf8.prefix(length))) }
    }
    #expect(throws: Ledger.Damage.self) { try Ledger(parsing: Array(#"{"seq":1,"tokens":[{}],"revoked":[]}"#.utf8)) }
  }

  @Test("a notice tells a vehicle what concerns it, until the tokens have ended")
  func notices() {
    var ledger = ledger(token("a", car, phone), token("b", van, phone), token("c", car, tablet, until: 1_500))
    _ = ledger.withdraw(.token("a"), now: 1_000)
    _ = ledger.withdraw(.device(tablet.thumbprint), now: 1_000)
    let notice = ledger.notice(for: car, keys: [key], now: 1_000)
    #expect(notice.revoked == [.init(.token("a"), until: 2_000), .init(.device(tablet.thumbprint), until: 1_500)])
    #expect(ledger.notice(for: van, keys: [key], now: 1_000).revoked == [])
    #expect(ledger.notice(for: car, keys: [key], now: 1_600).revoked == [.init(.token("a"), until: 2_000)])
    #expect(ledger.notice(for: car, keys: [key], now: 2_000).revoked == [])
  }

  @Test("a device that was revoked, and has access again, is revoked again")
  func again() {
    var ledger = ledger(token("a", car, phone))
    #expect(ledger.withdraw(.device(phone.thumbprint), now: 1_000).map(\.id) == ["a"])
    ledger.note(.init(token("b", car, phone, until: 4_000), key: key.thumbprint))
    #expect(ledger.current(at: 3_000).map(\.id) == ["b"])
    #expect(ledger.withdrawn(.device(phone.thumbprint), now: 3_000).isEmpty)
    for subject in [Notice.Subject.token("b"), .device(phone.thumbprint)] {
      var ledger = ledger
      #expect(ledger.withdraw(subject, now: 3_000).map(\.id) == ["b"])
      #expect(ledger.notice(for: car, keys: [key], now: 3_000).revoked == [.init(subject, until: 4_000)])
      #expect(ledger.current(at: 3_000).isEmpty)
      #expect(ledger.withdrawn(subject, now: 3_000).map(\.id) == ["b"])
    }
  }

  @Test("a notice's number rises, also after the ledger came back from a backup, and when the clock was set back")
  func sequence() {
    var ledger = Ledger()
    let backup = ledger
    let first = ledger.notice(for: car, keys: [key], now: 1_000)
    let second = ledger.notice(for: car, keys: [key], now: 1_000)
    let third = ledger.notice(for: car, keys: [key], now: 500)
    #expect([first, second, third].map(\.sequence) == [1_000, 1_001, 1_002])
    var restored = backup
    #expect(restored.notice(for: car, keys: [key], now: 2_000).sequence > third.sequence)
  }

  @Test("a server's part takes the place of what it has read, and what came since then stays")
  func replaced() {
    func certificate(_ number: UInt8) -> Ledger.IssuedNumber {
      .init(number: SerialNumber(bytes: [number]), end: 5_000)
    }
    var ledger = Ledger()
    for (number, id) in ["a", "b", "c"].enumerated() {
      ledger.note(.init(token(id, car, phone), key: key.thumbprint, certificate: certificate(UInt8(number))))
    }
    _ = ledger.withdraw(.token("a"), now: 1_000)
    _ = ledger.notice(for: car, keys: [key], now: 1_000)
    let (read, b) = (ledger, ledger.tokens[1])
    ledger.note(.init(token("d", car, tablet), key: key.thumbprint, certificate: certificate(9)))
    _ = ledger.withdraw(.token("d"), now: 1_100)
    // It has forgotten the first, and keeps the third to itself.
    let known = Ledger(
      tokens: [b], withdrawals: [.init(.token("b"), until: 2_000, since: 1_050)],
      revokedCertificates: [.init(certificate(1), since: 1_050)])
    ledger.replace(read, by: known)
    #expect(ledger.tokens.map(\.id) == ["b", "d"])
    #expect(ledger.withdrawals.map(\.subject) == [.token("b"), .token("d")])
    #expect(ledger.revokedCertificates.map(\.certificate) == [certificate(1), certificate(9)])
    #expect(ledger.sequence == read.sequence && !ledger.hasSameEntries(as: known))
    let later = ledger
    ledger.replace(later, by: known)
    #expect(ledger.hasSameEntries(as: known))
  }

  @Test("what has ended or is unknown cannot be withdrawn")
  func nothing() {
    var ledger = ledger(token("a", car, phone))
    #expect(ledger.withdraw(.token("b"), now: 1_000).isEmpty)
    #expect(ledger.withdraw(.token("a"), now: 2_000).isEmpty)
    #expect(ledger.withdrawals.isEmpty)
    #expect(ledger.withdraw(.device(phone.thumbprint), now: 1_000).map(\.id) == ["a"])
    #expect(ledger.withdraw(.token("a"), now: 1_000).isEmpty)
  }
}
