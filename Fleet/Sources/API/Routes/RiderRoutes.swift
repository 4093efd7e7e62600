import Access
import Booking
import Domain
import Encoding
import GeoJSON
import HTTPTypes
package import Hummingbird
import StepProtocol
package import Web

extension FleetService {
  /// The routes for riders and vehicles, and the public ones.
  package func addRoutes(to router: some RouterMethods<FleetContext>, _ authenticator: any Authenticator) {
    router.get("/v1/vehicles") { [self] request, context in
      let caller = try await authenticator.caller(of: request, context)
      let (interval, page) = try (Self.interval(request), Page(request))
      let zone = request.uri.queryParameters["zone"].map(String.init)
      func place() async throws -> FleetZone? {
        guard let zone else { return nil }
        return try await self.zone(named: zone)
      }
      // When a vehicle is free changes with every booking of it: who asks that does not wait.
      guard interval == nil, Preference.wait(in: request.headers) != nil else {
        return Response(json: try await view(for: interval).page(page, in: place(), for: caller.account))
      }
      return try await answer(request, caller, about: .fleet) {
        let view = try await sharedView()
        return Reading(page: view.tagged(page, in: try await place(), for: caller.account), next: view.next)
      }
    }
    router.get("/v1/zones") { [self] request, context in
      _ = try await authenticator.caller(of: request, context)
      let page = try Page(request)
      return Response(json: page.json(of: try await zones(), "zones", name: \.name) { $0.summary })
    }
    router.get("/v1/zones/:id") { [self] request, context in
      _ = try await authenticator.caller(of: request, context)
      return Response(json: try await zone(context.id()).json)
    }
    router.get("/v1/vehicles/:id") { [self] request, context in
      let caller = try await authenticator.caller(of: request, context)
      let id = try context.id()
      return try await answer(request, caller, about: .vehicle(id)) {
        let (vehicle, bookings) = try await vehicle(id)
        let now = clock()
        let riders = try await riders()
        let showsPlace = riders.accounts[id].map { $0 == caller.account } ?? true
        let form = VehicleForm(vehicle: vehicle, bookings: bookings, now: now, showsPlace: showsPlace)
        let next = [nextMoment(of: bookings.map(\.interval), after: now), riders.nextEnd].compactMap(\.self).min()
        return Reading(page: TaggedPage(.object(form.members)), next: next)
      }
    }
    addBookingRoutes(to: router, authenticator)
    router.post("/v1/enrolments") { [self] request, _ in
      let (name, admission) = try await enrol(Enrolment(of: request))
      return Response(.created, json: admission.json(name: name))
    }
    router.get("/v1/jwks") { [self] _, _ in
      let keys = try await issuer.keys()
      return Response(
        json: ["keys": .array(keys.map(Self.published))], headers: [.cacheControl: "max-age=300"])
    }
    router.get("/openapi.json") { _, _ in
      Response(
        status: .ok, headers: [.contentType: "application/json", .cacheControl: "max-age=3600"],
        body: .init(byteBuffer: ByteBuffer(bytes: PackageResources.openapi_json)))
    }
    router.get("/healthz") { [self] _, _ in
      try await checkStore()
      return Response(json: ["status": "ok"])
    }
  }

  private func addBookingRoutes(to router: some RouterMethods<FleetContext>, _ authenticator: any Authenticator) {
    router.get("/v1/bookings") { [self] request, context in
      let caller = try await authenticator.caller(of: request, context)
      let after = request.uri.queryParameters["after"].map { $0.lowercased() }
      guard after.map({ UUID($0) != nil }) ?? true else { throw Problem.malformed("after is a booking's id") }
      return try await answer(request, caller, about: .bookings(caller.account)) {
        let now = clock()
        let (page, next) = try await bookings(of: caller.account, after: after)
        let json = JSON.object(
          [.init("bookings", .array(page.map { BookingForm($0, at: now).json }))]
            + (next.map { [.init("next", .string($0))] } ?? []))
        return Reading(
          page: TaggedPage(json), next: nextMoment(of: page.lazy.map(\.booking.interval), after: now))
      }
    }
    // A body may take ten seconds. The account is checked after that, because it may have been suspended meanwhile.
    router.post("/v1/bookings") { [self] request, context in
      let body = try await Body(of: request, members: ["vehicle", "from", "to", "steps"])
      let caller = try await authenticator.caller(of: request, context)
      guard let vehicle = try UUID(body.string("vehicle")) else { throw Problem.malformed("vehicle is a UUID") }
      let begin = try body["from"] == nil ? clock() : body.time("from")
      let wanted = try BookingRequest(
        vehicle: vehicle.description, Interval(begin, body.time("to")), steps: Self.steps(body))
      let booking = try await book(
        wanted, for: caller, repeatable: Self.key(request).map { Repeatable(key: $0, body: body.bytes) })
      return Response(
        .created, json: booking.json,
        headers: [.eTag: booking.etag.text, .location: "/v1/bookings/\(booking.id)"])
    }
    router.get("/v1/bookings/:id") { [self] request, context in
      let caller = try await authenticator.caller(of: request, context)
      return answer(try await booking(context.id(), of: caller.account))
    }
    router.get("/v1/bookings/:id/events") { [self] request, context in
      let caller = try await authenticator.caller(of: request, context)
      return Response(json: ["events": .array(try await events(ofBooking: context.id(), of: caller.account))])
    }
    router.patch("/v1/bookings/:id") { [self] request, context in
      let body = try await Body(of: request, members: ["to"])
      let caller = try await authenticator.caller(of: request, context)
      guard let tags = request.headers[.ifMatch] else {
        throw Problem(.preconditionRequired, "precondition_required", "If-Match has to name the booking's etag")
      }
      return answer(
        try await change(
          context.id(), of: caller.account, .extend(to: body.time("to"), ifVersion: .init(ifMatch: tags))))
    }
    router.post("/v1/bookings/:id/cancel") { [self] request, context in
      let caller = try await authenticator.caller(of: request, context)
      return answer(try await change(context.id(), of: caller.account, .cancel))
    }
    router.post("/v1/bookings/:id/end") { [self] request, context in
      let caller = try await authenticator.caller(of: request, context)
      return answer(try await change(context.id(), of: caller.account, .end))
    }
    router.post("/v1/bookings/:id/access") { [self] request, context in
      let body = try await Body(of: request, members: ["request"])
      let caller = try await authenticator.caller(of: request, context)
      let asked: DeviceRequest
      do {
        asked = try DeviceRequest(
          verifying: body.string("request", limit: DeviceRequest.maximumSize).filter { !$0.isWhitespace })
      } catch let error as ProtocolError {
        throw Problem(.unprocessableContent, "bad_request", "the request is not a device's, or damaged: \(error)")
      }
      let text = try await access(to: context.id(), for: caller, asked)
      return Response(
        status: .ok, headers: [.contentType: "text/plain; charset=utf-8", .cacheControl: "no-store"],
        body: .init(byteBuffer: ByteBuffer(string: text + "\n")))
    }
  }

  private func answer(_ booking: FleetBooking) -> Response {
    let form = BookingForm(booking, at: clock())
    return Response(json: form.json, headers: [.eTag: form.etag.text])
  }

  /// The query's `from` and `to`: both or neither.
  private static func interval(_ request: Request) throws(Problem) -> Interval? {
    func time(_ name: String) throws(Problem) -> Int64? {
      guard let text = request.uri.queryParameters[Substring(name)] else { return nil }
      guard let time = Timestamp.read(text) else {
        throw .malformed("\(name) is a time as in 2027-03-01T09:30:00Z")
      }
      return time
    }
    switch (try time("from"), try time("to")) {
    case (nil, nil): return nil
    case (let begin?, let end?):
      guard end > begin else { throw .malformed("to has to be after from") }
      return Interval(begin, end)
    default: throw .malformed("from and to belong together")
    }
  }

  private static func steps(_ body: Body) throws(Problem) -> [StepID]? {
    guard let value = body["steps"] else { return nil }
    let steps = value.array?.compactMap { $0.string.flatMap { StepID($0) } } ?? []
    guard let items = value.array, !items.isEmpty, items.count <= 16, steps.count == items.count else {
      throw .malformed("steps is a list of steps' names")
    }
    return steps
  }

  private static func key(_ request: Request) throws(Problem) -> String? {
    guard let key = request.headers[.idempotencyKey] else { return nil }
    let isAllowed = key.utf8.allSatisfy {
      ($0 >= 0x61 && $0 <= 0x7A) || ($0 >= 0x41 && $0 <= 0x5A) || ($0 >= 0x30 && $0 <= 0x39) || $0 == 0x2D
        || $0 == 0x2E || $0 == 0x5F
    }
    guard isAllowed, (1...64).contains(key.utf8.count) else {
      throw .malformed("Idempotency-Key has 1 to 64 letters, digits, dots, hyphens and underscores")
    }
    return key
  }

  private static func published(_ key: VerificationKey) -> JSON {
    .object(
      (key.jwk.object ?? []) + [
        .init("kid", .string(key.thumbprint.description)), .init("use", "sig"), .init("alg", "Ed25519"),
      ])
  }
}

/// A part of a list that is sorted by names.
struct Page: Hashable {
  /// An answer with so many vehicles fits into what one connection may hold.
  private static let largest = 100

  /// The name after which the page begins; nil for the first page.
  let after: String?
  /// How many items it has at most.
  let limit: Int

  /// Whether it is the one that clients ask for first.
  var isUsual: Bool { after == nil && limit == Self.largest }

  /// The query's `after` and `limit`.
  init(_ request: Request) throws(Problem) {
    after = request.uri.queryParameters["after"].map(String.init)
    guard let text = request.uri.queryParameters["limit"] else {
      limit = Self.largest
      return
    }
    guard let asked = Int(text), (1...Self.largest).contains(asked) else {
      throw .malformed("limit is 1 to \(Self.largest)")
    }
    limit = asked
  }

  /// The page of these items, and where the next one begins.
  func json<Item>(of items: [Item], _ member: String, name: (Item) -> String, json: (Item) -> JSON) -> JSON {
    let left = items.filter { item in after.map { $0 < name(item) } ?? true }
    let page = left.prefix(limit)
    let next = left.count > page.count ? page.last.map { [JSON.Member("next", .string(name($0)))] } : nil
    return .object([.init(member, .array(page.map(json)))] + (next ?? []))
  }
}

extension Enrolment {
  fileprivate init(of request: Request) async throws {
    let body = try await Body(
      of: request, members: ["code", "name", "id", "topic", "steps", "keys", "certificate_request"])
    let code = try body.string("code")
    let name = try body.optionalString("name")
    guard let id = try UUID(body.string("id")) else { throw Problem.malformed("id is a UUID") }
    guard let topic = try TopicPrefix(body.string("topic")) else {
      throw Problem.malformed("topic cannot begin MQTT topics of a vehicle")
    }
    guard let steps = body["steps"].flatMap([Step].init(json:)) else {
      throw Problem.malformed("steps is a list of 1 to 16 objects with id, side and major")
    }
    guard let keys = body["keys"], let encryption = keys["encryption"], let signing = keys["signing"] else {
      throw Problem.malformed("keys has encryption and signing")
    }
    // Whoever reads this request could then open what is encrypted to the vehicle, and speak for it.
    if let (name, _) = [("encryption", encryption), ("signing", signing)].first(where: { $0.1["d"] != nil }) {
      throw Problem(
        .badRequest, "leaked", "keys: \(name) has its private part, d, and is no secret any more; make new keys")
    }
    let (encryptionKey, statementKey): (EncryptionKey, VerificationKey)
    do {
      (encryptionKey, statementKey) = (try EncryptionKey(jwk: encryption), try VerificationKey(jwk: signing))
    } catch { throw Problem.malformed("keys: \(error)") }
    guard let certificateRequest = Base64URL.decode(try body.string("certificate_request", limit: 2048)) else {
      throw Problem.malformed("certificate_request is base64url")
    }
    self.init(
      code: code, name: name, id: id, topic: topic, steps: steps, encryptionKey: encryptionKey,
      statementKey: statementKey, certificateRequest: certificateRequest)
  }
}

extension FleetContext {
  /// The `id` of the path.
  func id() throws -> String {
    guard let id = UUID(try parameters.require("id")) else { throw Problem.notFound("id") }
    return id.description
  }
}

extension HTTPField.Name {
  static let idempotencyKey = HTTPField.Name("Idempotency-Key")!
}
