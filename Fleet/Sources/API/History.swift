import Booking
import Domain
import Encoding
import Geography
import Store
import Web

/// What vehicles have reported, for the operator.
extension FleetService {
  /// The most that one answer has.
  static let longestHistory: Int64 = 10_000
  /// The most that a rider is told of a booking: the newest.
  static let longestCourse: Int64 = 500

  /// The vehicles by name, and what each of them has told of its present.
  func status() async throws -> [JSON] {
    let now = clock()
    let (untold, all, zones) = (try await untold(), try await vehicles(), try await zones())
    let riders = try await openBookings().filter { booking, _ in
      booking.booking.interval.begin <= now && now < booking.booking.interval.end
    }
    let having = Dictionary(riders.map { ($0.booking.vehicle.id, $0) }) { first, _ in first }
    let (present, notices, ends) = try await store.read {
      (try EventTable.present(in: $0), try NoticeTable.states(in: $0), try VehicleTable.certificateEnds(in: $0))
    }
    let connections = Dictionary(
      uniqueKeysWithValues: presence.vehicles.map { ($0.key.description, $0.value) })
    return all.map { vehicle, bookings in
      let told = present[vehicle.id] ?? .init()
      func time(_ seconds: Int64?) -> JSON { seconds.map { .string(Timestamp.text($0)) } ?? .null }
      return [
        "name": .string(vehicle.name), "id": .string(vehicle.id),
        "state": .string(vehicle.state(bookings, at: now).rawValue),
        "steps": .array(
          vehicle.steps.map { step in
            let state = told.steps[step.id.description]
            return [
              "id": .string(step.id.description), "position": state.map { .string($0.position) } ?? .null,
              "fault": state?.fault.map(JSON.string) ?? .null,
            ]
          }), "booking": having[vehicle.id].map { .string($0.booking.id) } ?? .null,
        "online": UUID(vehicle.id).flatMap { presence.isOnline($0, heard: told.heard) }.map(JSON.bool) ?? .null,
        "online_since": time(connections[vehicle.id]?.since),
        "email": having[vehicle.id]?.email.map(JSON.string) ?? .null, "heard": time(told.heard),
        "last_event": told.last.map { last in
          [
            "kind": .string(last.kind), "step": last.step.map(JSON.string) ?? .null,
            "position": last.position.map(JSON.string) ?? .null, "time": time(last.time),
          ]
        } ?? .null, "certificate_ends": time(ends[vehicle.id]), "refusal": told.refusal.map(JSON.string) ?? .null,
        "refused": time(told.refused),
        "notice": notices[vehicle.id].map { .string($0.rawValue) } ?? .null, "untold_since": time(untold[vehicle.id]),
        "parking": vehicle.place.flatMap { Parking($0, zones) }?.json ?? .null,
        "place": vehicle.place.map { place in
          ["latitude": .number(place.position.latitude), "longitude": .number(place.position.longitude)]
        } ?? .null, "placed_at": time(vehicle.place?.since),
      ]
    }
  }

  /// What a booking's rider may know of it: what its vehicle has reported, the oldest first.
  func events(ofBooking id: String, of account: String) async throws -> [JSON] {
    let booking = try await booking(id, of: account)
    return try await store.read {
      try EventTable.history(.init(booking: booking.id, limit: Self.longestCourse), in: $0).map(\.forRider)
    }
  }

  func history(_ query: EventTable.Query) async throws -> [JSON] {
    var query = query
    if let name = query.vehicle { query.vehicle = try await named(name).vehicle.id }
    if let begin = query.booking { query.booking = try await bookingMeant(by: begin) }
    if let name = query.account {
      guard let account = try await store.read({ try Self.account(name.lowercased(), in: $0) }) else {
        throw FleetRefusal.notNamed("account", name, near: nil)
      }
      query.account = account.id
    }
    return try await store.read { [query] in try EventTable.history(query, in: $0).map(\.json) }
  }
}
