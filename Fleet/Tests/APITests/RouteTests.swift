import Booking
import Domain
import Encoding
import HTTPTypes
import Hummingbird
import StepProtocol
import Testing
import Web

@testable import API

@Suite struct RiderRouteTests {
  private let phone = TestDevice()

  private func booking(_ bench: Bench, _ begin: Double = 1, _ end: Double = 3) async throws -> JSON {
    let interval = bench.interval(begin, end)
    return [
      "vehicle": .string(try await bench.id(of: "car")), "from": .string(interval.from), "to": .string(interval.to),
    ]
  }

  @Test func `vehicles are listed, and say when they are free`() async throws {
    let bench = try await Bench()
    let made = try await bench.book("car", 1, 3)
    try await bench.service.setService(.suspended, of: "van")
    let listed = try await bench.ask(.get, "/v1/vehicles").json["vehicles"]?.array ?? []
    #expect(listed.map { $0["name"] } == ["car"])
    #expect(listed[0]["free"] == nil && listed[0]["state"] == "available" && listed[0]["steps"]?.array?.count == 2)
    let asked = bench.interval(2, 4)
    let (from, to) = (asked.from, asked.to)
    let car = try await bench.ask(.get, "/v1/vehicles?from=\(from)&to=\(to)").json["vehicles"]?.array?.first
    #expect(car?["free"] == false && car?["next"]?.array?.count == 3)
    #expect(car?["next"]?.array?.first?["from"] == .string(made.interval.to))
    let later = bench.interval(3, 4)
    let free = try await bench.ask(.get, "/v1/vehicles?from=\(later.from)&to=\(later.to)").json["vehicles"]?.array?
      .first
    #expect(free?["free"] == true && free?["next"] == nil)
    // Times that the form cannot have are left out.
    let last = try await bench.ask(.get, "/v1/vehicles?from=\(from)&to=9999-12-31T23:59:59Z").json["vehicles"]
    #expect(last?.array?.first?["next"] == [])
    for (query, detail) in [
      ("?from=\(from)", "from and to belong together"), ("?from=\(to)&to=\(from)", "to has to be after from"),
      ("?from=soon&to=\(to)", "from is a time as in 2027-03-01T09:30:00Z"),
    ] {
      let answer = try await bench.ask(.get, "/v1/vehicles\(query)")
      #expect(answer.status == 400 && answer.detail == detail)
    }
  }

  @Test func `a vehicle has a tag, with which it is read again only if it has changed`() async throws {
    let bench = try await Bench()
    let path = "/v1/vehicles/\(try await bench.id(of: "car"))"
    let first = try await bench.ask(.get, path)
    let tag = try #require(first.headers[.eTag])
    #expect(first.status == 200 && first.headers[.cacheControl] == "private, no-cache")
    for known in [tag, "\"other\", \(tag)", "*"] {
      let again = try await bench.ask(.get, path, headers: [.ifNoneMatch: known])
      #expect(again.status == 304 && again.text.isEmpty && again.headers[.eTag] == tag)
    }
    try await bench.book("car", 0, 1)
    let changed = try await bench.ask(.get, path, headers: [.ifNoneMatch: tag])
    #expect(changed.status == 200 && changed.json["state"] == "reserved")
    #expect(try await bench.ask(.get, "/v1/vehicles/\(UUID.random())").code == "not_found")
    #expect(try await bench.ask(.get, "/v1/vehicles/car").code == "not_found")
  }

  @Test func `a booking is made, read, moved, cancelled`() async throws {
    let bench = try await Bench()
    let made = try await bench.ask(.post, "/v1/bookings", try await booking(bench))
    let id = try #require(made.json["id"]?.string)
    #expect(made.status == 201 && made.headers[.location] == "/v1/bookings/\(id)")
    #expect(made.headers[.eTag] == "\"1\"" && made.json["etag"] == "\"1\"")
    let path = "/v1/bookings/\(id)"
    let read = try await bench.ask(.get, path)
    #expect(read.status == 200 && read.text == made.text && read.headers[.eTag] == "\"1\"")
    #expect(try await bench.ask(.get, "/v1/bookings").json["bookings"] == [made.json])
    let to: JSON = ["to": .string(bench.interval(1, 4).to)]
    #expect(try await bench.ask(.patch, path, to).status == 428)
    for other in ["\"9\"", "W/\"1\"", "", "1", "\"01\"", "\"8\", \"9\""] {
      let answer = try await bench.ask(.patch, path, to, headers: [.ifMatch: other])
      #expect(answer.status == 412 && answer.code == "changed", "\(other)")
    }
    let moved = try await bench.ask(.patch, path, to, headers: [.ifMatch: "\"9\",\"1\" , \"8\""])
    #expect(moved.status == 200 && moved.json["to"] == to["to"] && moved.headers[.eTag] == "\"2\"")
    #expect(try await bench.ask(.patch, path, to, headers: [.ifMatch: "*"]).text == moved.text)
    #expect(try await bench.ask(.post, "\(path)/end").code == "not_begun")
    #expect(try await bench.ask(.post, "\(path)/cancel").json["state"] == "cancelled")
    // It is its rider's alone.
    #expect(try await bench.ask(.get, path, by: "bob phone").status == 404)
    #expect(try await bench.ask(.get, "/v1/bookings/none").status == 404)
  }

  @Test func `vehicles are listed in pages`() async throws {
    let bench = try await Bench()
    for name in ["Zug", "bus & bahn"] {
      bench.issuer.have(name)
      _ = try await bench.service.addVehicle(name)
    }
    var (names, path): ([String], String?) = ([], "/v1/vehicles?limit=1")
    while let asked = path {
      let answer = try await bench.ask(.get, asked).json
      names += answer["vehicles"]?.array?.compactMap { $0["name"]?.string } ?? []
      path = answer["next"]?.string.map { "/v1/vehicles?limit=1&after=\($0 == "bus & bahn" ? "bus%20%26%20bahn" : $0)" }
    }
    #expect(names == ["Zug", "bus & bahn", "car", "van"])
    #expect(try await bench.ask(.get, "/v1/vehicles").json["next"] == nil)
    #expect(try await bench.ask(.get, "/v1/vehicles?after=van").json == ["vehicles": []])
    for limit in ["0", "101", "x", ""] {
      #expect(try await bench.ask(.get, "/v1/vehicles?limit=\(limit)").status == 400, "\(limit)")
    }
  }

  @Test func `a booking without a begin begins now`() async throws {
    let bench = try await Bench()
    let to = bench.interval(0, 1).to
    let wanted: JSON = [
      "vehicle": .string(try await bench.id(of: "car")), "to": .string(to), "steps": ["left"],
    ]
    let made = try await bench.ask(.post, "/v1/bookings", wanted)
    #expect(made.json["from"] == .string(Timestamp.text(bench.now)) && made.json["steps"] == ["left"])
  }

  @Test func `a request with a key can come again`() async throws {
    let bench = try await Bench()
    let wanted = try await booking(bench)
    let key = HTTPFields([.init(name: .idempotencyKey, value: "a-1_b.c")])
    let first = try await bench.ask(.post, "/v1/bookings", wanted, headers: key)
    let again = try await bench.ask(.post, "/v1/bookings", wanted, headers: key)
    #expect(first.status == 201 && again.status == 201 && first.text == again.text)
    #expect(again.headers[.location] == first.headers[.location] && again.headers[.eTag] == first.headers[.eTag])
    let other = try await bench.ask(.post, "/v1/bookings", try await booking(bench, 4, 5), headers: key)
    #expect(other.status == 422 && other.code == "key_reused")
    for bad in ["not a key!", String(repeating: "a", count: 65)] {
      let answer = try await bench.ask(
        .post, "/v1/bookings", wanted, headers: HTTPFields([.init(name: .idempotencyKey, value: bad)]))
      #expect(answer.status == 400)
    }
  }

  @Test func `a body is read strictly`() async throws {
    let bench = try await Bench()
    let good = try await booking(bench)
    for (name, value, detail) in [
      ("vehicle", "car", "vehicle is a UUID"), ("to", "tomorrow", "to is a time as in 2027-03-01T09:30:00Z"),
      ("steps", [], "steps is a list of steps' names"), ("steps", "left", "steps is a list of steps' names"),
      ("form", 1, "the body has a member that is not known: form"),
    ] as [(String, JSON, String)] {
      let body = JSON.object(good.object!.filter { $0.name != name } + [.init(name, value)])
      let answer = try await bench.ask(.post, "/v1/bookings", body)
      #expect(answer.status == 400 && answer.detail == detail, "\(name)")
    }
    let roof = JSON.object(good.object! + [.init("steps", ["roof"])])
    #expect(try await bench.ask(.post, "/v1/bookings", roof).code == "no_such_step")
  }

  @Test func `who comes too late is told when there is time`() async throws {
    let bench = try await Bench()
    try await bench.book("car", 1, 3)
    let answer = try await bench.ask(.post, "/v1/bookings", try await booking(bench, 2, 4), by: "bob phone")
    #expect(answer.status == 409 && answer.code == "taken")
    #expect(answer.headers[.contentType] == "application/problem+json")
    #expect(answer.json["next"]?.array?.first == bench.interval(3, 5).json)
  }

  @Test func `access is given as text to the device that asks`() async throws {
    let bench = try await Bench()
    let made = try await bench.book("car", 0, 3)
    let path = "/v1/bookings/\(made.id)/access"
    let caller = "ada \(phone.thumbprint)"
    let request: JSON = ["request": .string(phone.text(at: bench.now) + "\n")]
    let answer = try await bench.ask(.post, path, request, by: caller)
    #expect(answer.status == 200 && answer.text == "access 1\n")
    #expect(answer.headers[.contentType] == "text/plain; charset=utf-8" && answer.headers[.cacheControl] == "no-store")
    let other = try await bench.ask(.post, path, request, by: "ada other")
    #expect(other.status == 422 && other.code == "bad_request")
    let damaged = try await bench.ask(.post, path, ["request": "x"], by: caller)
    #expect(damaged.status == 422 && damaged.detail?.hasPrefix("the request is not a device's, or damaged: ") == true)
    let ended = try await bench.ask(.post, "/v1/bookings/\(made.id)/end")
    #expect(ended.json["state"] == "ended" && ended.headers[.eTag] == "\"2\"")
  }

  @Test func `a vehicle joins`() async throws {
    let bench = try await Bench()
    let code = try #require(try await bench.service.addVehicle("bus"))
    let good: [JSON.Member] = [
      .init("code", .string(code)), .init("name", "bus"), .init("id", .string(UUID.random().description)),
      .init("topic", "fleet/bus"), .init("steps", PlayedIssuer.steps.json),
      .init(
        "keys",
        [
          "encryption": [
            "kty": "OKP", "crv": "X25519", "x": .string(Base64URL.encode(DecryptionKey().encryptionKey.bytes)),
          ], "signing": SigningKey().verificationKey.jwk,
        ]),
      .init("certificate_request", "AQID"),
    ]
    for (name, value, detail) in [
      ("id", "1", "id is a UUID"), ("topic", "a/#", "topic cannot begin MQTT topics of a vehicle"),
      ("steps", [], "steps is a list of 1 to 16 objects with id, side and major"),
      ("keys", ["encryption": "x"], "keys has encryption and signing"),
      ("certificate_request", "?", "certificate_request is base64url"),
    ] as [(String, JSON, String)] {
      let body = JSON.object(good.filter { $0.name != name } + [.init(name, value)])
      let answer = try await bench.ask(.post, "/v1/enrolments", body, by: nil)
      #expect(answer.status == 400 && answer.detail == detail, "\(name)")
    }
    // A key whose private part was sent is nobody's secret any more. The code stays good.
    let leaked = DecryptionKey()
    for (name, keys) in [
      ("encryption", ["encryption": leaked.jwk, "signing": SigningKey().verificationKey.jwk]),
      ("signing", ["encryption": good[5].value["encryption"]!, "signing": SigningKey().jwk]),
    ] as [(String, JSON)] {
      let body = JSON.object(good.filter { $0.name != "keys" } + [.init("keys", keys)])
      let answer = try await bench.ask(.post, "/v1/enrolments", body, by: nil)
      #expect(answer.status == 400 && answer.code == "leaked" && answer.detail?.contains(name) == true)
      #expect(!answer.text.contains(leaked.jwk["d"]?.string ?? ""))
    }
    let joined = try await bench.ask(.post, "/v1/enrolments", .object(good), by: nil)
    #expect(joined.status == 201)
    #expect(
      joined.json == [
        "name": "bus", "keys": [bench.issuer.key.verificationKey.jwk],
        "broker": ["host": "fleet.example", "port": 8883], "authority": "authority", "certificate": "certificate",
        "ends": .string(Timestamp.text(bench.now + 100)),
      ])
    let again = try await bench.ask(.post, "/v1/enrolments", .object(good), by: nil)
    #expect(again.status == 403 && again.code == "bad_code")
  }

  @Test func `keys, document and health are for everybody`() async throws {
    let bench = try await Bench()
    let keys = try await bench.ask(.get, "/v1/jwks", by: nil)
    let key = keys.json["keys"]?.array?.first
    #expect(key?["kid"] == .string(bench.issuer.key.verificationKey.thumbprint.description))
    #expect(key?["use"] == "sig" && key?["alg"] == "Ed25519" && keys.headers[.cacheControl] == "max-age=300")
    #expect(try await bench.ask(.get, "/openapi.json", by: nil).json["openapi"] == "3.1.0")
    #expect(try await bench.ask(.get, "/healthz", by: nil).json == ["status": "ok"])
    #expect(try await bench.ask(.head, "/healthz", by: nil).status == 200)
  }

  @Test(arguments: [
    (HTTPRequest.Method.get, "/v1/vehicles"), (.get, "/v1/vehicles/x"), (.get, "/v1/bookings"),
    (.get, "/v1/bookings/x"),
    (.post, "/v1/bookings/x/cancel"), (.post, "/v1/bookings/x/end"),
  ])
  func `a rider's route is for riders`(_ method: HTTPRequest.Method, _ path: String) async throws {
    #expect(try await Bench().ask(method, path, by: nil).status == 401)
  }

  @Test func `a body's sender is asked for, too`() async throws {
    let bench = try await Bench()
    #expect(try await bench.ask(.post, "/v1/bookings", [:], by: nil).status == 401)
    #expect(try await bench.ask(.patch, "/v1/bookings/x", [:], by: nil).status == 401)
    #expect(try await bench.ask(.post, "/v1/bookings/x/access", [:], by: nil).status == 401)
  }
}

@Suite struct OperatorRouteTests {
  @Test func `vehicles are listed with those that are expected`() async throws {
    let bench = try await Bench()
    try await bench.book("car", 0, 1)
    try await bench.service.setService(.suspended, of: "van")
    let added = try await bench.command(.post, "/vehicles", ["name": "bus"])
    #expect(added.status == 201 && added.json["code"]?.string?.count == 14)
    let listed = try await bench.command(.get, "/vehicles").json["vehicles"]?.array ?? []
    #expect(listed.map { $0["name"] } == ["car", "van", "bus"])
    #expect(listed.map { $0["state"] } == ["reserved", "non_operational", "expected"])
    #expect(listed.map { $0["service"] } == ["in_service", "suspended", nil])
    #expect(listed.map { $0["bookings"] } == [1, 0, nil])
    #expect(listed[2]["code_ends"] == .string(Timestamp.text(bench.now + 86_400)))
    bench.issuer.have("train")
    #expect(try await bench.command(.post, "/vehicles", ["name": "train"]).json == ["name": "train", "code": nil])
  }

  @Test func `a vehicle is taken out of service, and removed`() async throws {
    let bench = try await Bench()
    let suspended = try await bench.command(.post, "/vehicle", ["name": "car", "service": "suspended"])
    #expect(suspended.json["state"] == "non_operational")
    #expect(try await bench.command(.post, "/vehicle", ["name": "car"]).json == suspended.json)
    #expect(try await bench.command(.post, "/vehicle", ["name": "car", "service": "gone"]).detail == "service")
    let removed = try await bench.command(.post, "/vehicle", ["name": "car", "service": "removed"])
    #expect(removed.json == ["name": "car", "state": "removed"])
    #expect(try await bench.command(.post, "/vehicle", ["name": "car"]).status == 404)
  }

  @Test func `a vehicle is placed`() async throws {
    let bench = try await Bench()
    func place(_ place: JSON) async throws -> Bench.Answer {
      try await bench.command(.post, "/vehicle/place", ["name": "car", "place": place])
    }
    let placed = try await place(["latitude": 48, "longitude": .number(9.5)])
    #expect(placed.json["place"]?["longitude"] == .number(9.5))
    #expect(placed.json["placed_at"] == .string(Timestamp.text(bench.now)))
    #expect(try await place(nil).json["place"] == nil)
    for bad in [
      ["latitude": 91, "longitude": 0], ["latitude": 1], "here", ["latitude": 1, "longitude": 1, "height": 1],
    ]
      as [JSON]
    {
      let answer = try await place(bad)
      #expect(
        answer.status == 400
          && answer.detail == "place is a latitude of -90 to 90 and a longitude of -180 to 180", "\(bad)")
    }
  }

  @Test func `open bookings are listed with their accounts`() async throws {
    let bench = try await Bench()
    let made = try await bench.book("car", 1, 3)
    let listed = try await bench.command(.get, "/bookings").json["bookings"]?.array
    #expect(listed == [.object(made.json.object! + [.init("account", "ada"), .init("email", "ada@example.org")])])
  }

  @Test func `access is taken back from a booking, or from a device with its logins`() async throws {
    let bench = try await Bench()
    let phone = TestDevice()
    let ride = try await bench.ride(phone)
    let booking: JSON = ["booking": .string(ride.id.uppercased())]
    let cancelled = try await bench.command(.post, "/revoke", booking).json
    #expect(cancelled["booking"] == .string(ride.id) && cancelled["tokens"] == 1 && cancelled["was"] == "active")
    #expect(cancelled["name"] == "car" && cancelled["email"] == "ada@example.org")
    #expect(try await bench.command(.post, "/revoke", booking).json["was"] == "cancelled")
    // One that nobody has: it is mistyped, and the lost device would go on.
    let other = TestDevice().thumbprint
    #expect(try await bench.command(.post, "/revoke", ["device": .string(other.description)]).status == 404)
    let device: JSON = ["device": .string(phone.thumbprint.description)]
    #expect(try await bench.command(.post, "/revoke", device).json == ["tokens": 0, "logins": 2])
    let both = JSON.object(booking.object! + device.object!)
    #expect(try await bench.command(.post, "/revoke", both).detail == "name a booking or a device, not both")
    #expect(
      try await bench.command(.post, "/revoke", ["device": "x"]).detail
        == "device is a key's thumbprint: 43 characters of base64url")
    #expect(try await bench.command(.post, "/revoke", ["booking": "x"]).status == 404)
  }

  @Test func `the keys change`() async throws {
    let bench = try await Bench()
    #expect(try await bench.command(.post, "/keys/rotate", [:]).json == ["done": "rotated"])
    #expect(
      try await bench.command(.post, "/keys/retire").json
        == ["done": "the old key no longer counts; vehicles learn of it now"])
    bench.issuer.fail(IssuerError.failed("the old key still counts"))
    let refused = try await bench.command(.post, "/keys/rotate", ["key": "a key"])
    #expect(refused.status == 409 && refused.code == "keys" && refused.detail == "the old key still counts")
  }
}
