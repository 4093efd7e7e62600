import Crypto
package import Encoding
import HTTPTypes
package import Hummingbird
package import Logging
import StepProtocol
package import Store
import Synchronization
package import Web

/// The operator's settings.
package struct LoginSettings: Sendable {
  /// The server's public address: `https://fleet.example:8443`, without a path.
  let origin: String
  /// The terms that a rider accepts.
  let terms: String
  /// How often one network may log in, or ask for a mail, at once; after that once every five seconds.
  let burst: Int64
  package static let burst: Int64 = 100
  /// Whether other servers use the same database.
  let isShared: Bool

  package init(origin: String, terms: String, burst: Int64 = burst, isShared: Bool = false) {
    (self.origin, self.terms, self.burst, self.isShared) = (origin, terms, burst, isShared)
    termsVersion = String(hexadecimal(SHA256.hash(data: Array(terms.utf8))).prefix(12)).lowercased()
  }

  /// The version of the terms: the beginning of their SHA-256. So changed terms get a new version automatically.
  package let termsVersion: String
}

/// What the rest of the server does for accounts.
package struct AccountHooks: Sendable {
  /// Ends an account's bookings and access, and tells the rider or does not. Returns how many of its tokens vehicles
  /// must refuse.
  package var revoke: @Sendable (_ account: String, _ isTold: Bool) async throws -> Int = { _, _ in 0 }
  /// Lets the rider of an account that was suspended be told.
  package var noteSuspension: @Sendable (_ account: String) async throws -> Void = { _ in }
  /// Other data about an account: members of the export.
  package var export: @Sendable (_ account: String) async throws -> [JSON.Member] = { _ in [] }

  package init() {}
}

/// Accounts, and the logins of devices.
package final class LoginService: Sendable {
  let settings: LoginSettings
  let store: LoginStore
  let logger: Logger
  let clock: Clock
  let random: Randomness
  private let hasher: PasswordHasher
  private let mailer: any Mailer
  let hooks: AccountHooks
  private let memory: Mutex<Memory>

  /// State that a restart may lose.
  private struct Memory {
    /// Older proofs may have been used at this server before its restart.
    var started: Int64
    var proofs = UsedProofs()
    /// Keyed by the digest of the device code.
    var paces: [String: DeviceGrant.Pace] = [:]
    /// Wrong passwords, by account and network, so that the owner at another network is not locked out.
    var guesses = Limit(burst: 5, interval: 60)
    /// Passwords by account, from any network.
    var logins = Limit(burst: 60, interval: 60)
    /// Wrong user codes, by network.
    var codes = Limit(burst: 10, interval: 60)
    /// Mailed codes, by mail address.
    var mails = Limit(burst: 5, interval: 3600)
    /// Attempts at mailed codes, by mail address.
    var attempts = Limit(burst: 15, interval: 3600)
    /// Expensive requests, by network.
    var networks: Limit
    /// Expensive requests, by IPv6 /48 network: one customer can have a /48, which contains many /64 networks.
    var sites: Limit
    /// Work that continues after the answer, and the tasks that wait for its end.
    var work = 0
    var waiting: [CheckedContinuation<Void, Never>] = []

    /// - Returns: the seconds to wait; then nothing is taken.
    mutating func takeNetwork(_ network: String, at now: Int64) -> Int64? {
      if let wait = networks.take(network, at: now) { return wait }
      guard let site = site(of: network), let wait = sites.take(site, at: now) else { return nil }
      networks.giveBack(network)
      return wait
    }
  }

  package init(
    settings: LoginSettings, store: any Store, mailer: any Mailer, hooks: AccountHooks = AccountHooks(),
    hasher: PasswordHasher = PasswordHasher(), logger: Logger, clock: @escaping Clock,
    random: @escaping Randomness = systemRandomness
  ) {
    self.settings = settings
    self.store = LoginStore(store)
    self.mailer = mailer
    self.hooks = hooks
    self.hasher = hasher
    self.logger = logger
    self.clock = clock
    self.random = random
    memory = Mutex(
      Memory(
        started: clock(), networks: Limit(burst: settings.burst, interval: 5),
        sites: Limit(burst: 4 * settings.burst, interval: 1)))
  }

  // MARK: Limits

  enum Limited {
    case network, login, mail, attempt, code
  }

  /// - Throws: `Problem` 429 if the limit is exceeded.
  func limit(_ what: Limited, _ key: String) throws(Problem) {
    let now = clock()
    let wait = memory.withLock { memory in
      switch what {
      case .network: memory.takeNetwork(key, at: now)
      case .login: memory.logins.take(key, at: now)
      case .mail: memory.mails.take(key, at: now)
      case .attempt: memory.attempts.take(key, at: now)
      case .code: memory.codes.take(key, at: now)
      }
    }
    if let wait { throw .tooMany(seconds: wait) }
  }

  // MARK: Device grant

  struct DeviceAuthorization: Equatable {
    let deviceCode: String
    let userCode: UserCode
  }

  func authorizeDevice(from network: String) async throws -> DeviceAuthorization {
    try limit(.network, network)
    let authorization = DeviceAuthorization(deviceCode: Base64URL.encode(random(32)), userCode: UserCode(random))
    guard
      try await store.addGrant(deviceCode: authorization.deviceCode, userCode: authorization.userCode, at: clock())
    else { throw Problem.busy("too many logins are under way", seconds: 60) }
    return authorization
  }

  /// The data that a person sends from the page.
  struct Decision {
    let userCode: String
    let email: String
    let password: String
    let isApproved: Bool
    /// The version of the terms that the person accepts.
    let terms: String?
  }

  /// A wrong address and a wrong password give the same answer, after the same work.
  private static let wrongLogin = Problem(.forbidden, "wrong_login", "the email address or the password is wrong")

  func decide(_ decision: Decision, from network: String) async throws {
    try limit(.network, network)
    guard let code = UserCode(decision.userCode) else {
      throw Problem(.badRequest, "wrong_code", "the code has eight letters, as in BCDF-GHJK")
    }
    let (account, hash) = try await authenticate(
      email: decision.email, password: decision.password, from: network)
    if decision.isApproved, account.terms != settings.termsVersion {
      guard decision.terms == settings.termsVersion else {
        throw Problem(
          .forbidden, "terms", "the terms of use have changed; accept version \(settings.termsVersion)",
          members: [.init("version", .string(settings.termsVersion))])
      }
      try await store.acceptTerms(settings.termsVersion, of: account.id, at: clock())
    }
    // Counts the attempt before checking it, so that guessing the codes of other people's devices is stopped soon.
    try limit(.code, network)
    try limit(.code, account.id)
    guard
      try await store.decide(
        code, approved: decision.isApproved, account: account.id, password: hash, at: clock())
    else {
      throw Problem(.badRequest, "wrong_code", "nobody waits with this code, or it has expired")
    }
    // Only wrong codes count.
    memory.withLock { memory in
      memory.codes.giveBack(network)
      memory.codes.giveBack(account.id)
    }
    logger.info(
      decision.isApproved ? "a login was allowed" : "a login was refused", metadata: ["account": "\(account.id)"])
  }

  /// The account with that address and password, and the password's hash.
  private func authenticate(
    email: String, password: String, from network: String
  ) async throws -> (account: Account, password: String) {
    guard let email = EmailAddress(email), let password = Password(attempt: password) else { throw Self.wrongLogin }
    // Checks the network's limit first, so that one network cannot use up the account's allowance.
    let guesser = "\(network) \(email)"
    if let wait = memory.withLock({ $0.guesses.take(guesser, at: clock()) }) { throw Problem.tooMany(seconds: wait) }
    try limit(.login, email.description)
    let found = try await store.account(of: email)
    guard try await verify(password, hash: found?.password), let found else { throw Self.wrongLogin }
    // Only wrong passwords count.
    memory.withLock { $0.guesses.forget(guesser) }
    guard found.account.state == .active else {
      throw Problem(.forbidden, "suspended", "the account is suspended; ask the fleet's operator")
    }
    return found
  }

  private func verify(_ password: Password, hash: String?) async throws -> Bool {
    do { return try await hasher.verify(password, hash: hash) } catch is PasswordHasher.Busy { throw Self.busy }
  }

  private func hash(_ password: Password) async throws -> String {
    do { return try await hasher.hash(password) } catch is PasswordHasher.Busy { throw Self.busy }
  }

  private static let busy = Problem.busy("too many people are logging in", seconds: 5)

  // MARK: Tokens

  /// A request for tokens, as received by the token endpoint.
  enum Grant {
    case device(code: String)
    /// - Parameter retry: the request's Idempotency-Key, which is the same for each try of one request.
    case refresh(token: String, retry: String?)
  }

  func tokens(for grant: Grant, proof texts: [String], from network: String) async throws -> Tokens {
    let proof: DPoPProof
    do throws(ProofError) {
      proof = try self.proof(texts, method: "POST", path: "/oauth/token", accessToken: nil)
    } catch { throw OAuthError.invalidProof(error) }
    switch grant {
    case .device(let code): return try await redeem(code, proof)
    case .refresh(let token, let retry): return try await refresh(token, retry: retry, proof)
    }
  }

  private func redeem(_ deviceCode: String, _ proof: DPoPProof) async throws -> Tokens {
    let now = clock()
    let name = digest(of: deviceCode)
    guard let (state, expires) = try await store.grant(deviceCode: deviceCode) else {
      throw OAuthError.invalidGrant("this device code is not known, or was used")
    }
    guard now < expires else {
      try await forget(deviceCode)
      throw OAuthError.expiredToken
    }
    switch state {
    case .denied:
      try await forget(deviceCode)
      throw OAuthError.accessDenied
    case .pending:
      let slower: Int64? = memory.withLock { memory in
        if memory.paces.count >= DeviceGrant.limit, memory.paces[name] == nil { memory.paces = [:] }
        let isTooFast = memory.paces[name, default: DeviceGrant.Pace()].isTooFast(at: now)
        return isTooFast ? memory.paces[name]?.interval : nil
      }
      throw slower.map(OAuthError.slowDown) ?? OAuthError.authorizationPending
    case .approved:
      // Anybody can get a device code that nobody has allowed. Remembering proofs of such requests would let them fill
      // the memory.
      try await use(proof, at: now, isChange: true, refusal: OAuthError.invalidProof)
      let (device, random) = (proof.thumbprint, random)
      let tokens = try await store.redeem(deviceCode: deviceCode) { account in
        Session.begin(account: account, device: device, at: now, random: random)
      }
      memory.withLock { _ = $0.paces.removeValue(forKey: name) }
      guard let tokens else { throw OAuthError.invalidGrant("this device code is not known, or was used") }
      logger.info("a device was logged in", metadata: ["device": "\(device)"])
      return tokens
    }
  }

  private func forget(_ deviceCode: String) async throws {
    memory.withLock { _ = $0.paces.removeValue(forKey: digest(of: deviceCode)) }
    try await store.removeGrant(deviceCode: deviceCode)
  }

  private func refresh(_ text: String, retry: String?, _ proof: DPoPProof) async throws -> Tokens {
    let now = clock()
    for attempt in 0..<Self.renewals {
      guard let token = OpaqueToken(text), token.kind == .refresh,
        let (found, _, state) = try await store.session(id: token.session)
      else { throw OAuthError.invalidGrant("this refresh token is not known, or its login has ended") }
      // A stolen token is worthless without the device's key; it does not even end the login.
      guard identical(proof.thumbprint, found.device) else { throw OAuthError.invalidProof(.otherKey) }
      if attempt == 0 { try await use(proof, at: now, isChange: true, refusal: OAuthError.invalidProof) }
      var session = found
      switch session.use(of: text, retry: retry, at: now) {
      case .current, .repeated: break
      case .expired:
        try await store.endSession(id: session.id)
        throw OAuthError.invalidGrant("the login has expired; log in again")
      case .reused: throw try await reuse(of: session)
      }
      guard state == .active else { throw OAuthError.invalidGrant("the account is suspended") }
      let tokens = session.renew(with: text, retry: retry, at: now, random: random)
      if try await store.renew(session, instead: found.refresh) { return tokens }
      // Another request was faster. If that was a copy of this request, this one counts as its repetition.
    }
    throw Problem.busy("this login is being renewed")
  }

  /// How often one request tries to renew a login while others renew it.
  private static let renewals = 5

  private func reuse(of session: Session) async throws -> OAuthError {
    try await store.endSession(id: session.id)
    logger.warning(
      "a refresh token was used twice; its login has ended",
      metadata: ["account": "\(session.account)", "device": "\(session.device)"])
    return .invalidGrant("this refresh token was used before, so its login has ended; log in again")
  }

  /// Ends a login (RFC 7009). The token alone is enough, because ending gives less power than continuing.
  ///
  /// - Parameter everywhere: ends every login of the account.
  func revoke(_ text: String, everywhere: Bool) async throws {
    guard let token = OpaqueToken(text), let (session, _, _) = try await store.session(id: token.session) else {
      return
    }
    let now = clock()
    switch token.kind {
    case .access where !session.allows(accessToken: text, at: now): return
    // Every token contains its session's name, so anybody who has seen a token could invent one for that session. A
    // refresh token that was used before proves a theft, and ends the login as well.
    case .refresh where !session.knows(refreshToken: text): return
    case .access, .refresh: break
    }
    if everywhere {
      // Ending every login requires a valid token.
      if token.kind == .refresh, session.use(of: text, retry: nil, at: now) != .current {
        _ = try await reuse(of: session)
        return
      }
      try await store.endSessions(of: session.account)
    } else {
      try await store.endSession(id: session.id)
    }
    logger.info(everywhere ? "every login was ended" : "a login was ended", metadata: ["account": "\(session.account)"])
  }

  // MARK: Proofs

  private func proof(
    _ texts: [String], method: String, path: String, accessToken: String?
  ) throws(ProofError) -> DPoPProof {
    guard let text = texts.first else { throw .missing }
    guard texts.count == 1 else { throw .several }
    let now = clock()
    // If the clock was set back to before the start, every proof would be refused until the clock reaches the start
    // again. So the server behaves as if it had started now: it remembers the proofs that it has accepted since.
    let started = memory.withLock { memory in
      memory.started = min(memory.started, now)
      return memory.started
    }
    return try DPoPProof(
      parsing: text, method: method, target: settings.origin + path, now: now, notBefore: started,
      accessToken: accessToken)
  }

  /// Remembers a proof only if the rest of the request is valid, so that strangers cannot fill the memory.
  ///
  /// - Parameter isChange: whether the request changes something.
  private func use(
    _ proof: DPoPProof, at now: Int64, isChange: Bool, refusal: (ProofError) -> any Error
  ) async throws {
    switch memory.withLock({ $0.proofs.use(proof, at: now) }) {
    case true?: break
    case false?: throw refusal(.used)
    case nil: throw Problem.busy("too many requests", seconds: 60)
    }
    // Another server does not know that the proof was used here. A request that only reads does not justify a write.
    if settings.isShared, isChange, try await !store.use(proof) { throw refusal(.used) }
  }

  /// The session of the access token in a request.
  func session(of request: Request) async throws -> (session: Session, role: Role) {
    let credentials = request.headers[values: .authorization]
    guard !credentials.isEmpty else { throw Self.unauthorized("log in first", error: nil) }
    let parts = credentials[0].split(separator: " ", maxSplits: 1)
    guard credentials.count == 1, parts.count == 2, parts[0].lowercased() == "dpop",
      let token = OpaqueToken(String(parts[1])), token.kind == .access
    else { throw Self.unauthorized("this is not an access token of this server", error: "invalid_token") }
    let proof: DPoPProof
    do throws(ProofError) {
      proof = try self.proof(
        request.headers[values: .dpop], method: request.method.rawValue, path: request.uri.path, accessToken: token.text
      )
    } catch { throw Self.unauthorized("\(error)", error: "invalid_dpop_proof") }
    let now = clock()
    guard let (session, role, state) = try await store.session(id: token.session),
      session.allows(accessToken: token.text, at: now), state == .active
    else { throw Self.unauthorized("the access token has ended", error: "invalid_token") }
    guard identical(proof.thumbprint, session.device) else {
      throw Self.unauthorized("\(ProofError.otherKey)", error: "invalid_dpop_proof")
    }
    try await use(proof, at: now, isChange: request.method != .get) {
      Self.unauthorized("\($0)", error: "invalid_dpop_proof")
    }
    return (session, role)
  }

  /// - Parameter error: RFC 9449 7.1; nil if the request had no credentials (RFC 6750 3.1).
  private static func unauthorized(_ detail: String, error: String?) -> Problem {
    // These texts contain nothing of the request, and no quotation mark.
    let reason = error.map { #"error="\#($0)", error_description="\#(detail)", "# } ?? ""
    return Problem(
      .unauthorized, "unauthorized", detail, headers: [.wwwAuthenticate: #"DPoP \#(reason)algs="EdDSA Ed25519""#])
  }

  // MARK: Accounts

  /// Runs after the answer, so that known and unknown addresses take the same time.
  private func afterAnswer(_ work: @escaping @Sendable () async throws -> Void) throws(Problem) {
    let isTaken = memory.withLock { memory in
      guard memory.work < 256 else { return false }
      memory.work += 1
      return true
    }
    guard isTaken else { throw Self.busy }
    Task {
      do { try await work() } catch {
        logger.error("what was to be done for an account has failed", metadata: ["error": "\(error)"])
      }
      let waiting = memory.withLock { memory in
        memory.work -= 1
        defer { if memory.work == 0 { memory.waiting = [] } }
        return memory.work == 0 ? memory.waiting : []
      }
      for continuation in waiting { continuation.resume() }
    }
  }

  /// Removes what has expired.
  package func tidy() async throws { try await store.sweep(at: clock()) }

  /// Waits for the work that continues after answers, before the server stops.
  package func finish() async {
    await withCheckedContinuation { continuation in
      let isDone = memory.withLock { memory in
        if memory.work > 0 { memory.waiting.append(continuation) }
        return memory.work == 0
      }
      if isDone { continuation.resume() }
    }
  }

  /// Takes as long as the slowest path, whatever the result.
  private func evenly<Result>(_ work: () async throws -> Result) async throws -> Result {
    let end = ContinuousClock.now + .milliseconds(200)
    do {
      let result = try await work()
      try await Task.sleep(until: end)
      return result
    } catch {
      try await Task.sleep(until: end)
      throw error
    }
  }

  private func newPassword(_ text: String, for email: EmailAddress) throws(Problem) -> Password {
    do throws(Password.Weakness) { return try Password(new: text, for: email) } catch {
      throw Problem(.badRequest, "password", "\(error)")
    }
  }

  private func address(_ text: String) throws(Problem) -> EmailAddress {
    guard let email = EmailAddress(text) else { throw Problem(.badRequest, "email", "this is not an email address") }
    return email
  }

  func createAccount(email: String, password: String, terms: String, from network: String) async throws {
    try limit(.network, network)
    let email = try address(email)
    let password = try newPassword(password, for: email)
    guard terms == settings.termsVersion else {
      throw Problem(
        .badRequest, "terms", "the terms of use are of version \(settings.termsVersion)",
        members: [.init("version", .string(settings.termsVersion))])
    }
    try limit(.mail, email.description)
    let hash = try await hash(password)
    let (code, id) = (MailedCode(random), newID())
    let registration = LoginStore.Registration(
      id: id, email: email, password: hash, terms: terms, code: code.digest(for: id))
    try afterAnswer { [self] in
      switch try await store.register(registration, at: clock()) {
      case .added:
        mailer.send(
          Mail(
            to: email, subject: "Your code: \(code)",
            text: """
              Enter this code to confirm your email address: \(code)

                  stepctl account confirm \(code)

              It counts for \(MailedCode.lifetime / 60) minutes. If you have not asked for an account at
              \(settings.origin), ignore this message, and do not
              give the code to anybody. If several codes came, use only the one that
              came when you asked for it.
              """))
      case .accountExists:
        mailer.send(
          Mail(
            to: email, subject: "You have an account already",
            text: """
              Somebody has asked for an account with this email address at
              \(settings.origin). You have one already: log in with it.
              If you forgot your password, set a new one:

                  stepctl account password
              """))
      case .tooMany: break
      }
    }
  }

  private static let wrongCode = Problem(.badRequest, "wrong_code", "the code is wrong, or has expired")

  func confirmAccount(email: String, code: String, from network: String) async throws {
    try limit(.network, network)
    let email = try address(email)
    try limit(.attempt, email.description)
    try await evenly {
      guard let code = MailedCode(code), let account = try await store.confirm(email, code, as: newID(), at: clock())
      else { throw Self.wrongCode }
      logger.info("an account was made", metadata: ["account": "\(account.id)"])
    }
  }

  /// Asks for a code to set a new password with.
  func requestReset(email: String, from network: String) throws {
    try limit(.network, network)
    let email = try address(email)
    try limit(.mail, email.description)
    let (code, id) = (MailedCode(random), newID())
    try afterAnswer { [self] in
      guard try await store.beginReset(email, id: id, code: code.digest(for: id), at: clock()) else { return }
      mailer.send(
        Mail(
          to: email, subject: "Your code: \(code)",
          text: """
            Enter this code to set a new password: \(code)

                stepctl account password \(code)

            It counts for \(MailedCode.lifetime / 60) minutes. If you have not asked for it, ignore this
            message, and do not give the code to anybody.
            """))
    }
  }

  func resetPassword(email: String, code: String, password: String, from network: String) async throws {
    try limit(.network, network)
    let email = try address(email)
    let password = try newPassword(password, for: email)
    try limit(.attempt, email.description)
    let hash = try await hash(password)
    try await evenly {
      guard let code = MailedCode(code), try await store.finishReset(email, code, password: hash, at: clock()) else {
        throw Self.wrongCode
      }
    }
    tellOfPassword(email)
  }

  func changePassword(of session: Session, from current: String, to next: String) async throws {
    guard let (account, hash) = try await store.account(id: session.account), let hash,
      let email = account.email.flatMap(EmailAddress.init)
    else { throw Self.wrongLogin }
    try limit(.login, email.description)
    let password = try newPassword(next, for: email)
    guard let current = Password(attempt: current), try await verify(current, hash: hash) else {
      throw Problem(.forbidden, "wrong_login", "the present password is wrong")
    }
    let newHash = try await self.hash(password)
    guard try await store.setPassword(newHash, instead: hash, of: account.id, keeping: session.device) else {
      throw Problem(.conflict, "changed", "the password was changed meanwhile")
    }
    tellOfPassword(email)
  }

  private func tellOfPassword(_ email: EmailAddress) {
    logger.info("a password was changed")
    mailer.send(
      Mail(
        to: email, subject: "Your password was changed",
        text: """
          The password of your account at \(settings.origin) was changed, and
          other devices were logged out. If it was not you, set a new one:

              stepctl account password
          """))
  }

  func account(_ id: String) async throws -> Account {
    guard let (account, _) = try await store.account(id: id), account.state != .deleted else {
      throw Problem.notFound("account")
    }
    return account
  }

  /// The stored data about a person.
  func export(_ id: String) async throws -> JSON {
    let account = try await account(id)
    let sessions = try await store.sessions(of: id)
    return .object(account.members(sessions: sessions) + (try await hooks.export(id)))
  }

  func delete(_ id: String) async throws {
    _ = try await hooks.revoke(id, false)
    try await store.delete(id)
    // Revokes access that was issued between the two steps above.
    _ = try await hooks.revoke(id, false)
    logger.info("an account was deleted", metadata: ["account": "\(id)"])
  }

  func setSuspended(_ isSuspended: Bool, _ id: String) async throws {
    let isNew = try await store.setState(suspended: isSuspended, of: id)
    if isSuspended {
      // First what keeps the account out: a message that cannot be written must not prevent it.
      _ = try await hooks.revoke(id, true)
      if isNew { try await hooks.noteSuspension(id) }
    }
    logger.info(isSuspended ? "an account was suspended" : "an account was resumed", metadata: ["account": "\(id)"])
  }

  private func newID() -> String {
    var bytes = random(16)
    // RFC 9562 5.4: version 4.
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    let digits = Array(hexadecimal(bytes).lowercased())
    return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(separator: "-")
  }
}

extension LoginService: Authenticator {
  package func caller(of request: Request, _ context: FleetContext) async throws -> Caller {
    let (session, _) = try await session(of: request)
    return Caller(account: session.account, device: session.device)
  }

  package func endLogins(of device: String) async throws -> Int {
    let count = try await store.endSessions(ofDevice: device, at: clock())
    logger.info("a device's logins were ended", metadata: ["device": "\(device)", "logins": "\(count)"])
    return count
  }
}

extension Problem {
  static func tooMany(seconds: Int64) -> Problem {
    Problem(
      .tooManyRequests, "too_many", "too often; try again in \(seconds) s", headers: [.retryAfter: "\(seconds)"])
  }
}

extension HTTPField.Name {
  static let dpop = Self("DPoP")!
}
