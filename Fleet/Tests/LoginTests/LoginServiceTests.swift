import Encoding
import FleetTestSupport
import Foundation
import Hummingbird
import Logging
import Store
import Synchronization
import Testing
import Web

@testable import Login

/// A server's login without a network: a clock that is set, mail that is kept, a database in a folder that goes away.
final class Bench: Sendable {
  let service: LoginService
  let store: any Store
  private let database: TestDatabase
  let mail = MailBox()
  final class MailBox: Mailer {
    private let messages = Mutex<[Mail]>([])
    func send(_ mail: Mail) { messages.withLock { $0.append(mail) } }
    var all: [Mail] { messages.withLock { $0 } }
  }

  init(_ engine: Engine = .sqlite, burst: Int64 = 1000) async throws {
    database = try engine.make()
    store = database.store
    try await store.migrate(LoginStore.migrations)
    let now = Clocks()
    clocks = now
    service = LoginService(
      settings: LoginSettings(origin: "https://fleet.example", terms: "Be kind.", burst: burst), store: store,
      mailer: mail,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, clock: { now.time.withLock { $0 } })
  }

  /// Another server with the same database.
  func server(isShared: Bool) -> LoginService {
    LoginService(
      settings: LoginSettings(origin: "https://fleet.example", terms: "Be kind.", isShared: isShared), store: store,
      mailer: mail, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, clock: { [clocks] in clocks.now })
  }

  final class Clocks: Sendable {
    let time = Mutex<Int64>(1_800_000_000)
    var now: Int64 { time.withLock { $0 } }
  }
  private let clocks: Clocks
  var now: Int64 { clocks.time.withLock { $0 } }
  func wait(_ seconds: Int64) { clocks.time.withLock { $0 += seconds } }

  /// The next message to that address, after those that were there.
  func message(to address: String, after count: Int = 0) async throws -> Mail {
    for _ in 0..<12_000 {
      let messages = mail.all.filter { $0.to.description == address }
      if messages.count > count { return messages[count] }
      try await Task.sleep(for: .milliseconds(5))
    }
    throw Missing()
  }
  struct Missing: Error {}

  static func code(in mail: Mail) -> String { String(mail.subject.suffix(6)) }

  func create(_ email: String, _ password: String = "correct horse", after count: Int = 0) async throws -> String {
    try await service.createAccount(
      email: email, password: password, terms: service.settings.termsVersion, from: "net")
    return Self.code(in: try await message(to: email, after: count))
  }

  func account(_ email: String, _ password: String = "correct horse") async throws {
    try await service.confirmAccount(email: email, code: try await create(email, password), from: "net")
  }

  func decide(
    _ code: String, _ email: String, _ password: String = "correct horse", allow: Bool = true, terms: String? = nil,
    from network: String = "net"
  ) async throws {
    try await service.decide(
      .init(userCode: code, email: email, password: password, isApproved: allow, terms: terms), from: network)
  }

  func proof(_ device: Device, _ path: String = "/oauth/token", _ method: String = "POST", accessToken: String? = nil)
    -> String
  {
    device.proof(
      device.claims(
        method, "https://fleet.example\(path)", id: UUID().uuidString, at: now, accessToken: accessToken))
  }

  func tokens(_ grant: LoginService.Grant, _ device: Device) async throws -> Tokens {
    try await service.tokens(for: grant, proof: [proof(device)], from: "net")
  }

  func login(_ device: Device, _ email: String) async throws -> Tokens {
    let codes = try await service.authorizeDevice(from: "net")
    try await decide(codes.userCode.description, email)
    return try await tokens(.device(code: codes.deviceCode), device)
  }

  func caller(
    _ device: Device, _ accessToken: String, _ path: String = "/v1/account", proof given: String? = nil,
    scheme: String = "DPoP"
  ) async throws -> String {
    let proof = given ?? proof(device, path, "GET", accessToken: accessToken)
    let request = Request(
      head: .init(
        method: .get, scheme: "https", authority: "elsewhere.example", path: path + "?q=1",
        headerFields: [.authorization: "\(scheme) \(accessToken)", .dpop: proof]),
      body: .init(buffer: .init()))
    return try await service.session(of: request).session.account
  }
}

/// The error that something throws.
func oauthError(_ work: () async throws -> Void) async -> OAuthError? {
  do {
    try await work()
    return nil
  } catch { return error as? OAuthError }
}

func problem(_ work: () async throws -> Void) async -> String? {
  do {
    try await work()
    return nil
  } catch { return (error as? Problem)?.code ?? "\(error)" }
}

@Suite("Logins")
struct LoginServiceTests {
  let device = Device()
  let email = "ada@example.org"

  @Test("a device is logged in when its code is allowed, once", arguments: Engine.present)
  func deviceGrant(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    let codes = try await bench.service.authorizeDevice(from: "net")
    let grant = LoginService.Grant.device(code: codes.deviceCode)
    #expect(await oauthError { _ = try await bench.tokens(grant, device) } == .authorizationPending)
    #expect(await oauthError { _ = try await bench.tokens(grant, device) } == .slowDown(interval: 8))
    try await bench.decide(codes.userCode.description.lowercased(), email)
    let tokens = try await bench.tokens(grant, device)
    let account = try await bench.caller(device, tokens.access)
    #expect(account == (try await bench.service.store.account(of: EmailAddress(email)!)?.account.id))
    #expect(await oauthError { _ = try await bench.tokens(grant, device) }?.code == "invalid_grant")
    // Nor can the code be allowed again.
    #expect(await problem { try await bench.decide(codes.userCode.description, email) } == "wrong_code")
  }

  @Test("a code that was refused, or has expired, gives no token", arguments: Engine.present)
  func refused(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    let refused = try await bench.service.authorizeDevice(from: "net")
    try await bench.decide(refused.userCode.description, email, allow: false)
    #expect(
      await oauthError { _ = try await bench.tokens(.device(code: refused.deviceCode), device) } == .accessDenied)
    let late = try await bench.service.authorizeDevice(from: "net")
    try await bench.decide(late.userCode.description, email)
    bench.wait(600)
    #expect(await oauthError { _ = try await bench.tokens(.device(code: late.deviceCode), device) } == .expiredToken)
    let later = try await bench.service.authorizeDevice(from: "net")
    bench.wait(600)
    #expect(await problem { try await bench.decide(later.userCode.description, email) } == "wrong_code")
  }

  @Test("a login that was allowed, and not fetched yet, ends with all others", arguments: Engine.present)
  func allowedLogins(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    var password = "correct horse"
    // Somebody else knows the password, and has allowed a login of their own.
    func allowed() async throws -> LoginService.Grant {
      let codes = try await bench.service.authorizeDevice(from: "net")
      try await bench.decide(codes.userCode.description, email, password)
      return .device(code: codes.deviceCode)
    }
    func isOver(_ grant: LoginService.Grant) async -> Bool {
      await oauthError { _ = try await bench.tokens(grant, Device()) }?.code == "invalid_grant"
    }
    var grant = try await allowed()
    let tokens = try await bench.login(device, email)
    let id = try await bench.caller(device, tokens.access)
    let session = try #require(try await bench.service.store.sessions(of: id).first)
    try await bench.service.changePassword(of: session, from: password, to: "battery staple")
    password = "battery staple"
    #expect(await isOver(grant))
    #expect(try await bench.caller(device, tokens.access) == id)

    grant = try await allowed()
    let count = bench.mail.all.filter { $0.to.description == email }.count
    try bench.service.requestReset(email: email, from: "net")
    let code = Bench.code(in: try await bench.message(to: email, after: count))
    try await bench.service.resetPassword(email: email, code: code, password: "horse battery", from: "net")
    password = "horse battery"
    #expect(await isOver(grant))

    let codes = try await bench.service.authorizeDevice(from: "net")
    try await bench.decide(codes.userCode.description, email, password)
    let renewed = try await bench.tokens(.device(code: codes.deviceCode), device)
    grant = try await allowed()
    try await bench.service.revoke(renewed.refresh, everywhere: true)
    #expect(await isOver(grant))

    // It was checked, and has changed before it counts.
    let late = try await bench.service.authorizeDevice(from: "net")
    #expect(
      try await !bench.service.store.decide(
        late.userCode, approved: true, account: id, password: "an older hash", at: bench.now))
  }

  @Test("a clock that is put back keeps nobody out", arguments: Engine.present)
  func clockPutBack(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    let codes = try await bench.service.authorizeDevice(from: "net")
    let grant = LoginService.Grant.device(code: codes.deviceCode)
    #expect(await oauthError { _ = try await bench.tokens(grant, device) } == .authorizationPending)
    for _ in 0..<5 {
      #expect(
        await problem { try await bench.decide(codes.userCode.description, email, "wrong horse") } == "wrong_login")
    }
    bench.wait(-86_400)
    #expect(await oauthError { _ = try await bench.tokens(grant, device) } == .authorizationPending)
    try await bench.decide(codes.userCode.description, email)
    let tokens = try await bench.tokens(grant, device)
    let proof = bench.proof(device, "/v1/account", "GET", accessToken: tokens.access)
    _ = try await bench.caller(device, tokens.access, proof: proof)
    // Neither a second time, nor one from before.
    await #expect(throws: Problem.self) { _ = try await bench.caller(device, tokens.access, proof: proof) }
    let now = bench.now
    bench.wait(-120)
    let early = bench.proof(device, "/v1/account", "GET", accessToken: tokens.access)
    bench.wait(-3600)
    await #expect(throws: Problem.self) { _ = try await bench.caller(device, tokens.access, proof: early) }
    #expect(bench.now < now)
    _ = try await bench.caller(device, tokens.access)
  }

  @Test("of two that use one device code at the same time, one gets tokens", arguments: Engine.present)
  func oneWinner(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    let codes = try await bench.service.authorizeDevice(from: "net")
    try await bench.decide(codes.userCode.description, email)
    let winners = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<8 {
        group.addTask { (try? await bench.tokens(.device(code: codes.deviceCode), Device())) != nil }
      }
      return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(winners == 1)
  }

  @Test("tokens are renewed by the device that has them, and a used one ends the login", arguments: Engine.present)
  func refresh(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    let first = try await bench.login(device, email)
    // Somebody has stolen the token, and not the key.
    #expect(
      await oauthError { _ = try await bench.tokens(.refresh(token: first.refresh, retry: nil), Device()) }
        == .invalidProof(.otherKey))
    let second = try await bench.tokens(.refresh(token: first.refresh, retry: nil), device)
    #expect(second.refresh != first.refresh)
    // What was on its way with the token before still counts.
    _ = try await bench.caller(device, first.access)
    _ = try await bench.caller(device, second.access)
    #expect(
      await oauthError { _ = try await bench.tokens(.refresh(token: first.refresh, retry: nil), device) }?.code
        == "invalid_grant")
    #expect(
      await oauthError { _ = try await bench.tokens(.refresh(token: second.refresh, retry: nil), device) }?.code
        == "invalid_grant")
    #expect(await problem { _ = try await bench.caller(device, second.access) } == "unauthorized")
    #expect(await problem { _ = try await bench.caller(device, first.access) } == "unauthorized")
  }

  @Test(
    "a request that comes again because its answer was lost is no theft, if it has the key of the first",
    arguments: Engine.present)
  func repeatedRefresh(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    let first = try await bench.login(device, email)
    let grant = LoginService.Grant.refresh(token: first.refresh, retry: "a key that only the device knows")
    let lost = try await bench.tokens(grant, device)
    let second = try await bench.tokens(grant, device)
    _ = try await bench.caller(device, second.access)
    // The tokens that were lost do not count: who has them has them from the network.
    #expect(
      await oauthError { _ = try await bench.tokens(.refresh(token: lost.refresh, retry: nil), device) }?.code
        == "invalid_grant")
    #expect(await problem { _ = try await bench.caller(device, second.access) } == "unauthorized")
    // Another key is no repetition.
    let next = try await bench.login(device, email)
    _ = try await bench.tokens(.refresh(token: next.refresh, retry: "one"), device)
    #expect(
      await oauthError { _ = try await bench.tokens(.refresh(token: next.refresh, retry: "two"), device) }?.code
        == "invalid_grant")
  }

  @Test(
    "of two that use one refresh token at the same time, one is faster, and the login has ended",
    arguments: Engine.present)
  func racedRefresh(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    let first = try await bench.login(device, email)
    let winners = await withTaskGroup(of: Tokens?.self) { group in
      for _ in 0..<8 { group.addTask { try? await bench.tokens(.refresh(token: first.refresh, retry: nil), device) } }
      return await group.reduce(into: [Tokens]()) { if let tokens = $1 { $0.append(tokens) } }
    }
    #expect(winners.count == 1)
    #expect(await problem { _ = try await bench.caller(device, winners[0].access) } == "unauthorized")
  }

  @Test("an access token lasts ten minutes, a refresh token 90 days")
  func lifetimes() async throws {
    let bench = try await Bench()
    try await bench.account(email)
    let first = try await bench.login(device, email)
    bench.wait(599)
    _ = try await bench.caller(device, first.access)
    bench.wait(1)
    #expect(await problem { _ = try await bench.caller(device, first.access) } == "unauthorized")
    bench.wait(90 * 86_400 - 601)
    let second = try await bench.tokens(.refresh(token: first.refresh, retry: nil), device)
    bench.wait(90 * 86_400)
    #expect(
      await oauthError { _ = try await bench.tokens(.refresh(token: second.refresh, retry: nil), device) }?.code
        == "invalid_grant")
  }

  @Test("an access token counts with a proof by its key, for this request, once")
  func accessToken() async throws {
    let bench = try await Bench()
    try await bench.account(email)
    let tokens = try await bench.login(device, email)
    let other = try await bench.login(Device(), email)
    let path = "/v1/account"
    _ = try await bench.caller(device, tokens.access, scheme: "dpop")
    for scheme in ["Bearer", "Basic", ""] {
      #expect(await problem { _ = try await bench.caller(device, tokens.access, scheme: scheme) } == "unauthorized")
    }
    let proofs = [
      bench.proof(Device(), path, "GET", accessToken: tokens.access), bench.proof(device, path, "GET"),
      bench.proof(device, path, "GET", accessToken: other.access),
      bench.proof(device, path, "POST", accessToken: tokens.access),
      bench.proof(device, "/v1/bookings", "GET", accessToken: tokens.access), "",
    ]
    for proof in proofs {
      #expect(await problem { _ = try await bench.caller(device, tokens.access, proof: proof) } == "unauthorized")
    }
    let proof = bench.proof(device, path, "GET", accessToken: tokens.access)
    _ = try await bench.caller(device, tokens.access, proof: proof)
    #expect(await problem { _ = try await bench.caller(device, tokens.access, proof: proof) } == "unauthorized")
    // A refresh token is no access token, and a token of a stranger's making is none either.
    #expect(await problem { _ = try await bench.caller(device, tokens.refresh) } == "unauthorized")
    let forged = String(tokens.access.dropLast()) + (tokens.access.hasSuffix("A") ? "E" : "A")
    #expect(await problem { _ = try await bench.caller(device, forged) } == "unauthorized")
  }

  @Test("a proof is used once at all servers that share a database", arguments: Engine.present)
  func sharedProofs(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    let tokens = try await bench.login(device, email)
    let servers = (0..<2).map { _ in bench.server(isShared: true) }
    func cancel(_ proof: String, _ server: LoginService) async -> String? {
      let request = Request(
        head: .init(
          method: .post, scheme: "https", authority: nil, path: "/v1/bookings/1/cancel",
          headerFields: [.authorization: "DPoP \(tokens.access)", .dpop: proof]),
        body: .init(buffer: .init()))
      return await problem { _ = try await server.session(of: request) }
    }
    let proof = bench.proof(device, "/v1/bookings/1/cancel", accessToken: tokens.access)
    #expect(await cancel(proof, servers[0]) == nil)
    #expect(await cancel(proof, servers[0]) == "unauthorized")
    #expect(await cancel(proof, servers[1]) == "unauthorized")
    #expect(await cancel(bench.proof(device, "/v1/bookings/1/cancel", accessToken: tokens.access), servers[1]) == nil)
  }

  @Test("a proof that renewed a login at one server renews none at another", arguments: Engine.present)
  func sharedRenewals(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    let first = try await bench.login(device, email)
    let servers = (0..<2).map { _ in bench.server(isShared: true) }
    let proof = bench.proof(device)
    func renew(_ tokens: Tokens, at server: LoginService, _ proof: String) async throws -> Tokens {
      try await server.tokens(for: .refresh(token: tokens.refresh, retry: nil), proof: [proof], from: "net")
    }
    let second = try await renew(first, at: servers[0], proof)
    #expect(await oauthError { _ = try await renew(second, at: servers[1], proof) } == .invalidProof(.used))
    _ = try await renew(second, at: servers[1], bench.proof(device))
  }

  @Test("who asks for a code that nobody has allowed fills no memory; what gives tokens is used once")
  func pendingProofs() async throws {
    let bench = try await Bench()
    try await bench.account(email)
    let codes = [
      try await bench.service.authorizeDevice(from: "net"), try await bench.service.authorizeDevice(from: "net"),
    ]
    let proof = bench.proof(device)
    func redeem(_ code: LoginService.DeviceAuthorization) async throws -> Tokens {
      try await bench.service.tokens(for: .device(code: code.deviceCode), proof: [proof], from: "net")
    }
    #expect(await oauthError { _ = try await redeem(codes[0]) } == .authorizationPending)
    #expect(await oauthError { _ = try await redeem(codes[0]) } == .slowDown(interval: 8))
    for code in codes { try await bench.decide(code.userCode.description, email) }
    _ = try await redeem(codes[0])
    #expect(await oauthError { _ = try await redeem(codes[1]) } == .invalidProof(.used))
  }

  @Test("a device whose logins are ended renews none, and other devices do", arguments: Engine.present)
  func revokedDevice(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    try await bench.account("bob@example.org")
    let other = Device()
    let grant = LoginService.Grant.refresh(token: try await bench.login(device, email).refresh, retry: "a key")
    let tokens = try await bench.tokens(grant, device)
    _ = try await bench.login(device, "bob@example.org")
    let others = try await bench.login(other, email)
    let account = try await bench.caller(device, tokens.access)
    let thumbprint = try DPoPProof(
      parsing: bench.proof(device), method: "POST", target: "https://fleet.example/oauth/token", now: bench.now,
      accessToken: nil
    ).thumbprint
    let found = try #require(try await bench.service.store.sessions(of: account).first { $0.device == thumbprint })
    #expect(try await bench.service.endLogins(of: thumbprint) == 2)
    #expect(try await bench.service.endLogins(of: thumbprint) == 0)
    // Of a renewal that had begun before, nothing comes.
    var renewed = found
    _ = renewed.renew(with: tokens.refresh, retry: nil, at: bench.now, random: systemRandomness)
    #expect(try await !bench.service.store.renew(renewed, instead: found.refresh))
    // What fetches access still counts, so that the answer can be that the device was revoked.
    _ = try await bench.caller(device, tokens.access)
    // Also the renewal before is not repeated.
    #expect(await oauthError { _ = try await bench.tokens(grant, device) }?.code == "invalid_grant")
    #expect(await problem { _ = try await bench.caller(device, tokens.access) } == "unauthorized")
    try await bench.service.tidy()
    #expect(
      try await bench.store.read { try $0.run("SELECT device FROM session").map { $0.text("device") } }
        .contains(thumbprint) == false)
    _ = try await bench.tokens(.refresh(token: others.refresh, retry: nil), other)
  }

  @Test("a renewal that comes again is too late when the login has expired")
  func lateRepetition() {
    var (session, tokens) = Session.begin(account: "a", device: "d", at: 0, random: systemRandomness)
    _ = session.renew(with: tokens.refresh, retry: "key", at: 0, random: systemRandomness)
    let end = Session.refreshLifetime
    #expect(session.use(of: tokens.refresh, retry: "key", at: end - 1) == .repeated)
    #expect(session.use(of: tokens.refresh, retry: "key", at: end) == .expired)
    #expect(session.use(of: tokens.refresh, retry: "another", at: end) == .reused)
  }

  @Test("a login ends by either of its tokens; everywhere takes one that counts", arguments: Engine.present)
  func revocation(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    let others = [Device(), Device()]
    var logins: [Tokens] = []
    for device in [device] + others { logins.append(try await bench.login(device, email)) }
    try await bench.service.revoke("sfr_nonsense", everywhere: true)
    // Whoever has seen an access token knows the login's name, and no refresh token.
    for everywhere in [false, true] {
      let madeUp = "sfr_" + logins[0].access.dropFirst(4).prefix(22) + String(repeating: "A", count: 43)
      try await bench.service.revoke(madeUp, everywhere: everywhere)
    }
    _ = try await bench.caller(device, logins[0].access)
    try await bench.service.revoke(logins[0].access, everywhere: false)
    #expect(await problem { _ = try await bench.caller(device, logins[0].access) } == "unauthorized")
    _ = try await bench.caller(others[0], logins[1].access)
    // What does not count any more ends nothing but its own login.
    let renewed = try await bench.tokens(.refresh(token: logins[1].refresh, retry: nil), others[0])
    try await bench.service.revoke(logins[1].refresh, everywhere: true)
    #expect(await problem { _ = try await bench.caller(others[0], renewed.access) } == "unauthorized")
    _ = try await bench.caller(others[1], logins[2].access)
    try await bench.service.revoke(logins[2].refresh, everywhere: true)
    #expect(await problem { _ = try await bench.caller(others[1], logins[2].access) } == "unauthorized")
  }

  @Test("a device has one login, and an account twenty", arguments: Engine.present)
  func sessionLimit(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    let first = try await bench.login(device, email)
    let again = try await bench.login(device, email)
    #expect(await problem { _ = try await bench.caller(device, first.access) } == "unauthorized")
    for _ in 0..<20 {
      bench.wait(1)
      _ = try await bench.login(Device(), email)
    }
    #expect(await problem { _ = try await bench.caller(device, again.access) } == "unauthorized")
    let account = try await bench.service.store.account(of: EmailAddress(email)!)!.account
    #expect(try await bench.service.store.sessions(of: account.id).count == 20)
  }

  @Test("five wrong passwords, and the account is closed for that network for a minute, and open for others")
  func guesses() async throws {
    let bench = try await Bench()
    try await bench.account(email)
    let codes = try await bench.service.authorizeDevice(from: "net")
    let code = codes.userCode.description
    for _ in 0..<5 { #expect(await problem { try await bench.decide(code, email, "wrong horse") } == "wrong_login") }
    #expect(await problem { try await bench.decide(code, email, "correct horse") } == "too_many")
    // An address that has no account gets the same answers.
    for _ in 0..<5 { #expect(await problem { try await bench.decide(code, "eve@example.org") } == "wrong_login") }
    #expect(await problem { try await bench.decide(code, "eve@example.org") } == "too_many")
    // However often the first network tries: it uses up nothing of the account's.
    for _ in 0..<80 { _ = await problem { try await bench.decide(code, email, "wrong horse") } }
    try await bench.decide(code, email, from: "home")
  }

  @Test("guesses of user codes are limited, and need an account")
  func codeGuesses() async throws {
    let bench = try await Bench()
    try await bench.account(email)
    _ = try await bench.service.authorizeDevice(from: "net")
    #expect(await problem { try await bench.decide("BCDF-GHJK", email, "wrong horse") } == "wrong_login")
    for _ in 0..<10 { #expect(await problem { try await bench.decide("BCDF-GHJK", email) } == "wrong_code") }
    #expect(await problem { try await bench.decide("BCDF-GHJK", email) } == "too_many")
    // Another network does not help: it is the same account.
    #expect(await problem { try await bench.decide("BCDF-GHJK", email, from: "home") } == "too_many")
    // The right one does not help either, and those who wait for it are not let in.
    let right = try await bench.service.authorizeDevice(from: "net")
    #expect(await problem { try await bench.decide(right.userCode.description, email) } == "too_many")
    bench.wait(60)
    try await bench.decide(right.userCode.description, email)
    for _ in 0..<20 {
      let next = try await bench.service.authorizeDevice(from: "net")
      bench.wait(60)
      try await bench.decide(next.userCode.description, email)
    }
  }

  @Test("changed terms are accepted before the next login")
  func terms() async throws {
    let bench = try await Bench()
    try await bench.account(email)
    let account = try await bench.service.store.account(of: EmailAddress(email)!)!.account
    try await bench.service.store.acceptTerms("older", of: account.id, at: 0)
    let codes = try await bench.service.authorizeDevice(from: "net")
    let code = codes.userCode.description
    #expect(await problem { try await bench.decide(code, email) } == "terms")
    #expect(await problem { try await bench.decide(code, email, terms: "older") } == "terms")
    try await bench.decide(code, email, terms: bench.service.settings.termsVersion)
    #expect(try await bench.service.account(account.id).terms == bench.service.settings.termsVersion)
    #expect(
      await problem {
        try await bench.service.createAccount(email: "b@c", password: "correct horse", terms: "older", from: "net")
      } == "terms")
  }

  @Test("a suspended account cannot log in, and none of its tokens counts", arguments: Engine.present)
  func suspended(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    let tokens = try await bench.login(device, email)
    let account = try await bench.caller(device, tokens.access)
    try await bench.service.setSuspended(true, account)
    #expect(await problem { _ = try await bench.caller(device, tokens.access) } == "unauthorized")
    #expect(
      await oauthError { _ = try await bench.tokens(.refresh(token: tokens.refresh, retry: nil), device) }?.code
        == "invalid_grant")
    let codes = try await bench.service.authorizeDevice(from: "net")
    #expect(await problem { try await bench.decide(codes.userCode.description, email) } == "suspended")
    // Only whoever knows the password learns that.
    #expect(await problem { try await bench.decide(codes.userCode.description, email, "wrong horse") } == "wrong_login")
    try await bench.service.setSuspended(false, account)
    try await bench.decide(codes.userCode.description, email)
  }
}

@Suite("Accounts")
struct AccountTests {
  let email = "ada@example.org"

  @Test(
    "an account is made when its address is confirmed, and a wrong code does not confirm it", arguments: Engine.present)
  func confirmation(engine: Engine) async throws {
    let bench = try await Bench(engine)
    let code = try await bench.create(email)
    let wrong = code == "123456" ? "654321" : "123456"
    #expect(
      await problem { try await bench.service.confirmAccount(email: email, code: wrong, from: "net") } == "wrong_code")
    #expect(try await bench.service.store.account(of: EmailAddress(email)!) == nil)
    try await bench.service.confirmAccount(email: email, code: code, from: "net")
    #expect(
      await problem { try await bench.service.confirmAccount(email: email, code: code, from: "net") } == "wrong_code")
    // Asking again tells whoever has the mailbox, and nobody else.
    try await bench.service.createAccount(
      email: email.uppercased(), password: "another horse", terms: bench.service.settings.termsVersion, from: "net")
    #expect(try await bench.message(to: email, after: 1).subject == "You have an account already")
  }

  @Test("a code can be tried five times, and counts for a quarter of an hour", arguments: Engine.present)
  func attempts(engine: Engine) async throws {
    let bench = try await Bench(engine)
    let code = try await bench.create(email)
    let wrong = code == "123456" ? "654321" : "123456"
    for _ in 0..<5 {
      #expect(
        await problem { try await bench.service.confirmAccount(email: email, code: wrong, from: "net") } == "wrong_code"
      )
    }
    #expect(
      await problem { try await bench.service.confirmAccount(email: email, code: code, from: "net") } == "wrong_code")
    let late = try await bench.create(email, after: 1)
    bench.wait(900)
    #expect(
      await problem { try await bench.service.confirmAccount(email: email, code: late, from: "net") } == "wrong_code")
    for _ in 0..<20 {
      _ = await problem { try await bench.service.confirmAccount(email: email, code: wrong, from: "net") }
    }
    #expect(
      await problem { try await bench.service.confirmAccount(email: email, code: wrong, from: "net") } == "too_many")
  }

  @Test(
    "whoever asks for an account for somebody else's address cannot put their password under the owner's code",
    arguments: Engine.present)
  func stolenRegistration(engine: Engine) async throws {
    let bench = try await Bench(engine)
    _ = try await bench.create(email, "attacker's horse")
    let own = try await bench.create(email, "owner's horse", after: 1)
    _ = try await bench.create(email, "attacker's horse", after: 2)
    // Three are under way: a fourth sends no mail.
    try await bench.service.createAccount(
      email: email, password: "attacker's horse", terms: bench.service.settings.termsVersion, from: "net")
    await bench.service.finish()
    try await bench.service.confirmAccount(email: email, code: own, from: "net")
    let codes = try await bench.service.authorizeDevice(from: "net")
    let code = codes.userCode.description
    #expect(await problem { try await bench.decide(code, email, "attacker's horse") } == "wrong_login")
    try await bench.decide(code, email, "owner's horse")
    #expect(bench.mail.all.count == 3)
  }

  @Test("a password is set anew by a mailed code, and every login ends", arguments: Engine.present)
  func reset(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    let device = Device()
    let tokens = try await bench.login(device, email)
    try bench.service.requestReset(email: "nobody@example.org", from: "net")
    try bench.service.requestReset(email: email, from: "net")
    let code = Bench.code(in: try await bench.message(to: email, after: 1))
    func set(_ code: String, _ email: String) async -> String? {
      await problem {
        try await bench.service.resetPassword(email: email, code: code, password: "new horse", from: "net")
      }
    }
    #expect(await set(code == "123456" ? "654321" : "123456", email) == "wrong_code")
    #expect(await set(code, "nobody@example.org") == "wrong_code")
    #expect(await set(code, email) == nil)
    #expect(await set(code, email) == "wrong_code")
    #expect(await problem { _ = try await bench.caller(device, tokens.access) } == "unauthorized")
    let codes = try await bench.service.authorizeDevice(from: "net")
    #expect(await problem { try await bench.decide(codes.userCode.description, email) } == "wrong_login")
    try await bench.decide(codes.userCode.description, email, "new horse")
    #expect(try await bench.message(to: email, after: 2).subject == "Your password was changed")
    await bench.service.finish()
    #expect(bench.mail.all.filter { $0.to.description == "nobody@example.org" }.isEmpty)
  }

  @Test(
    "who is logged in changes the password with the present one; other devices are logged out",
    arguments: Engine.present)
  func change(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    let (device, other) = (Device(), Device())
    let tokens = try await bench.login(device, email)
    let others = try await bench.login(other, email)
    let account = try await bench.caller(device, tokens.access)
    let session = try #require(
      try await bench.service.store.sessions(of: account).first { digest(of: tokens.access) == $0.access })
    #expect(
      await problem { try await bench.service.changePassword(of: session, from: "wrong horse", to: "new horse") }
        == "wrong_login")
    #expect(
      await problem { try await bench.service.changePassword(of: session, from: "correct horse", to: "short") }
        == "password")
    try await bench.service.changePassword(of: session, from: "correct horse", to: "new horse")
    _ = try await bench.caller(device, tokens.access)
    #expect(await problem { _ = try await bench.caller(other, others.access) } == "unauthorized")
  }

  @Test("five mails an hour go to one address")
  func mailLimit() async throws {
    let bench = try await Bench()
    for _ in 0..<5 { try bench.service.requestReset(email: email, from: "net") }
    #expect(await problem { try bench.service.requestReset(email: email, from: "elsewhere") } == "too_many")
    #expect(
      await problem {
        try await bench.service.createAccount(
          email: email, password: "correct horse", terms: bench.service.settings.termsVersion, from: "net")
      } == "too_many")
  }

  @Test("one network asks only so often")
  func networkLimit() async throws {
    let bench = try await Bench(burst: 3)
    for _ in 0..<3 { _ = try await bench.service.authorizeDevice(from: "net") }
    #expect(await problem { _ = try await bench.service.authorizeDevice(from: "net") } == "too_many")
    _ = try await bench.service.authorizeDevice(from: "elsewhere")
  }

  @Test("one customer with many IPv6 networks asks only so often, too, and does not stop others")
  func siteLimit() async throws {
    let bench = try await Bench(burst: 3)
    func asks(_ address: String) async -> String? {
      await problem { _ = try await bench.service.authorizeDevice(from: network(of: address)) }
    }
    for number in 0..<12 { #expect(await asks("2001:db8:1:\(number)::1") == nil) }
    #expect(await asks("2001:db8:1:99::1") == "too_many")
    #expect(await asks("2001:db8:2:1::1") == nil)
    #expect(await asks("192.0.2.1") == nil)
    bench.wait(1)
    // The network has lost nothing by it.
    #expect(await asks("2001:db8:1:99::1") == nil)
  }

  @Test("a device code that has expired keeps no other one from its place", arguments: Engine.present)
  func expiredGrants(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.store.write { [now = bench.now] transaction in
      for number in 0..<DeviceGrant.limit {
        try transaction.run(
          "INSERT INTO device_grant (device_code, user_code, state, expires) VALUES (?, ?, 'pending', ?)",
          [.text("\(number)"), .text("\(number)"), .integer(now + DeviceGrant.lifetime)])
      }
    }
    #expect(await problem { _ = try await bench.service.authorizeDevice(from: "net") } == "busy")
    bench.wait(DeviceGrant.lifetime)
    _ = try await bench.service.authorizeDevice(from: "net")
  }

  @Test("mailed codes are guessed fifteen times, and then once an hour")
  func codeAttempts() async throws {
    let bench = try await Bench()
    func guess() async -> String? {
      await problem { try await bench.service.confirmAccount(email: email, code: "000000", from: "net") }
    }
    for _ in 0..<15 { #expect(await guess() == "wrong_code") }
    #expect(await guess() == "too_many")
    bench.wait(3599)
    #expect(await guess() == "too_many")
    bench.wait(1)
    #expect(await guess() == "wrong_code")
    #expect(await guess() == "too_many")
  }

  @Test("what is deleted is forgotten, and the address can have an account again", arguments: Engine.present)
  func deletion(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    let device = Device()
    let tokens = try await bench.login(device, email)
    let id = try await bench.caller(device, tokens.access)
    let exported = try await bench.service.export(id)
    #expect(exported["email"]?.string == email)
    #expect(exported["logins"]?.array?.count == 1)
    try await bench.service.delete(id)
    #expect(await problem { _ = try await bench.caller(device, tokens.access) } == "unauthorized")
    #expect(await problem { _ = try await bench.service.account(id) } == "not_found")
    #expect(try await bench.service.store.accounts().isEmpty)
    let rows = try await bench.store.read { try $0.run("SELECT * FROM account") }
    #expect(rows.count == 1 && rows[0].optionalText("email") == nil && rows[0].optionalText("password") == nil)
    let code = try await bench.create(email, after: 1)
    try await bench.service.confirmAccount(email: email, code: code, from: "net")
    #expect(try await bench.service.store.account(of: EmailAddress(email)!)?.account.id != id)
  }

  @Test("the database has no secret that works: digests and hashes only")
  func nothingSecret() async throws {
    let bench = try await Bench()
    try await bench.account(email)
    let tokens = try await bench.login(Device(), email)
    let codes = try await bench.service.authorizeDevice(from: "net")
    var text = ""
    for table in ["account", "registration", "password_reset", "device_grant", "session"] {
      let rows = try await bench.store.read { try $0.run("SELECT * FROM \(table)") }
      text += "\(rows)"
    }
    for secret in [tokens.access, tokens.refresh, codes.deviceCode, codes.userCode.description, "correct horse"] {
      #expect(!text.contains(secret))
    }
  }

  @Test("what has expired is removed", arguments: Engine.present)
  func sweep(engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await bench.account(email)
    _ = try await bench.login(Device(), email)
    _ = try await bench.service.authorizeDevice(from: "net")
    _ = try await bench.create("eve@example.org")
    bench.wait(90 * 86_400)
    try await LoginStore(bench.store).sweep(at: bench.now)
    for table in ["registration", "password_reset", "device_grant", "session"] {
      #expect(try await bench.store.read { try $0.run("SELECT * FROM \(table)") }.isEmpty, "\(table)")
    }
  }
}
