import Booking
import Domain
import Encoding
import Geography
package import Hummingbird
import Provisioning
import StepProtocol
package import Web

extension FleetService {
  /// The routes for the operator, on a socket that nobody else can open. `stepfleet` uses them.
  package func addAdminRoutes(to router: some RouterMethods<FleetContext>, _ authenticator: any Authenticator) {
    router.get("/vehicles") { [self] _, _ in
      let now = clock()
      let vehicles = try await vehicles().map { Self.summary($0.vehicle, $0.bookings, now) }
      let expected = try await invitations().map { name, expires -> JSON in
        ["name": .string(name), "state": "expected", "code_ends": .string(Timestamp(seconds: expires).description)]
      }
      return Response(json: ["vehicles": .array(vehicles + expected)])
    }
    router.post("/vehicles") { [self] request, _ in
      let name = try await Body(of: request, members: ["name"]).string("name")
      let code = try await addVehicle(name)
      return Response(.created, json: ["name": .string(name), "code": code.map(JSON.string) ?? .null])
    }
    router.post("/vehicle") { [self] request, _ in
      let body = try await Body(of: request, members: ["name", "service"])
      let name = try body.string("name")
      if let text = try body.optionalString("service") {
        guard let service = Service(rawValue: text) else { throw Problem.malformed("service") }
        try await setService(service, of: name)
        if service == .removed { return Response(json: ["name": .string(name), "state": "removed"]) }
      }
      let (vehicle, bookings) = try await named(name)
      return Response(json: Self.summary(vehicle, bookings, clock()))
    }
    router.post("/vehicle/place") { [self] request, _ in
      let body = try await Body(of: request, members: ["name", "place"])
      let name = try body.string("name")
      try await setPlace(body["place"].map(Self.position), of: name)
      let (vehicle, bookings) = try await named(name)
      return Response(json: Self.summary(vehicle, bookings, clock()))
    }
    router.get("/bookings") { [self] _, _ in
      let now = clock()
      return Response(
        json: [
          "bookings": .array(
            try await openBookings().map { booking in
              .object((booking.json(at: now).object ?? []) + [.init("account", .string(booking.account))])
            })
        ])
    }
    router.post("/revoke") { [self] request, _ in
      let body = try await Body(of: request, members: ["booking", "device"])
      if let id = try body.optionalString("booking") {
        guard body["device"] == nil else { throw Problem.malformed("name a booking or a device, not both") }
        return Response(json: ["tokens": .integer(Int64(try await revoke(.booking(id.lowercased()))))])
      }
      guard let device = Thumbprint(try body.string("device")) else {
        throw Problem.malformed("device is a key's thumbprint: 43 characters of base64url")
      }
      let tokens = try await revoke(.device(device))
      let logins = try await authenticator.endLogins(of: device.description)
      return Response(json: ["tokens": .integer(Int64(tokens)), "logins": .integer(Int64(logins))])
    }
    router.post("/keys/rotate") { [self] _, _ in
      let now = clock()
      let done = try await changeKeys { try $0.rotateKeys(now: now) }
      try await publishToAll()
      return Response(json: ["done": .string(done)])
    }
    router.post("/keys/retire") { [self] _, _ in
      let now = clock()
      try await changeKeys { try $0.retireKey(now: now) }
      try await publishToAll()
      return Response(json: ["done": "the old key no longer counts; vehicles learn of it now"])
    }
  }

  /// The operator may read why the keys cannot be changed.
  private func changeKeys<Result: Sendable>(
    _ body: @escaping @Sendable (FleetOperator) throws -> Result
  ) async throws -> Result {
    do { return try await desk.perform(body) } catch let error as any Failure {
      throw Problem(.conflict, "keys", error.description)
    }
  }

  /// New notices for every vehicle. They include what the server did not publish before it stopped.
  package func publishToAll() async throws {
    desk.publish(to: Set(try await vehicles().compactMap { UUID($0.vehicle.id) }))
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

  private static func summary(_ vehicle: FleetVehicle, _ bookings: [Booking], _ now: Int64) -> JSON {
    let present = bookings.first { $0.interval.begin <= now && now < $0.interval.end }
    return .object(
      vehicle.members(present?.state(at: now)) + [
        .init("service", .string(vehicle.service.rawValue)), .init("bookings", .integer(Int64(bookings.count))),
      ])
  }
}
