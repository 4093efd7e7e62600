import Booking
import Domain
import FleetTestSupport
import Operator
import StepProtocol
import Store
import Testing

@testable import API

/// The database's tokens, and the operator's ledger.
@Suite struct TokenTableTests {
  private let phone = TestDevice()

  private func token(
    _ id: String, _ bench: Bench, for device: TestDevice, on vehicle: String = "car", ends: Int64 = hour
  ) async throws -> Ledger.Entry {
    Ledger.Entry(
      id: id, rider: "anna", vehicle: UUID(try await bench.id(of: vehicle))!, steps: [StepID("left")!],
      notBefore: bench.now, expires: bench.now + ends, device: device.thumbprint,
      key: bench.issuer.key.verificationKey.thumbprint,
      certificate: Ledger.IssuedNumber(serial: "0A", end: bench.now + 86_400))
  }

  private func have(_ bench: Bench, _ tokens: [Ledger.Entry], _ withdrawals: [Ledger.Withdrawal] = []) {
    bench.issuer.have(Ledger(tokens: tokens, withdrawals: withdrawals, revokedCertificates: []))
  }

  private func rows(_ bench: Bench) async throws -> [String] {
    try await bench.store.read { try $0.run("SELECT jti FROM token ORDER BY jti").map { $0.text("jti") } }
  }

  @Test(arguments: Engine.forRules)
  func `what an earlier version kept in the ledger is taken in, and nothing is lost`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.ride(phone)
    _ = try await bench.access(to: ride.id, phone)
    _ = try await bench.ride(TestDevice(), "van", by: "bob")
    // So it left the database: no rows; the second token is revoked; of the third the ledger knows nothing.
    try await bench.run("DELETE FROM token")
    try await bench.run("UPDATE access SET standing = 'withdrawn' WHERE jti = 'token 2'")
    let (now, other) = (bench.now, TestDevice())
    let tokens = [
      try await token("token 1", bench, for: phone), try await token("token 2", bench, for: phone),
      try await token("by hand", bench, for: other), try await token("revoked by hand", bench, for: other),
      try await token("ended", bench, for: other, ends: -86_400),
    ]
    have(
      bench, tokens,
      [
        .init(.token("token 2"), until: now + hour, since: now - 7),
        .init(.token("revoked by hand"), until: now + hour, since: now - 5),
      ])
    #expect(await bench.service.takeInFolder())
    // One ended, but not its certificate.
    #expect(try await rows(bench) == ["by hand", "ended", "revoked by hand", "token 1", "token 2", "token 3"])
    #expect(try await bench.revoked() == [.token("revoked by hand"), .token("token 2")])
    #expect(try await bench.untold() == ["car"])
    #expect(try await bench.standings() == ["given", "withdrawn", "given"])
    // The folder has what commands by hand have to know.
    let kept = bench.issuer.now.ledger
    #expect(Set(kept.tokens.map(\.id)) == ["by hand", "ended", "revoked by hand", "token 2"])
    #expect(kept.tokens.contains(tokens[2]))
    #expect(kept.withdrawals.map(\.since) == [now - 5, now - 7])
    // Once more has no effect, also for another server.
    try await bench.tell()
    #expect(await bench.service.takeInFolder())
    #expect(try await bench.untold().isEmpty)
    let second = FleetService(store: bench.store, issuer: bench.issuer, logger: bench.service.logger) { now }
    #expect(await second.takeInFolder())
    #expect(try await bench.untold().isEmpty)
    #expect(try await rows(bench).count == 6)
    #expect(bench.issuer.now.ledger == kept)
    #expect(try await bench.service.revoke(.device(phone.thumbprint)) == 1)
  }

  @Test(arguments: Engine.forRules)
  func `what is given and revoked by hand counts at once, or within a minute`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let given = try await token("by hand", bench, for: phone, on: "van")
    have(bench, [given])
    // The command asks the folder.
    #expect(try await bench.service.revoke(.device(phone.thumbprint)) == 1)
    #expect(try await bench.untold() == ["van"])
    #expect(bench.issuer.now.ledger.withdrawals.map(\.subject) == [.device(phone.thumbprint)])
    try await bench.tell()
    // Whatever else is given to the device by hand.
    let (again, other) = (
      try await token("again", bench, for: phone), try await token("other", bench, for: TestDevice())
    )
    have(bench, [given, again, other], [.init(.token("other"), until: other.expires, since: bench.now)])
    try await bench.service.tidy()
    #expect(try await bench.untold() == ["car"])
    #expect(Set(try await bench.revoked()) == [.device(phone.thumbprint), .token("other")])
  }

  @Test(arguments: Engine.forRules)
  func `a device that is revoked by hand has no access until its tokens end`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.ride(phone)
    let given = try await token("by hand", bench, for: phone)
    have(bench, [given], [.init(.device(phone.thumbprint), until: given.expires, since: bench.now)])
    try await bench.service.tidy()
    #expect(try await bench.revoked() == [.device(phone.thumbprint)])
    #expect(try await bench.standings() == ["withdrawn"])
    #expect(await refusal { _ = try await bench.access(to: ride.id, phone) } == .deviceRevoked)
    bench.wait(hour)
    #expect(await refusal { _ = try await bench.access(to: ride.id, phone) } == nil)
    // For good, if the server revokes it.
    _ = try await bench.service.revoke(.device(phone.thumbprint))
    bench.wait(40 * 86_400)
    try await bench.service.tidy()
    let later = try await bench.book("car", 0, 1)
    #expect(await refusal { _ = try await bench.access(to: later.id, phone) } == .deviceRevoked)
  }

  @Test(arguments: Engine.forRules)
  func `the broker refuses who has no token left since one was revoked`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let rides = [try await bench.ride(phone), try await bench.ride(phone, "van", by: "bob")]
    _ = try await bench.access(to: rides[0].id, phone)
    let now = bench.now
    func refused() async throws -> [Ledger.RevokedCertificate] {
      try await bench.store.read { try TokenTable.known(at: now, in: $0).revokedCertificates }
    }
    #expect(try await bench.store.write { try TokenTable.withdraw(["token 1"], at: now, in: $0) } == 1)
    #expect(try await refused() == [])
    #expect(try await bench.store.write { try TokenTable.withdraw(["token 3"], at: now + 1, in: $0) } == 1)
    let end = bench.interval(0, 3).end + 900
    #expect(
      try await refused() == ["01", "03"].map { .init(Ledger.IssuedNumber(serial: $0, end: end)!, since: now) })
  }

  @Test(arguments: Engine.forRules)
  func `what ended is forgotten a day later, and its access is still exported`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.ride(phone)
    _ = try await bench.service.revoke(.booking(ride.id))
    let end = bench.interval(0, 3).end + 900
    bench.wait(end + 86_400 - bench.now)
    try await bench.service.tidy()
    #expect(try await rows(bench) == ["token 1"])
    bench.wait(1)
    // A clock that is not right forgets nothing.
    bench.issuer.fail(IssuerError.failed("this computer's clock is not set"))
    await #expect(throws: IssuerError.self) { try await bench.service.tidy() }
    #expect(try await rows(bench) == ["token 1"])
    bench.issuer.fail(nil)
    try await bench.service.tidy()
    #expect(try await rows(bench) == [])
    #expect(try await bench.standings() == ["withdrawn"])
    #expect(bench.issuer.now.ledger.tokens.isEmpty && bench.issuer.now.ledger.withdrawals.isEmpty)
  }

  @Test(arguments: Engine.forRules)
  func `one notice can revoke all tokens of a vehicle, whoever gave them`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.book("car", 0, 1)
    var tokens: [Ledger.Entry] = []
    for number in 0..<63 { tokens.append(try await token("\(number)", bench, for: TestDevice())) }
    have(bench, tokens)
    try await bench.service.tidy()
    _ = try await bench.access(to: ride.id, phone)
    #expect(
      await refusal { _ = try await bench.access(to: ride.id, phone) } == .tooMuchAccess(until: bench.now + hour))
    #expect(bench.issuer.now.grants.count == 1, "nothing is signed for nobody")
  }

  @Test(arguments: Engine.forRules)
  func `a key does not end before the tokens that it has signed`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    _ = try await bench.ride(phone)
    _ = try await bench.ride(TestDevice(), "van", by: "bob")
    try await bench.service.retireKey()
    #expect(bench.issuer.now.lasting.isEmpty)
    let old = SigningKey().verificationKey.thumbprint.description
    try await bench.run("UPDATE token SET key = ? WHERE jti = 'token 1'", [.text(old)])
    try await bench.service.retireKey()
    #expect(bench.issuer.now.lasting.map(\.id) == ["token 1"])
    _ = try await bench.service.revoke(.device(phone.thumbprint))
    try await bench.service.retireKey()
    #expect(bench.issuer.now.lasting.isEmpty)
  }

  @Test(arguments: Engine.forRules)
  func `a server with other keys than the database's does not start`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    for _ in 0..<2 { try await bench.service.checkOperator() }
    let (stranger, now) = (PlayedIssuer(), bench.now)
    let other = FleetService(store: bench.store, issuer: stranger, logger: bench.service.logger) { now }
    let (key, expected) = (stranger.key.verificationKey.thumbprint, bench.issuer.key.verificationKey.thumbprint)
    await #expect(throws: OtherOperator(key: key.description, expected: expected.description)) {
      try await other.checkOperator()
    }
    // A change of keys is the database's, too.
    _ = try await other.rotateKeys()
    try await other.checkOperator()
    await #expect(throws: OtherOperator.self) { try await bench.service.checkOperator() }
  }
}
