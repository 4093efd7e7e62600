package import Domain
package import Encoding
package import HTTP
package import StepProtocol
package import SystemIO

/// An account at a fleet's server, for use on this device: one request at a time, on one thread.
package final class FleetClient {
  /// The client's environment: this computer, or a simulation by a test.
  package struct World {
    /// The device's key, to which the login is bound.
    package var device: () throws -> SigningKey
    /// Unix time on this computer.
    package var clock: () -> Int64
    /// The steady clock, which never jumps.
    package var steady: () -> Instant
    /// Makes the connection to a server. It trusts only these authorities, PEM; nil for the system's.
    package var transport: (_ authorities: [UInt8]?) throws(HTTPError) -> any HTTPTransport
    /// Waits, until a signal ends it.
    package var pause: (Duration) throws -> Void
    package var interruption: Interruption?

    package init(
      device: @escaping () throws -> SigningKey, clock: @escaping () -> Int64,
      steady: @escaping () -> Instant,
      transport: @escaping (_ authorities: [UInt8]?) throws(HTTPError) -> any HTTPTransport,
      pause: @escaping (Duration) throws -> Void, interruption: Interruption?
    ) {
      self.device = device
      self.clock = clock
      self.steady = steady
      self.transport = transport
      self.pause = pause
      self.interruption = interruption
    }
  }

  /// This program's name at the server.
  static let identifier = "stepctl"
  /// How long one request may take.
  private static let patience = Duration.seconds(30)

  package let server: FleetAddress
  package let folder: FleetFolder
  package let world: World
  /// PEM; nil for the system's.
  let authorities: String?
  /// The time limit for everything; nil if each request has its own limit.
  private let deadline: Instant?
  private var transport: (any HTTPTransport)? { didSet { transport?.meanwhile = meanwhile } }
  /// What is called about once a second while an answer is awaited. False ends the request, as a signal does.
  package var meanwhile: (() -> Bool)? { didSet { transport?.meanwhile = meanwhile } }
  /// How far the server's clock is ahead of this computer's, seconds; 0 until both differ by more than a few.
  package private(set) var lead: Int64 = 0

  /// - Parameter deadline: the time limit for everything.
  package init(
    at server: FleetAddress, authorities: String?, in folder: FleetFolder, _ world: World,
    deadline: Instant? = nil
  ) {
    self.server = server
    self.authorities = authorities
    self.folder = folder
    self.world = world
    self.deadline = deadline
  }

  /// For the server at which the user is logged in.
  package convenience init(
    in folder: FleetFolder, _ world: World, deadline: Instant? = nil
  ) throws {
    guard let login = try folder.login(), login.tokens != nil else { throw FleetError.notLoggedIn }
    self.init(at: login.server, authorities: login.authorities, in: folder, world, deadline: deadline)
  }

  /// Unix time by the server's clock, which is decisive. Before the first answer it is this computer's clock.
  package var now: Int64 { world.clock() + lead }

  /// The device's key, to which the login is bound. Asks for its passphrase, if it has one.
  package func deviceKey() throws -> SigningKey { try world.device() }

  // MARK: - Requests

  /// Sends a request. Returns every answer except a redirect.
  func send(_ request: HTTPRequest) throws(FleetError) -> HTTPResponse {
    var limit = Self.patience
    if let deadline { limit = min(limit, world.steady().duration(to: deadline)) }
    guard limit > .zero else { throw .http(.timedOut(host: server.host)) }
    let response: HTTPResponse
    do throws(HTTPError) {
      let used = if let transport { transport } else { try world.transport(authorities.map { Array($0.utf8) }) }
      transport = used
      response = try used.send(request, within: limit)
    } catch {
      throw .http(error)
    }
    if let date = response.headers["date"].flatMap(Timestamp.date) {
      let ahead = date - world.clock()
      lead = abs(ahead) > 5 ? ahead : 0
    }
    // Status 304 says that what the request names with its tag is still so.
    guard !(300..<400).contains(response.status) || response.status == 304 && request.hasTag else {
      throw .redirected(host: server.host)
    }
    return response
  }

  /// Passes an answer that reports success.
  ///
  /// - Throws: `problem`, with the content of any other answer.
  private func accepted(_ response: HTTPResponse) throws(FleetError) -> HTTPResponse {
    guard (200..<300).contains(response.status) || response.status == 304 else {
      throw .problem(Problem(response), host: server.host)
    }
    return response
  }

  /// Sends a request without an account.
  func askOpenly(_ method: HTTPRequest.Method, _ path: String, _ body: JSON? = nil) throws(FleetError) -> HTTPResponse {
    try accepted(send(request(method, path, body)))
  }

  private func request(
    _ method: HTTPRequest.Method, _ path: String, _ body: JSON?, _ headers: [HTTPRequest.Header] = [],
    limit: Int = 1 << 20
  ) -> HTTPRequest {
    var headers = headers + [.init("Accept", "application/json, text/plain")]
    if body != nil { headers.append(.init("Content-Type", "application/json")) }
    return HTTPRequest(method, server.url(path), headers: headers, body: body?.bytes, limit: limit)
  }

  /// Sends a request as the logged-in user. Renews the login if that is due.
  func ask(
    _ method: HTTPRequest.Method, _ path: String, _ body: JSON? = nil, headers: [HTTPRequest.Header] = [],
    limit: Int = 1 << 20
  ) throws -> HTTPResponse {
    var (tokens, knew) = (try tokens(after: nil).tokens, lead)
    var mayRenew = true
    while true {
      var request = request(method, path, body, headers, limit: limit)
      request.headers += [
        .init("Authorization", "DPoP \(tokens.access)"),
        try proof(request.method, request.url, accessToken: tokens.access),
      ]
      let response = try send(request)
      guard response.status == 401 else { return try accepted(response) }
      if knew != lead {
        // The proof was made with another clock than the server's.
        knew = lead
      } else if mayRenew {
        // Another program that has logged in, or renewed the login, may be followed by a third one.
        let next = try self.tokens(after: tokens.access)
        (tokens, mayRenew) = (next.tokens, !next.areRenewed)
      } else {
        return try accepted(response)
      }
    }
  }

  func proof(
    _ method: HTTPRequest.Method, _ url: String, accessToken: String?
  ) throws -> HTTPRequest.Header {
    .init(
      "DPoP",
      DeviceProof.text(method.rawValue, url, accessToken: accessToken, now: now, by: try world.device()))
  }

  /// Sends a form (WHATWG URL, application/x-www-form-urlencoded).
  ///
  /// - Parameter key: the same for each attempt of one request (Idempotency-Key).
  func form(
    _ url: String, _ fields: [(name: String, value: String)], isProved: Bool, isOnce: Bool = false, key: String? = nil
  ) throws -> HTTPResponse {
    var headers: [HTTPRequest.Header] = [
      .init("Content-Type", "application/x-www-form-urlencoded"), .init("Accept", "application/json"),
    ]
    if isProved { headers.append(try proof(.post, url, accessToken: nil)) }
    if let key { headers.append(.init("Idempotency-Key", key)) }
    let body = fields.map { "\(Self.encoded($0.name))=\(Self.encoded($0.value))" }.joined(separator: "&")
    var request = HTTPRequest(.post, url, headers: headers, body: Array(body.utf8))
    request.isOnce = isOnce
    return try send(request)
  }

  /// A text in which all but the unreserved characters are percent-encoded (RFC 3986 2.3).
  private static func encoded(_ text: String) -> String {
    var result = ""
    for byte in text.utf8 {
      if byte.isASCIIAlphanumeric || "-._~".utf8.contains(byte) {
        result.unicodeScalars.append(.init(byte))
      } else {
        result += "%\(hexadecimal([byte]))"
      }
    }
    return result
  }

  // MARK: - Tokens

  /// Tokens that are valid for a request, and whether they were renewed for it.
  ///
  /// - Parameter used: the access token that the server has just refused.
  private func tokens(after used: String?) throws -> (tokens: SavedLogin.Tokens, areRenewed: Bool) {
    func fresh(_ login: SavedLogin?) throws(FleetError) -> SavedLogin.Tokens? {
      guard let tokens = login?.tokens else { throw .notLoggedIn }
      return tokens.access != used && tokens.expires - 30 > world.clock() ? tokens : nil
    }
    if let tokens = try fresh(folder.login()) { return (tokens, false) }
    return try changeLogin { login, save in
      // Another program may have renewed the login meanwhile.
      if let tokens = try fresh(login) { return (tokens, false) }
      guard let login, let old = login.tokens else { throw FleetError.notLoggedIn }
      return try (renew(login, old, save), true)
    }
  }

  func changeLogin<Result>(
    _ body: (SavedLogin?, _ save: (SavedLogin) throws(SystemError) -> Void) throws -> Result
  ) throws -> Result {
    let end = world.steady() + Self.patience
    return try folder.change(until: deadline.map { min($0, end) } ?? end, world.interruption, body)
  }

  /// Renews the login. The refresh token is valid for one use, and a second use ends the login. So it is used under the
  /// lock, and its successor is on the disk before anything else happens. If the answer is lost, the next attempt has
  /// the same key, so the server does not take it for a thief's. The key is random and made only now, so a thief who
  /// has the token does not know it.
  private func renew(
    _ login: SavedLogin, _ old: SavedLogin.Tokens, _ save: (SavedLogin) throws(SystemError) -> Void
  ) throws -> SavedLogin.Tokens {
    var login = login
    var knew = lead
    let key = old.retry ?? UUID.random().description
    if old.retry == nil {
      login.tokens?.retry = key
      try save(login)
    }
    while true {
      let response = try form(
        old.tokenEndpoint,
        [("grant_type", "refresh_token"), ("refresh_token", old.refresh), ("client_id", Self.identifier)],
        isProved: true, isOnce: true, key: key)
      if response.status == 200 {
        let tokens = try tokens(in: response, token: old.tokenEndpoint, revocation: old.revocationEndpoint)
        login.tokens = tokens
        try save(login)
        return tokens
      }
      let problem = Problem(response)
      if problem.code == "invalid_dpop_proof", knew != lead {
        knew = lead
        continue
      }
      guard problem.code == "invalid_grant" else { throw FleetError.problem(problem, host: server.host) }
      login.tokens = nil
      try save(login)
      throw FleetError.loginEnded(host: server.host)
    }
  }

  func tokens(
    in response: HTTPResponse, token: String, revocation: String
  ) throws(FleetError) -> SavedLogin.Tokens {
    let reader = try AnswerReader(response, from: server.host)
    let type = try reader.text("token_type")
    guard type.lowercased() == "dpop" else {
      throw .malformed("the token is not bound to this device", host: server.host)
    }
    return SavedLogin.Tokens(
      access: try reader.token("access_token"),
      expires: world.clock() + (try reader.seconds("expires_in", 1...86_400)),
      refresh: try reader.token("refresh_token"),
      tokenEndpoint: token, revocationEndpoint: revocation)
  }

  // MARK: - Vehicles and bookings

  /// - Parameters:
  ///   - time: when the vehicles must be free; nil for all vehicles.
  ///   - zone: the name of the zone where they must stand; nil for anywhere.
  package func vehicles(free time: Range<Int64>? = nil, in zone: String? = nil) throws -> [FleetVehicle] {
    try pages(of: "vehicles", vehicleQuery(free: time, in: zone)) { json throws(FleetError) in
      try FleetVehicle(json, from: server.host)
    }
  }

  func vehicleQuery(free time: Range<Int64>?, in zone: String?) -> [String] {
    let interval = time.map { ["from=\(Timestamp.text($0.lowerBound))", "to=\(Timestamp.text($0.upperBound))"] } ?? []
    return interval + (zone.map { ["zone=\(Self.encoded($0))"] } ?? [])
  }

  /// - Throws: `FleetError.problem` with status 404 from a server that has no zones.
  package func zones() throws -> [FleetZone] {
    try pages(of: "zones", []) { json throws(FleetError) in try FleetZone(json, from: server.host) }
  }

  /// All items of a list that the server sends in pages.
  private func pages<Item>(
    of list: String, _ query: [String], _ read: (JSON) throws(FleetError) -> Item
  ) throws -> [Item] {
    try pages(of: list, query, from: page(of: list, query, after: nil), isWhole: true, read)
  }

  /// One page of a list.
  ///
  /// - Parameter after: what the page before has said comes next; nil for the first page.
  func page(
    of list: String, _ query: [String], after: String?, headers: [HTTPRequest.Header] = []
  ) throws -> HTTPResponse {
    let query = (query + (after.map { ["after=\(Self.encoded($0))"] } ?? [])).joined(separator: "&")
    return try ask(.get, "/v1/\(list)\(query.isEmpty ? "" : "?\(query)")", headers: headers)
  }

  /// The items of a page, and of those after it.
  ///
  /// - Parameter isWhole: whether to read those after it.
  func pages<Item>(
    of list: String, _ query: [String], from first: HTTPResponse, isWhole: Bool,
    _ read: (JSON) throws(FleetError) -> Item
  ) throws -> [Item] {
    var (items, response): ([Item], HTTPResponse) = ([], first)
    while true {
      let reader = try AnswerReader(response, from: server.host)
      let page = try reader.list(list, limit: 1000, read)
      items += page
      guard let next = try reader.optionalText("next"), isWhole else { return items }
      // A server that always has another page would keep the rider waiting for ever.
      guard items.count <= Self.mostItems, !page.isEmpty else {
        throw FleetError.malformed("it has too many \(list)", host: server.host)
      }
      response = try self.page(of: list, query, after: next)
    }
  }

  private static let mostItems = 100_000

  /// - Returns: nil if the fleet has no such vehicle.
  package func vehicle(_ id: UUID) throws -> FleetVehicle? {
    let response: HTTPResponse
    do { response = try ask(.get, "/v1/vehicles/\(id)") } catch FleetError.problem(let problem, _)
      where problem.status == 404
    { return nil }
    let vehicle = try FleetVehicle(AnswerReader(response, from: server.host).value, from: server.host)
    guard vehicle.id == id else { throw FleetError.malformed("it is another vehicle's", host: server.host) }
    return vehicle
  }

  /// Makes one booking, even if the request must be repeated.
  ///
  /// - Parameters:
  ///   - begin: nil for now.
  ///   - steps: nil for all steps of the vehicle.
  ///   - repeats: called before the request is repeated because its answer was lost.
  package func book(
    _ vehicle: FleetVehicle, from begin: Int64?, to end: Int64, steps: [StepID]?, repeats: (FleetError) -> Void
  ) throws -> Booking {
    var body: [JSON.Member] = [
      .init("vehicle", .string(vehicle.id.description)), .init("to", .string(Timestamp.text(end))),
    ]
    if let begin { body.append(.init("from", .string(Timestamp.text(begin)))) }
    if let steps { body.append(.init("steps", .array(steps.map { .string($0.description) }))) }
    // Tells the server that a second request repeats the first one.
    let key = HTTPRequest.Header("Idempotency-Key", UUID.random().description)
    var failures = 0
    while true {
      do {
        return try booking(ask(.post, "/v1/bookings", .object(body), headers: [key]), name: vehicle.name)
      } catch FleetError.http(let error) where error.mayHaveArrived && failures < 2 {
        failures += 1
        repeats(.http(error))
        try world.pause(.seconds(failures))
      }
    }
  }

  /// The newest, which include all that are not over.
  package func bookings() throws -> [Booking] {
    try pages(of: "bookings", [], from: page(of: "bookings", [], after: nil), isWhole: false) {
      json throws(FleetError) in try Booking(json, from: server.host)
    }
  }

  /// All bookings, also beyond those that `bookings` returns.
  package func allBookings() throws -> [Booking] {
    try pages(of: "bookings", []) { json throws(FleetError) in try Booking(json, from: server.host) }
  }

  package func booking(_ id: String) throws -> Booking { try booking(ask(.get, "/v1/bookings/\(id)")) }

  /// What the vehicle has reported of a booking, the oldest first.
  ///
  /// - Returns: nil if the server does not tell: an older one has no such answer.
  package func events(of booking: Booking) throws -> [BookingEvent]? {
    let response: HTTPResponse
    do { response = try ask(.get, "/v1/bookings/\(booking.id)/events") } catch FleetError.problem(let problem, _)
      where problem.status == 404
    { return nil }
    return try AnswerReader(response, from: server.host).list("events", limit: 1000) { json throws(FleetError) in
      try BookingEvent(json, from: server.host)
    }
  }

  /// - Parameter to: the new end.
  package func extend(_ booking: Booking, to: Int64) throws -> Booking {
    try self.booking(
      ask(
        .patch, "/v1/bookings/\(booking.id)", ["to": .string(Timestamp.text(to))],
        headers: booking.etag.map { [.init("If-Match", $0)] } ?? []), name: booking.name)
  }

  package enum Closing: String, Sendable {
    case cancel, end
  }

  package func close(_ booking: Booking, _ closing: Closing) throws -> Booking {
    try self.booking(ask(.post, "/v1/bookings/\(booking.id)/\(closing.rawValue)"), name: booking.name)
  }

  /// The access file of a booking.
  ///
  /// - Parameter request: the result of `DeviceRequest.signed`.
  package func access(to booking: Booking, for request: String) throws -> String {
    let response = try ask(.post, "/v1/bookings/\(booking.id)/access", ["request": .string(request)])
    guard let text = String(validating: response.body, as: UTF8.self) else {
      throw FleetError.malformed("the access file is not text", host: server.host)
    }
    return text
  }

  private func booking(_ response: HTTPResponse, name: String? = nil) throws(FleetError) -> Booking {
    let reader = try AnswerReader(response, from: server.host)
    return try Booking(reader.value, from: server.host, name: name, etag: response.headers["etag"])
  }

  // MARK: - A vehicle joins

  /// Sends a new vehicle's enrolment to the server.
  ///
  /// - Parameter enrolment: the operator's code, and the vehicle's public keys.
  package func enrol(_ enrolment: JSON) throws(FleetError) -> JSON {
    try AnswerReader(askOpenly(.post, "/v1/enrolments", enrolment), from: server.host).value
  }
}
