import Access
import Cryptography
import Domain
import Encoding
import Geography
import HTTP
import Rider
import StepProtocol
import SystemIO
import Testing

@Suite("Account at a fleet's server") struct FleetClientTests {
  let server: PlayedServer

  init() throws { server = try PlayedServer() }

  // MARK: - Words

  @Test("an address is read, in one form")
  func addresses() throws {
    for text in ["https://Fleet.example", "fleet.example", "https://fleet.example/", "https://fleet.example:443"] {
      #expect(try FleetAddress(text).description == "https://fleet.example", "\(text)")
    }
    #expect(try FleetAddress("fleet.example:8443").host == "fleet.example:8443")
    #expect(try FleetAddress("https://[::1]:8443").description == "https://[::1]:8443")
  }

  @Test(
    "what is no address is refused",
    arguments: [
      "", "https://", "http://a", "https://a/b", "https://u@a", "https://a:0", "https://a:65536", "https://a:٣",
      "https://a b", "https://a?x", "https://a#x", "https://-a", "https://::1", "a\r\nHost: b", "https://ä",
    ])
  func noAddress(_ text: String) { #expect(throws: FleetAddress.Malformed.self) { try FleetAddress(text) } }

  // MARK: - Proofs

  @Test("a proof is signed by the device's key, for one request and one token")
  func proof() throws {
    let text = DeviceProof.text(
      "GET", "https://a/v1/vehicles?from=x", accessToken: "token", now: 1_795_275_000, by: server.device)
    let parts = text.split(separator: ".").map(String.init)
    try #require(parts.count == 3)
    let header = try JSON(parsing: try #require(Base64URL.decode(parts[0])))
    let claims = try JSON(parsing: try #require(Base64URL.decode(parts[1])))
    #expect(header["typ"] == "dpop+jwt" && header["alg"] == "EdDSA")
    #expect(header["jwk"] == server.device.verificationKey.jwk, "the public part alone")
    #expect(claims["htm"] == "GET" && claims["htu"] == "https://a/v1/vehicles" && claims["iat"] == 1_795_275_000)
    #expect(claims["ath"] == .string(Base64URL.encode(SHA256.digest(of: Array("token".utf8)))))
    let key = try #require(Ed25519.PublicKey(server.device.verificationKey.bytes))
    let signature = try #require(Base64URL.decode(parts[2]))
    #expect(key.isValid(signature, for: Array("\(parts[0]).\(parts[1])".utf8)))
    let second = DeviceProof.text("GET", "https://a", accessToken: nil, now: 0, by: server.device)
    #expect(!second.contains(parts[1]))
  }

  @Test("a proof is none of the protocol's objects, and none of them is a proof")
  func otherTypes() throws {
    let proof = DeviceProof.text("GET", "https://a", accessToken: nil, now: 0, by: server.device)
    #expect(throws: ProtocolError.self) { try DeviceRequest(verifying: proof) }
    #expect(throws: ProtocolError.self) { try Token(verifying: proof, by: server.device.verificationKey) }
    #expect(throws: ProtocolError.self) { try VehicleCode.verify(proof) }
  }

  // MARK: - Login

  @Test("a login waits as long as it is told to between two questions")
  func login() throws {
    server.will(200, PlayedServer.metadata)
    server.will(200, PlayedServer.code)
    for error in ["authorization_pending", "slow_down", "authorization_pending"] {
      server.will(400, PlayedServer.error(error))
    }
    server.will(200, PlayedServer.tokens("1"))
    let client = try server.client
    let code = try client.beginLogin()
    #expect(code.user == "BCDF-GHJK")
    var left: [Int64] = []
    try client.finishLogin(code) { left.append($0) }
    #expect(server.waits == [5, 5, 10, 10])
    #expect(left == [60, 55, 50, 40])
    #expect(server.form(2)["device_code"] == "the-device-code")
    let login = try #require(try server.fleetFolder.login())
    #expect(login.tokens?.refresh == "refresh-1" && login.tokens?.expires == server.time + 600)
  }

  @Test("a server that is away for a while does not end the wait; the questions become rarer")
  func awayForAWhile() throws {
    server.will(200, PlayedServer.metadata)
    server.will(200, PlayedServer.code)
    server.will(fail: .unreachable(host: "a", "refused"))
    server.will(fail: .timedOut(host: "a"))
    server.will(200, PlayedServer.tokens("1"))
    let client = try server.client
    try client.finishLogin(client.beginLogin()) { _ in }
    #expect(server.waits == [5, 10, 20])
  }

  /// Waits for a login, and returns what kept the server from answering.
  private func met() throws -> [String] {
    let client = try server.client
    var met: [String] = []
    try client.finishLogin(client.beginLogin(), met: { met.append($0) }, waiting: { _ in })
    return met
  }

  private static let notOwn =
    "something else answers in place of a; does this network want you to log in to it, in a browser?"

  @Test(
    "a server that is busy or broken does not end the wait, and is named once", arguments: [429, 500, 502, 503, 504])
  func busy(_ status: Int) throws {
    server.will(200, PlayedServer.metadata)
    server.will(200, PlayedServer.code)
    server.will(status, page: "<html>no</html>")
    server.will(status, page: "<html>no</html>")
    server.will(400, PlayedServer.error("authorization_pending"))
    server.will(200, PlayedServer.tokens("1"))
    #expect(try met() == ["a: status \(status)"])
    #expect(server.waits == [5, 10, 20, 5], "after an answer it asks as often as before")
    #expect(try server.fleetFolder.login()?.tokens?.refresh == "refresh-1")
  }

  @Test("who says how long to wait is believed, until the code's end")
  func retryAfter() throws {
    server.will(200, PlayedServer.metadata)
    server.will(200, PlayedServer.code)
    server.will(429, page: "{\"code\":\"busy\",\"detail\":\"Too many.\"}", headers: ["retry-after": "17"])
    server.will(
      503, page: "",
      headers: ["retry-after": "Wed, 18 Nov 2026 14:07:02 GMT", "date": "Wed, 18 Nov 2026 14:06:40 GMT"])
    server.will(503, page: "", headers: ["retry-after": "3600"])
    // It is asked once more at the code's end.
    server.will(503, page: "")
    let client = try server.client
    var met: [String] = []
    #expect(throws: FleetError.codeExpired) {
      try client.finishLogin(client.beginLogin(), met: { met.append($0) }, waiting: { _ in })
    }
    #expect(met == ["a: Too many", "a: status 503"])
    #expect(server.waits == [5, 17, 30, 8])
  }

  @Test(
    "a page of the network's own does not end the wait",
    arguments: [(200, "<html>Welcome</html>"), (302, ""), (403, "<html>Log in</html>"), (511, "{}"), (200, "[]")])
  func portal(_ status: Int, _ page: String) throws {
    server.will(200, PlayedServer.metadata)
    server.will(200, PlayedServer.code)
    server.will(status, page: page)
    server.will(200, PlayedServer.tokens("1"))
    #expect(try met() == [Self.notOwn])
    #expect(server.waits == [5, 10])
  }

  @Test(
    "a network that shows another certificate, or too much, does not end the wait",
    arguments: [
      HTTPError.otherAuthority(host: "a"), .unknownAuthority(host: "a"), .untrusted(host: "a", "expired"),
      .tooLarge(host: "a", limit: 1),
    ])
  func intercepted(_ error: HTTPError) throws {
    server.will(200, PlayedServer.metadata)
    server.will(200, PlayedServer.code)
    server.will(fail: error)
    server.will(200, PlayedServer.tokens("1"))
    #expect(try met() == [error.description])
  }

  @Test("a clock that a page of the network has led astray is set by the server's next answer")
  func portalClock() throws {
    let date = "Wed, 18 Nov 2026 11:06:40 GMT"
    server.will(200, PlayedServer.metadata, date: date)
    server.will(200, PlayedServer.code, date: date)
    server.will(200, page: "<html>Welcome</html>", headers: ["date": "Thu, 01 Jan 1970 00:00:00 GMT"])
    server.will(400, PlayedServer.error("invalid_dpop_proof"), date: date)
    server.will(200, PlayedServer.tokens("1"), date: date)
    #expect(try met() == [Self.notOwn])
  }

  @Test("an answer of the server that is an error ends the wait", arguments: ["invalid_grant", "invalid_client"])
  func refusedForGood(_ code: String) throws {
    server.will(200, PlayedServer.metadata)
    server.will(200, PlayedServer.code)
    server.will(400, PlayedServer.error(code))
    #expect { _ = try met() } throws: { error in
      if case FleetError.problem(let problem, _) = error { problem.code == code } else { false }
    }
  }

  @Test(
    "a login ends with the reason",
    arguments: [("access_denied", FleetError.denied), ("expired_token", .codeExpired)])
  func refused(_ code: String, _ expected: FleetError) throws {
    server.will(200, PlayedServer.metadata)
    server.will(200, PlayedServer.code)
    server.will(400, PlayedServer.error(code))
    let client = try server.client
    #expect(throws: expected) { try client.finishLogin(client.beginLogin()) { _ in } }
    #expect(try server.fleetFolder.login() == nil)
  }

  @Test("a code that nobody confirms ends the wait at its end")
  func expired() throws {
    server.will(200, PlayedServer.metadata)
    server.will(200, PlayedServer.code)
    for _ in 0..<12 { server.will(400, PlayedServer.error("authorization_pending")) }
    let client = try server.client
    #expect(throws: FleetError.codeExpired) { try client.finishLogin(client.beginLogin()) { _ in } }
    #expect(server.waits.reduce(0, +) == 60)
  }

  @Test("a token that is not bound to the device is not taken")
  func bearer() throws {
    server.will(200, PlayedServer.metadata)
    server.will(200, PlayedServer.code)
    server.will(200, ["access_token": "a", "token_type": "Bearer", "expires_in": 600, "refresh_token": "r"])
    let client = try server.client
    #expect(throws: FleetError.malformed("the token is not bound to this device", host: "a")) {
      try client.finishLogin(client.beginLogin()) { _ in }
    }
  }

  @Test(
    "a server that names another is not believed",
    arguments: [
      ("issuer", "https://b"), ("token_endpoint", "https://b/oauth/token"),
      ("token_endpoint", "http://a/oauth/token"), ("token_endpoint", "https://a.b/oauth/token"),
      ("revocation_endpoint", "https://a@b/"), ("device_authorization_endpoint", "file:///etc/passwd"),
    ])
  func elsewhere(_ member: String, _ value: String) throws {
    let members = (PlayedServer.metadata.object ?? []).map {
      $0.name == member ? JSON.Member(member, .string(value)) : $0
    }
    server.will(200, .object(members))
    #expect(throws: FleetError.self) { try server.client.beginLogin() }
    #expect(server.requests.count == 1)
  }

  // MARK: - Tokens

  private func asks() throws -> String { try server.client.account().email }

  @Test("tokens that have ended are renewed before the request, once")
  func renewal() throws {
    try server.isLoggedIn(ended: true)
    server.will(200, PlayedServer.tokens("1"))
    server.will(200, ["email": "anna@example.org"])
    #expect(try asks() == "anna@example.org")
    #expect(server.requests.map(\.url) == ["https://a/oauth/token", "https://a/v1/account"])
    #expect(server.form(0)["refresh_token"] == "refresh-0")
    #expect(server.requests[0].isOnce, "a refresh token that is sent twice looks stolen")
    #expect(server.requests[0].headers.contains { $0.name == "Idempotency-Key" }, "unless it is the same request")
    #expect(try server.fleetFolder.login()?.tokens?.refresh == "refresh-1")
    server.will(200, ["email": "anna@example.org"])
    _ = try asks()
    #expect(server.requests.count == 3)
  }

  @Test("a request that is refused for its token is sent once more, and not for ever")
  func refusedToken() throws {
    try server.isLoggedIn()
    server.will(401, ["code": "unauthorized"])
    server.will(200, PlayedServer.tokens("1"))
    server.will(401, ["code": "unauthorized", "detail": "No."])
    #expect {
      try asks()
    } throws: { error in
      (error as? FleetError)?.exitStatus == .noPermission && "\(error)" == "a: No"
    }
    #expect(server.requests.count == 3)
  }

  @Test("who logs in while others do so too follows them, however many they are")
  func otherLogins() throws {
    try server.isLoggedIn()
    var world = server.world
    var logins = 0
    world.device = { [server] in
      logins += 1
      if logins <= 3 { try server.isLoggedIn(as: "other-\(logins)") }
      return server.device
    }
    for _ in 0..<3 { server.will(401, ["code": "unauthorized"]) }
    server.will(200, ["email": "anna@example.org"])
    #expect(try FleetClient(in: server.fleetFolder, world).account().email == "anna@example.org")
    #expect(server.requests.count == 4 && server.requests.allSatisfy { $0.url == "https://a/v1/account" })
  }

  @Test("a renewal whose answer is lost keeps the tokens; one that is refused ends the login")
  func lostRenewal() throws {
    try server.isLoggedIn(ended: true)
    server.will(fail: .lost(host: "a", "reset"))
    #expect(throws: FleetError.http(.lost(host: "a", "reset"))) { try asks() }
    #expect(try server.fleetFolder.login()?.tokens?.refresh == "refresh-0")
    server.will(503, ["code": "busy"])
    #expect(throws: FleetError.self) { try asks() }
    let kept = try server.fleetFolder.login()?.tokens
    #expect(kept?.refresh == "refresh-0")
    #expect(server.keys == [kept?.retry, kept?.retry] && kept?.retry != nil)
    server.will(400, PlayedServer.error("invalid_grant"))
    #expect(throws: FleetError.loginEnded(host: "a")) { try asks() }
    #expect(try server.fleetFolder.login()?.tokens == nil)
    #expect(throws: FleetError.notLoggedIn) { try asks() }
  }

  @Test("the key of a renewal cannot be computed from what it renews, and is that renewal's alone")
  func renewalKey() throws {
    // The file has no key: it is as stepctl wrote it before there was one.
    try server.isLoggedIn(ended: true)
    let file = "\(server.fleetFolder.path)/login.json"
    let text = String(decoding: try Files.readRegular(file), as: UTF8.self)
    try Files.replace(file, with: text.replacing(",\"retry\":null", with: "").utf8, mode: 0o600)
    #expect(try !Files.readRegular(file).contains("retry".utf8) && server.fleetFolder.login()?.tokens != nil)
    for name in ["1", "2"] {
      server.will(200, PlayedServer.tokens(name))
      server.will(200, ["email": "anna@example.org"])
      _ = try asks()
      #expect(try server.fleetFolder.login()?.tokens?.retry == nil)
      try server.isLoggedIn(ended: true)
    }
    let keys = server.keys
    #expect(keys.count == 2 && keys[0] != keys[1], "both have renewed the same token")
  }

  @Test("a proof by a clock that is wrong is made again by the server's")
  func clock() throws {
    try server.isLoggedIn()
    // Three hours ahead of 2026-11-18T11:06:40Z.
    server.will(401, ["code": "unauthorized"], date: "Wed, 18 Nov 2026 14:06:40 GMT")
    server.will(200, ["email": "anna@example.org"], date: "Wed, 18 Nov 2026 14:06:40 GMT")
    let client = try server.client
    #expect(try client.account().email == "anna@example.org")
    #expect(client.lead == 10_800)
    let times = try server.requests.map { request in
      let proof = try #require(request.headers.first { $0.name == "DPoP" }?.value)
      return try JSON(parsing: try #require(Base64URL.decode(proof.split(separator: ".")[1])))["iat"]?.integer
    }
    #expect(times == [server.time, server.time + 10_800])
  }

  // MARK: - Answers

  @Test(
    "a problem's status is the program's",
    arguments: [
      (400, .refused), (401, .noPermission), (403, .noPermission), (404, .noInput), (409, .refused),
      (412, .refused), (422, .refused), (429, .unavailable), (500, .unavailable), (503, .unavailable),
    ] as [(Int, Domain.ExitStatus)])
  func problems(_ status: Int, _ expected: Domain.ExitStatus) throws {
    try server.isLoggedIn()
    for _ in 0..<3 { server.will(status, ["code": "a_word", "detail": "What is wrong."]) }
    if status == 401 { server.will(401, [:]) }
    #expect {
      _ = try server.client.bookings()
    } throws: { ($0 as? FleetError)?.exitStatus == expected || status == 401 }
  }

  @Test("a booking whose answer is lost is asked for again with its key, three times at the most")
  func booking() throws {
    try server.isLoggedIn()
    let vehicle = try vehicle()
    for _ in 0..<3 { server.will(fail: .lost(host: "a", "reset")) }
    var repeats = 0
    #expect(throws: FleetError.http(.lost(host: "a", "reset"))) {
      _ = try server.client.book(vehicle, from: nil, to: server.time + 7200, steps: nil) { _ in repeats += 1 }
    }
    #expect(repeats == 2)
    let keys = server.requests.dropFirst().map { $0.headers.first { $0.name == "Idempotency-Key" }?.value }
    #expect(keys.count == 3 && Set(keys).count == 1 && keys[0] != nil)
    // What is refused is not asked for again.
    server.will(409, ["code": "taken", "next": [["from": "2026-11-23T10:00:00Z", "to": "2026-11-23T12:00:00Z"], 5]])
    #expect {
      _ = try server.client.book(vehicle, from: nil, to: server.time + 7200, steps: nil) { _ in }
    } throws: { error in
      guard case FleetError.problem(let problem, _) = error else { return false }
      return problem.code == "taken" && problem.next == [1_795_428_000..<1_795_435_200]
    }
    #expect(server.requests.count == 5)
  }

  private func vehicle() throws -> FleetVehicle {
    server.will(
      200,
      [
        "vehicles": [
          [
            "id": "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90", "name": "Van", "state": "available",
            "steps": [["id": "left", "side": "left", "major": 1]],
          ]
        ]
      ])
    return try #require(try server.client.vehicles().first)
  }

  @Test("vehicles come in pages")
  func pages() throws {
    try server.isLoggedIn()
    func page(_ name: String, next: String?) -> JSON {
      let vehicle = JSON.object(Self.van.filter { $0.name != "name" } + [.init("name", .string(name))])
      return .object([.init("vehicles", [vehicle]), .init("next", next.map(JSON.string) ?? .null)])
    }
    server.will(200, page("Bus", next: "Bus & Bahn"))
    server.will(200, page("Van", next: nil))
    #expect(try server.client.vehicles().map(\.name) == ["Bus", "Van"])
    #expect(
      server.requests.map(\.url).suffix(2) == [
        "https://a/v1/vehicles", "https://a/v1/vehicles?after=Bus%20%26%20Bahn",
      ])
    // A page without vehicles that promises another one ends nothing.
    server.will(200, ["vehicles": [], "next": "a"])
    #expect(throws: FleetError.malformed("it has too many vehicles", host: "a")) { try server.client.vehicles() }
  }

  private static let van: [JSON.Member] = [
    .init("id", "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"), .init("name", "Van"), .init("state", "available"),
    .init("steps", [["id": "left", "side": "left", "major": 1]]),
  ]

  @Test("a vehicle is where the server says, since then, and nowhere where it does not say")
  func place() throws {
    try server.isLoggedIn()
    let id = try #require(UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"))
    server.will(200, .object(Self.van))
    #expect(try server.client.vehicle(id)?.place == nil)
    server.will(
      200,
      .object(
        Self.van + [
          .init("place", ["latitude": .number(-33.8568), "longitude": 151]), .init("placed_at", "2026-11-21T15:30:00Z"),
        ]))
    let place = try #require(try server.client.vehicle(id)?.place)
    #expect(place.position == Coordinate(latitude: -33.8568, longitude: 151) && place.since == 1_795_275_000)
    #expect(server.requests.last?.url == "https://a/v1/vehicles/5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")
    server.will(404, ["code": "not_found"])
    #expect(try server.client.vehicle(id) == nil)
  }

  @Test(
    "a place that is none leads nobody astray",
    arguments: [
      ["place": ["latitude": .number(90.1), "longitude": 0], "placed_at": "2026-11-21T15:30:00Z"],
      ["place": ["latitude": 0, "longitude": .number(.infinity)], "placed_at": "2026-11-21T15:30:00Z"],
      ["place": ["latitude": "0", "longitude": 0], "placed_at": "2026-11-21T15:30:00Z"],
      ["place": ["latitude": 0], "placed_at": "2026-11-21T15:30:00Z"], ["place": ["latitude": 0, "longitude": 0]],
      ["place": [0, 0], "placed_at": "2026-11-21T15:30:00Z"],
      ["place": ["latitude": 0, "longitude": 0], "placed_at": "yesterday"],
      // Another vehicle than the one that was asked for.
      ["id": "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a91"],
    ] as [JSON])
  func noPlace(_ changes: JSON) throws {
    try server.isLoggedIn()
    let changes = changes.object ?? []
    let kept = Self.van.filter { member in !changes.contains { $0.name == member.name } }
    server.will(200, .object(kept + changes))
    #expect {
      _ = try server.client.vehicle(try #require(UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")))
    } throws: { ($0 as? FleetError)?.exitStatus == .badData }
  }

  @Test(
    "a booking that is not as it should be is none",
    arguments: [
      ("id", JSON.string("../../etc")), ("id", ""), ("vehicle", "van"), ("from", "yesterday"), ("to", 5),
      ("to", "2026-11-23T08:00:00Z"), ("state", "A B"), ("name", "a\u{1B}[2J"), ("steps", ["Left Step"]),
    ] as [(String, JSON)])
  func malformedBookings(_ member: String, _ value: JSON) throws {
    try server.isLoggedIn()
    let members: [JSON.Member] = [
      .init("id", "a-1"), .init("vehicle", "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"), .init("name", "Van"),
      .init("from", "2026-11-23T08:00:00Z"), .init("to", "2026-11-23T10:00:00Z"), .init("state", "booked"),
      .init("steps", ["left"]),
    ]
    server.will(200, .object(members))
    #expect(try server.client.booking("a-1").isLive)
    server.will(200, .object(members.map { $0.name == member ? .init(member, value) : $0 }))
    #expect {
      _ = try server.client.booking("a-1")
    } throws: { ($0 as? FleetError)?.exitStatus == .badData }
  }

  private static let event: JSON = [
    "time": "2026-11-23T08:01:04Z", "kind": "began", "step": "left", "position": "open", "method": "beacon",
    "later": 1,
  ]

  @Test("the course of a booking is read, and an older server has none")
  func course() throws {
    try server.isLoggedIn()
    let booking = Booking(
      id: "a-1", vehicle: .random(), name: nil, from: 0, to: 1, state: "active", steps: [], etag: nil)
    server.will(200, ["events": [Self.event]])
    let events = try #require(try server.client.events(of: booking))
    #expect(events.map(\.kind) == ["began"] && events[0].step == StepID("left") && events[0].method == "beacon")
    #expect(events[0].json["cause"] == .null && events[0].json["time"] == "2026-11-23T08:01:04Z")
    server.will(404, ["code": "not_found"])
    #expect(try server.client.events(of: booking) == nil)
    for (member, value) in [
      ("time", JSON.string("now")), ("kind", "A B"), ("step", "Left Step"), ("position", "a\u{1B}[2J"), ("code", 7),
    ] {
      server.will(
        200,
        [
          "events": [
            .object((Self.event.object ?? []).filter { $0.name != member } + [.init(member, value)])
          ]
        ])
      #expect {
        _ = try server.client.events(of: booking)
      } throws: { ($0 as? FleetError)?.exitStatus == .badData }
    }
  }

  @Test("of bookings that are made at once, each one is kept")
  func keptTogether() throws {
    let (folder, now) = (server.fleetFolder, server.time)
    let vehicle = try #require(UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"))
    let running = try (0..<8).map { number in
      try Meanwhile {
        let booking = Booking(
          id: "b\(number)", vehicle: vehicle, name: "Van", from: now, to: now + 3600, state: "booked", steps: [],
          etag: nil)
        try folder.keep(booking, now: now)
      }
    }
    for each in running { try each.result() }
    #expect(folder.bookings().map(\.id).sorted() == (0..<8).map { "b\($0)" })
  }

  @Test("bookings are kept until they are of no more use")
  func kept() throws {
    func booking(_ id: String, to: Int64, state: String = "active") throws -> Booking {
      Booking(
        id: id, vehicle: try #require(UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")), name: "Van", from: to - 3600,
        to: to, state: state, steps: [], etag: "\"x\"")
    }
    let now = server.time
    let live = try booking("a", to: now - 600)
    let cancelled = try booking("c", to: now + 60, state: "cancelled")
    try server.fleetFolder.keep(
      [live, booking("b", to: now - 901), cancelled, booking("d", to: now - 86_400, state: "ended")], now: now)
    #expect(server.fleetFolder.bookings() == [live, cancelled])
    #expect(!cancelled.isActive(at: now))
    #expect(live.isActive(at: now) && !live.isActive(at: now + 300) && !live.isActive(at: live.from - 1))
  }
}
