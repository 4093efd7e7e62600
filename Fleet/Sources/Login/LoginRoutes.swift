import Encoding
import Foundation
import HTTPTypes
package import Hummingbird
import Logging
package import Web

extension LoginService {
  /// The routes of logins and accounts.
  package func addRoutes(to router: some RouterMethods<FleetContext>) {
    router.get("/") { [self] _, _ in
      HomePage.page(origin: settings.origin, terms: settings.terms, version: settings.termsVersion)
    }
    router.get("/.well-known/oauth-authorization-server") { [self] _, _ in metadata }
    router.post("/oauth/device_authorization") { [self] request, context in
      try await oauth(request) { fields in
        let codes = try await authorizeDevice(from: network(context))
        let page = settings.origin + "/device"
        return [
          "device_code": .string(codes.deviceCode), "user_code": .string(codes.userCode.description),
          "verification_uri": .string(page),
          "verification_uri_complete": .string("\(page)?user_code=\(codes.userCode)"),
          "expires_in": .integer(DeviceGrant.lifetime), "interval": .integer(DeviceGrant.interval),
        ]
      }
    }
    router.post("/oauth/token") { [self] request, context in
      try await oauth(request) { fields in
        let tokens = try await tokens(
          for: Self.grant(fields, retry: request.headers[.idempotencyKey]), proof: request.headers[values: .dpop],
          from: network(context))
        return [
          "access_token": .string(tokens.access), "token_type": "DPoP", "expires_in": .integer(Session.accessLifetime),
          "refresh_token": .string(tokens.refresh),
        ]
      }
    }
    router.post("/oauth/revoke") { [self] request, _ in
      try await oauth(request) { fields in
        guard let token = fields["token"] else { throw OAuthError.invalidRequest("token is missing") }
        let everywhere = fields["everywhere"]
        guard everywhere == nil || everywhere == "true" || everywhere == "false" else {
          throw OAuthError.invalidRequest("everywhere is true or false")
        }
        try await revoke(token, everywhere: everywhere == "true")
        return [:]
      }
    }
    router.get("/device") { request, _ in
      let code = request.uri.queryParameters["user_code"].map(String.init)
      return Self.form(.init(code: code), random: systemRandomness)
    }
    router.post("/device") { [self] request, context in try await decide(request, context) }

    router.get("/v1/terms") { [self] _, _ in
      Response(json: ["version": .string(settings.termsVersion), "text": .string(settings.terms)])
    }
    router.post("/v1/accounts") { [self] request, context in
      let body = try await Body(of: request, members: ["email", "password", "terms"])
      try await createAccount(
        email: body.string("email"), password: body.password("password"), terms: body.string("terms"),
        from: network(context))
      return Response(.accepted, json: [:])
    }
    router.post("/v1/accounts/confirm") { [self] request, context in
      let body = try await Body(of: request, members: ["email", "code"])
      try await confirmAccount(email: body.string("email"), code: body.string("code"), from: network(context))
      return Response(status: .noContent)
    }
    router.post("/v1/accounts/password") { [self] request, context in
      let body = try await Body(of: request, members: ["email", "code", "password"])
      let email = try body.string("email")
      guard let code = try body.optionalString("code") else {
        guard body["password"] == nil else { throw Problem.malformed("code is missing") }
        try requestReset(email: email, from: network(context))
        return Response(.accepted, json: [:])
      }
      try await resetPassword(
        email: email, code: code, password: body.password("password"), from: network(context))
      return Response(status: .noContent)
    }
    router.get("/v1/account") { [self] request, _ in
      let (session, _) = try await session(of: request)
      return try await Response(
        json: .object(account(session.account).members(sessions: store.sessions(of: session.account))))
    }
    router.get("/v1/account/export") { [self] request, _ in
      try await Response(json: export(session(of: request).session.account))
    }
    router.delete("/v1/account") { [self] request, _ in
      try await delete(session(of: request).session.account)
      return Response(status: .noContent)
    }
    router.post("/v1/account/password") { [self] request, _ in
      let body = try await Body(of: request, members: ["current", "password"])
      let (session, _) = try await session(of: request)
      try await changePassword(of: session, from: body.password("current"), to: body.password("password"))
      return Response(status: .noContent)
    }
  }

  /// The routes for the machine's operator, on a socket that only the operator can open.
  package func addAdminRoutes(to router: some RouterMethods<FleetContext>) {
    router.get("/accounts") { [self] _, _ in
      try await Response(json: ["accounts": .array(store.accounts().map(\.summary))])
    }
    router.post("/accounts/:account/role") { [self] request, context in
      let account = try await named(context)
      guard let role = Role(rawValue: try await Body(of: request, members: ["role"]).string("role").lowercased()) else {
        throw Problem.malformed("role is \(Role.allCases.map(\.rawValue).joined(separator: ", "))")
      }
      try await store.setRole(role, of: account.id)
      logger.info("a role was given", metadata: ["account": "\(account.id)", "role": "\(role.rawValue)"])
      return try await Response(json: self.account(account.id).summary)
    }
    router.post("/accounts/:account/suspend") { [self] _, context in
      let account = try await named(context)
      try await setSuspended(true, account.id)
      return try await Response(json: self.account(account.id).summary)
    }
    router.post("/accounts/:account/resume") { [self] _, context in
      let account = try await named(context)
      try await setSuspended(false, account.id)
      return try await Response(json: self.account(account.id).summary)
    }
    router.post("/accounts/:account/revoke") { [self] _, context in
      try await Response(json: ["tokens": .integer(Int64(hooks.revoke(named(context).id, true)))])
    }
    router.delete("/accounts/:account") { [self] _, context in
      try await delete(named(context).id)
      return Response(status: .noContent)
    }
  }

  /// The account with that id or address.
  private func named(_ context: FleetContext) async throws -> Account {
    let parameter = try context.parameters.require("account")
    let name = (parameter.removingPercentEncoding ?? parameter).trimmingCharacters(in: .whitespaces)
    let found: Account?
    if let email = EmailAddress(name) {
      found = try await store.account(of: email)?.account
    } else {
      found = try await store.account(id: name.lowercased())?.account
    }
    guard let found, found.state != .deleted else { throw Problem.notFound("account") }
    return found
  }

  private func network(_ context: FleetContext) -> String { context.address.map(Web.network(of:)) ?? "local" }

  /// RFC 8414. There are no response types, and 3.2 leaves out what has no elements.
  private var metadata: Response {
    let origin = settings.origin
    return Response(
      json: [
        "issuer": .string(origin), "device_authorization_endpoint": .string(origin + "/oauth/device_authorization"),
        "token_endpoint": .string(origin + "/oauth/token"), "revocation_endpoint": .string(origin + "/oauth/revoke"),
        "jwks_uri": .string(origin + "/v1/jwks"),
        "grant_types_supported": [.string(Self.deviceGrant), "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"], "revocation_endpoint_auth_methods_supported": ["none"],
        "dpop_signing_alg_values_supported": ["EdDSA", "Ed25519"],
      ], headers: [.cacheControl: "max-age=3600"])
  }

  // MARK: OAuth

  private static let deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

  private static func grant(_ fields: FormFields, retry: String?) throws(OAuthError) -> Grant {
    switch fields["grant_type"] {
    case deviceGrant:
      guard let code = fields["device_code"] else { throw .invalidRequest("device_code is missing") }
      return .device(code: code)
    case "refresh_token":
      guard let token = fields["refresh_token"] else { throw .invalidRequest("refresh_token is missing") }
      return .refresh(token: token, retry: retry)
    case nil: throw .invalidRequest("grant_type is missing")
    default: throw .unsupportedGrantType
    }
  }

  /// An endpoint that takes a form and answers with JSON, or with an OAuth error (RFC 6749 5.2).
  private func oauth(_ request: Request, _ work: (FormFields) async throws -> JSON) async throws -> Response {
    do {
      let fields = try await Self.fields(of: request)
      // There is one client, and it has no secret, because programs on people's devices cannot keep one (RFC 8252 8.5).
      guard fields["client_id"] == "stepctl" else { throw OAuthError.invalidClient }
      return Response(json: try await work(fields))
    } catch let error as OAuthError {
      let json: JSON = ["error": .string(error.code), "error_description": .string(error.detail)]
      guard error == .invalidClient else { return Response(.badRequest, json: json) }
      return Response(.unauthorized, json: json, headers: [.wwwAuthenticate: Self.challenge(request)])
    }
  }

  /// RFC 6749 5.2: in the scheme by which the client has tried to authenticate. Without one, it is that of OAuth's
  /// clients, because RFC 9110 15.5.2 wants one with each 401.
  private static func challenge(_ request: Request) -> String {
    let scheme = request.headers[.authorization]?.prefix { $0 != " " } ?? ""
    let isName = scheme.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
    return "\(isName && (1...32).contains(scheme.count) ? String(scheme) : "Basic") realm=\"oauth\""
  }

  private static func fields(of request: Request) async throws -> FormFields {
    guard let fields = try await FormFields(of: request) else {
      throw OAuthError.invalidRequest("the body is not a form with each field once")
    }
    return fields
  }

  // MARK: The page

  /// `__Host-`: only this server, over TLS, can have set the cookie (RFC 6265bis 4.1.3.2).
  private static let cookie = "__Host-stepfleet-form"

  private func decide(_ request: Request, _ context: FleetContext) async throws -> Response {
    let isProgram = request.headers[.accept]?.contains("application/json") == true
    var form = Form()
    do {
      let fields: FormFields
      do { fields = try await Self.fields(of: request) } catch let error as OAuthError {
        throw Problem.malformed(error.detail)
      }
      form = Form(code: fields["user_code"], email: fields["email"])
      try checkOrigin(of: request, fields)
      guard let code = fields["user_code"], let email = fields["email"], let password = fields["password"] else {
        throw Problem.malformed("code, email and password are needed")
      }
      guard let decision = fields["decision"], decision == "allow" || decision == "deny" else {
        throw Problem.malformed("decision is allow or deny")
      }
      try await decide(
        Decision(
          userCode: code, email: email, password: password, isApproved: decision == "allow", terms: fields["terms"]),
        from: network(context))
      return isProgram ? Response(json: [:]) : DevicePage.done(isApproved: decision == "allow")
    } catch let problem as Problem {
      if isProgram { throw problem }
      form.problem = problem
      if problem.code == "terms" { form.terms = (settings.termsVersion, settings.terms) }
      return Self.form(form, random: random)
    }
  }

  /// The form with a fresh token, which protects against requests that another site makes a browser send.
  private static func form(_ form: Form, random: Randomness) -> Response {
    let token = Base64URL.encode(random(32))
    return DevicePage.page(
      form, token: token,
      cookie: "\(cookie)=\(token); Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=\(DeviceGrant.lifetime)")
  }

  /// Refuses requests that another site makes a browser send.
  ///
  /// A browser can be recognized: it sends `Origin` with every POST, and usually `Sec-Fetch-Site`. Its request must
  /// come from our own page, with the page's token in the form and in the cookie. Other programs send neither header,
  /// and have no cookie that another site could misuse.
  private func checkOrigin(of request: Request, _ fields: FormFields) throws(Problem) {
    let foreign = Problem(
      .forbidden, "foreign", "this form was not sent by its own page; open it again, and allow cookies")
    let origin = request.headers[.origin]
    let site = request.headers[.secFetchSite]
    guard origin == nil || origin == settings.origin, site == nil || site == "same-origin" else { throw foreign }
    guard origin != nil || site != nil || request.headers[.referer] != nil || request.headers[.cookie] != nil else {
      return
    }
    guard let token = fields["form_token"], let cookie = request.cookies[Self.cookie]?.value,
      constantTimeEqual(token, cookie)
    else { throw foreign }
  }
}

extension HTTPField.Name {
  fileprivate static let idempotencyKey = Self("Idempotency-Key")!
  fileprivate static let secFetchSite = Self("Sec-Fetch-Site")!
}

extension Body {
  /// The text of a password, which may be longer than other texts.
  fileprivate func password(_ name: String) throws(Problem) -> String { try string(name, limit: 1024) }
}
