import Domain
package import Encoding
import HTTP
import SystemIO

/// The code that shows the server, in a browser, which device asks (RFC 8628 3.2).
package struct LoginCode: Equatable, Sendable {
  /// For people to type: `WDJB-MJHT`
  package let user: String
  /// The page on which to type the code.
  package let page: String
  /// The same page with the code included.
  package let completePage: String?
  /// Seconds until the code expires.
  package let lifetime: Int64
  fileprivate let device: String
  /// Seconds between two requests.
  fileprivate let interval: Int64
  fileprivate let endpoints: (token: String, revocation: String)

  package static func == (a: Self, b: Self) -> Bool { a.device == b.device }
}

extension FleetClient {
  /// Proof of the user's identity for a form. It is never part of an error.
  package struct Credentials {
    package let email: String
    package let password: String

    package init(email: String, password: String) {
      self.email = email
      self.password = password
    }
  }

  // MARK: - Login

  /// Asks for a code (RFC 8628 3.1).
  package func beginLogin() throws -> LoginCode {
    let metadata = try AnswerReader(
      askOpenly(.get, "/.well-known/oauth-authorization-server"), from: server.host)
    let issuer = try metadata.text("issuer")
    // RFC 8414 3.3
    guard (try? FleetAddress(issuer)) == server else {
      throw FleetError.malformed("it is the answer of \(issuer)", host: server.host)
    }
    let endpoint = try metadata.url("device_authorization_endpoint", on: server)
    let endpoints = (
      try metadata.url("token_endpoint", on: server), try metadata.url("revocation_endpoint", on: server)
    )
    let response = try form(endpoint, [("client_id", Self.identifier)], isProved: false)
    guard response.status == 200 else { throw FleetError.problem(Problem(response), host: server.host) }
    let reader = try AnswerReader(response, from: server.host)
    return LoginCode(
      user: try reader.take("user_code", "a code of letters, digits and hyphens") { value in
        value.string.flatMap { text in
          (4...32).contains(text.utf8.count)
            && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") } ? text : nil
        }
      },
      page: try reader.url("verification_uri", on: server),
      completePage: reader.value["verification_uri_complete"] == nil
        ? nil : try reader.url("verification_uri_complete", on: server),
      lifetime: try reader.seconds("expires_in", 1...86_400), device: try reader.token("device_code"),
      interval: reader.value["interval"] == nil ? 5 : try reader.seconds("interval", 1...300), endpoints: endpoints)
  }

  /// Accepts a code in the form that a browser would show.
  ///
  /// - Parameter terms: the accepted version, if the server has asked for it.
  package func confirm(_ code: LoginCode, as credentials: Credentials, terms: String? = nil) throws {
    let response = try form(
      code.page,
      [
        ("user_code", code.user), ("email", credentials.email), ("password", credentials.password),
        ("decision", "allow"),
      ] + (terms.map { [("terms", $0)] } ?? []), isProved: false)
    guard (200..<300).contains(response.status) else {
      throw FleetError.problem(Problem(response), host: server.host)
    }
  }

  /// Waits until somebody accepts or denies a code (RFC 8628 3.4), and keeps the tokens.
  ///
  /// A server that is busy or away, or a network that answers in its place, does not end the wait. Only the server's
  /// own answer or the code's end does.
  ///
  /// - Parameters:
  ///   - isConfirmed: whether the code is already accepted: then the first request is sent at once.
  ///   - met: gets a sentence about what keeps the server from answering, once for each new reason.
  ///   - pause: waits between two requests, and returns false to end the login; nil for a plain wait.
  ///   - waiting: gets the number of seconds left.
  /// - Returns: whether the device is logged in.
  @discardableResult
  package func finishLogin(
    _ code: LoginCode, isConfirmed: Bool = false, met: (String) -> Void = { _ in },
    pause: ((Duration) throws -> Bool)? = nil, waiting: (Int64) -> Void
  ) throws -> Bool {
    var interval = code.interval
    /// Seconds until the next request, while no answer of the server comes.
    var retry: Int64?
    var reason: String?
    var waits = !isConfirmed
    let end = world.steady() + .seconds(code.lifetime)
    while true {
      let left = world.steady().duration(to: end)
      guard left > .zero else { throw FleetError.codeExpired }
      waiting(left.components.seconds)
      if waits {
        let time = min(.seconds(retry ?? interval), left)
        if let pause {
          guard try pause(time) else { return false }
        } else {
          try world.pause(time)
        }
      }
      waits = true
      let knew = lead
      switch try poll(code) {
      case .kept: return true
      case .absent(let found, let retryAfter):
        if found != reason { met(found) }
        reason = found
        // RFC 8628 3.5: ask less often, but not so rarely that the rider notices.
        let next = max(interval, min((retry ?? interval) * 2, Self.longestRetry))
        retry = max(next, retryAfter ?? 0)
      case .problem(let problem):
        (retry, reason) = (nil, nil)
        switch problem.code {
        case "authorization_pending": break
        case "slow_down": interval += 5
        case "access_denied": throw FleetError.denied
        case "expired_token": throw FleetError.codeExpired
        // The proof was made with another clock than the server's, perhaps with that of a network's page.
        case "invalid_dpop_proof" where knew != lead: break
        default: throw FleetError.problem(problem, host: server.host)
        }
      }
    }
  }

  /// Seconds between two requests to a server that does not answer, unless it asks for more.
  private static var longestRetry: Int64 { 30 }

  /// What came of one question about a code.
  private enum Polled {
    /// The login is there, and its tokens are kept.
    case kept
    /// The server's own answer.
    case problem(Problem)
    /// No answer of the server, in a sentence, and how long to wait, if somebody said so, seconds.
    case absent(String, retryAfter: Int64?)
  }

  private func poll(_ code: LoginCode) throws -> Polled {
    let response: HTTPResponse
    do {
      response = try form(
        code.endpoints.token,
        [
          ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"), ("device_code", code.device),
          ("client_id", Self.identifier),
        ], isProved: true)
    } catch FleetError.http(let error) where error.exitStatus == .unavailable && !error.isFinal {
      return .absent(error.description, retryAfter: nil)
    } catch let error as FleetError where error == .redirected(host: server.host) {
      return .absent(notOwn, retryAfter: nil)
    }
    let problem = Problem(response)
    if response.status == 429 || response.status >= 500 {
      // RFC 6585, 6: the network wants a login of its own.
      let text = response.status == 511 ? notOwn : FleetError.problem(problem, host: server.host).description
      return .absent(text, retryAfter: problem.retryAfter)
    }
    guard (try? AnswerReader(response, from: server.host)) != nil else {
      return .absent(notOwn, retryAfter: problem.retryAfter)
    }
    guard response.status == 200 else { return .problem(problem) }
    try keep(tokens(in: response, token: code.endpoints.token, revocation: code.endpoints.revocation))
    return .kept
  }

  private var notOwn: String {
    "something else answers in place of \(server.host); does this network want you to log in to it, in a browser?"
  }

  private func keep(_ tokens: SavedLogin.Tokens) throws {
    let old = try changeLogin { login, save in
      try save(SavedLogin(server: server, authorities: authorities, tokens: tokens))
      return login?.server == server ? login?.tokens : nil
    }
    // The previous login is no longer needed. It would also end by itself.
    if let old { _ = try? revoke(old, everywhere: false) }
  }

  /// Stores the server's address and the authorities that are trusted for it.
  package func keepServer() throws {
    try changeLogin { login, save in
      if login?.server == server, login?.authorities == authorities { return }
      guard login?.tokens == nil else { throw FleetError.otherServer(login?.server.host ?? "") }
      try save(SavedLogin(server: server, authorities: authorities))
    }
  }

  /// Stores the account's name.
  package func keepName(_ email: String) throws {
    try changeLogin { login, save in
      guard var login, login.email != email else { return }
      login.email = email
      try save(login)
    }
  }

  /// Ends the login on this device, and then at the server.
  ///
  /// - Parameter everywhere: whether to end all logins of the account, on every device.
  package func logout(everywhere: Bool) throws {
    let tokens = try changeLogin { login, save in
      guard var login, let tokens = login.tokens else { throw FleetError.notLoggedIn }
      // Only the server can end the other logins. So this device forgets its login only after the server has ended
      // them.
      if everywhere { try revoke(tokens, everywhere: true) }
      login.tokens = nil
      try save(login)
      return tokens
    }
    if !everywhere { try revoke(tokens, everywhere: false) }
  }

  private func revoke(_ tokens: SavedLogin.Tokens, everywhere: Bool) throws {
    var fields = [
      ("token", tokens.refresh), ("token_type_hint", "refresh_token"), ("client_id", Self.identifier),
    ]
    if everywhere { fields.append(("everywhere", "true")) }
    let response = try form(tokens.revocationEndpoint, fields, isProved: true)
    guard (200..<300).contains(response.status) else {
      throw FleetError.problem(Problem(response), host: server.host)
    }
  }

  // MARK: - Accounts

  /// The terms that an account has to accept.
  package struct Terms: Equatable, Sendable {
    package let version: String
    package let text: String
  }

  package func terms() throws(FleetError) -> Terms {
    let reader = try AnswerReader(askOpenly(.get, "/v1/terms"), from: server.host)
    return Terms(
      version: try reader.text("version", limit: 64),
      text: try reader.take("text", "text of at most 64 KiB") { value in
        value.string.flatMap { $0.utf8.count <= 1 << 16 ? $0 : nil }
      })
  }

  /// The server mails a code, even if the account already exists.
  package func createAccount(_ credentials: Credentials, terms: String) throws(FleetError) {
    _ = try askOpenly(
      .post, "/v1/accounts",
      ["email": .string(credentials.email), "password": .string(credentials.password), "terms": .string(terms)])
  }

  package func confirmAccount(email: String, code: String) throws(FleetError) {
    _ = try askOpenly(.post, "/v1/accounts/confirm", ["email": .string(email), "code": .string(code)])
  }

  /// The server mails a code for setting a password.
  package func requestPassword(email: String) throws(FleetError) {
    _ = try askOpenly(.post, "/v1/accounts/password", ["email": .string(email)])
  }

  package func setPassword(_ credentials: Credentials, code: String) throws(FleetError) {
    _ = try askOpenly(
      .post, "/v1/accounts/password",
      ["email": .string(credentials.email), "code": .string(code), "password": .string(credentials.password)])
  }

  /// The account of the login, according to the server.
  package func account() throws -> (email: String, json: JSON) {
    let reader = try AnswerReader(ask(.get, "/v1/account"), from: server.host)
    return (try reader.text("email", limit: 254), reader.value)
  }

  /// All data that the server has about the user.
  package func exportAccount() throws -> JSON {
    try AnswerReader(ask(.get, "/v1/account/export", limit: 1 << 24), from: server.host).value
  }

  package func deleteAccount() throws {
    _ = try ask(.delete, "/v1/account")
    try folder.forget()
  }
}

extension HTTPError {
  /// Whether waiting does not help. A network that answers in the server's place has another certificate, or a page
  /// that is too large, until somebody has logged in to it.
  fileprivate var isFinal: Bool {
    switch self {
    case .noLibrary, .unusableAuthorities, .interrupted, .system: true
    case .unreachable, .lost, .timedOut, .unknownAuthority, .otherAuthority, .untrusted, .tooLarge: false
    }
  }
}
