import Booking
import Encoding
import Geography
import HTTPTypes
package import Hummingbird
import Logging
import StepProtocol
package import Web

extension FleetService {
  /// The routes for the operator, on a socket that nobody else can open. `stepfleet` uses them.
  package func addAdminRoutes(to router: some RouterMethods<FleetContext>, _ authenticator: any Authenticator) {
    router.get("/vehicles") { [self] _, _ in
      let now = clock()
      let untold = try await untold()
      let vehicles = try await vehicles().map { vehicle, bookings in
        VehicleForm(vehicle: vehicle, bookings: bookings, now: now).summary(untoldSince: untold[vehicle.id])
      }
      return try await Response(json: ["vehicles": .array(vehicles + invitations().map(\.json))])
    }
    router.post("/vehicles") { [self] request, _ in
      let name = try await Body(of: request, members: ["name"]).string("name")
      let code = try await addVehicle(name)
      return Response(.created, json: ["name": .string(name), "code": code.map(JSON.string) ?? .null])
    }
    router.post("/vehicle") { [self] request, _ in
      let body = try await Body(of: request, members: ["name", "service"])
      let name = try body.string("name")
      let text = try body.optionalString("service")
      if let invitation = try await invitation(meantBy: name) {
        if text == Service.removed.rawValue {
          try await withdraw(invitation)
          return Response(json: ["name": .string(invitation.name), "state": "removed"])
        }
        guard text == nil else { throw Problem(.conflict, "expected", "\(invitation.name) has not joined yet") }
        return Response(json: invitation.json)
      }
      if let text {
        guard let service = Service(rawValue: text) else { throw Problem.malformed("service") }
        try await setService(service, of: name)
        if service == .removed { return Response(json: ["name": .string(name), "state": "removed"]) }
      }
      return try await summary(of: name)
    }
    router.post("/vehicle/place") { [self] request, _ in
      let body = try await Body(of: request, members: ["name", "place"])
      let name = try body.string("name")
      try await setPlace(body["place"].map(Self.position), of: name)
      return try await summary(of: name)
    }
    router.get("/zones") { [self] _, _ in
      Response(json: ["zones": .array(try await zones().map(\.summary))])
    }
    router.post("/zones") { [self] request, _ in
      let body = try await Body(of: request, members: ["name", "parking", "area"])
      guard let isParking = body["parking"]?.bool, let area = body["area"] else {
        throw Problem.malformed("parking is true or false, and area is GeoJSON")
      }
      return Response(.created, json: try await addZone(body.string("name"), isParking: isParking, area).summary)
    }
    router.post("/zone") { [self] request, _ in
      try await Response(json: zone(named: Body(of: request, members: ["name"]).string("name")).json)
    }
    router.post("/zone/remove") { [self] request, _ in
      let name = try await removeZone(named: Body(of: request, members: ["name"]).string("name"))
      return Response(json: ["name": .string(name)])
    }
    router.get("/bookings") { [self] _, _ in
      let now = clock()
      return Response(
        json: [
          "bookings": .array(
            try await openBookings().map { booking, email in
              .object(
                (BookingForm(booking, at: now).json.object ?? []) + [
                  .init("account", .string(booking.account)), .init("email", email.map(JSON.string) ?? .null),
                ])
            })
        ])
    }
    router.get("/status") { [self] _, _ in
      Response(
        json: [
          "vehicles": .array(try await status()),
          "broker_away_since": presence.awaySince.map { .string(Timestamp.text($0)) } ?? .null,
        ])
    }
    router.post("/support") { [self] request, _ in
      let body = try await Body(of: request, members: ["who", "reissue"])
      return try await Response(json: support(body.string("who"), reissues: body["reissue"] == true))
    }
    router.post("/statistics") { [self] request, _ in
      let body = try await Body(of: request, members: ["since"])
      let since = try body["since"] == nil ? nil : body.time("since")
      return Response(json: ["months": .array(try await statistics(since: since))])
    }
    router.post("/history") { [self] request, _ in
      let body = try await Body(of: request, members: ["vehicle", "booking", "account", "since", "limit"])
      guard let limit = body["limit"]?.integer, (1...Self.longestHistory).contains(limit) else {
        throw Problem.malformed("limit is 1 to \(Self.longestHistory)")
      }
      let events = try await history(
        .init(
          vehicle: body.optionalString("vehicle"), booking: body.optionalString("booking"),
          account: body.optionalString("account"), since: body["since"] == nil ? nil : body.time("since"), limit: limit)
      )
      return Response(json: ["events": .array(events)])
    }
    router.post("/revoke") { [self] request, _ in
      let body = try await Body(of: request, members: ["booking", "device"])
      if let id = try body.optionalString("booking") {
        guard body["device"] == nil else { throw Problem.malformed("name a booking or a device, not both") }
        let meant = try await bookingMeant(by: id)
        let before = try await booking(meant, of: nil)
        let count = try await revoke(.booking(meant))
        let form = BookingForm(before, at: clock())
        return Response(
          json: [
            "booking": .string(meant), "tokens": .integer(Int64(count)), "name": .string(form.name),
            "from": .string(form.interval.from), "to": .string(form.interval.to), "was": .string(form.state.rawValue),
            "email": try await email(of: before.account).map(JSON.string) ?? .null,
          ])
      }
      // People read it in groups.
      let typed = try body.string("device").filter { $0 != " " }
      guard let device = Thumbprint(typed) else {
        throw Problem.malformed("device is a key's thumbprint: 43 characters of base64url")
      }
      guard try await isKnown(device) else {
        throw Problem(.notFound, "not_found", "no login and no token is of a device with the key \(device)")
      }
      let tokens = try await revoke(.device(device))
      let logins = try await authenticator.endLogins(of: device.description)
      return Response(json: ["tokens": .integer(Int64(tokens)), "logins": .integer(Int64(logins))])
    }
    router.post("/keys/rotate") { [self] request, _ in
      let key = try await Body(of: request, members: ["key"]).optionalString("key").map { Array($0.utf8) }
      let done = try await rotateKeys(next: key)
      logger.notice("the change of the operator's key goes on", metadata: ["done": "\(done)"])
      return Response(json: ["done": .string(done)])
    }
    router.post("/keys/retire") { [self] _, _ in
      try await retireKey()
      logger.notice("the operator's old key no longer counts")
      return Response(json: ["done": "the old key no longer counts; vehicles learn of it now"])
    }
  }

  /// The vehicle that has not joined yet, if none that has joined is meant.
  private func invitation(meantBy name: String) async throws -> Invitation? {
    do { _ = try await named(name) } catch let refusal as FleetRefusal {
      guard case .notNamed = refusal else { throw refusal }
      return try await invitation(named: name)
    }
    return nil
  }

  private func summary(of name: String) async throws -> Response {
    let (vehicle, bookings) = try await named(name)
    let form = VehicleForm(vehicle: vehicle, bookings: bookings, now: clock())
    return Response(json: form.summary(untoldSince: try await untold()[vehicle.id]))
  }

  private static func position(_ json: JSON) throws(Problem) -> Coordinate {
    func degrees(_ name: String) -> Double? {
      switch json[name] {
      case .integer(let whole): Double(whole)
      case .number(let number): number
      default: nil
      }
    }
    guard json.object?.count == 2, let latitude = degrees("latitude"), let longitude = degrees("longitude"),
      let position = Coordinate(latitude: latitude, longitude: longitude)
    else { throw .malformed("place is a latitude of -90 to 90 and a longitude of -180 to 180") }
    return position
  }
}
