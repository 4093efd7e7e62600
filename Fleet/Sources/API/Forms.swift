import Booking
import Crypto
import Domain
import Encoding
import Geography
import StepProtocol

/// The present form of a booking in the API.
struct BookingForm: Sendable, Equatable {
  let id: String
  /// The vehicle's id.
  let vehicle: String
  /// The vehicle's name.
  let name: String
  let interval: Interval
  let state: BookingState
  let steps: [StepID]
  let version: Int64
  /// Where it ended.
  let parking: Parking?

  init(_ booking: FleetBooking, at now: Int64) {
    id = booking.id
    vehicle = booking.vehicle.id
    name = booking.vehicle.name
    interval = booking.booking.interval
    state = booking.booking.state(at: now)
    steps = booking.steps
    version = booking.version
    parking = booking.parking
  }

  /// Reads a form that `json` has written.
  init(parsing text: String) throws {
    let json = try JSON(parsing: text.utf8)
    guard let id = json["id"]?.string, let vehicle = json["vehicle"]?.string, let name = json["name"]?.string,
      let begin = json["from"]?.string.flatMap({ Timestamp.read($0) }),
      let end = json["to"]?.string.flatMap({ Timestamp.read($0) }),
      let state = json["state"]?.string.flatMap({ BookingState(rawValue: $0) }), let steps = json["steps"]?.array,
      let etag = json["etag"]?.string, let version = EntityTag(etag)?.version
    else { throw Damaged() }
    (self.id, self.vehicle, self.name, self.interval) = (id, vehicle, name, Interval(begin, end))
    (self.state, self.version) = (state, version)
    // It is written when a booking is made.
    parking = nil
    self.steps = steps.compactMap { $0.string.flatMap { StepID($0) } }
  }

  struct Damaged: Error {}

  var etag: EntityTag { EntityTag(version: version) }

  var json: JSON {
    .object(
      [
        .init("id", .string(id)), .init("vehicle", .string(vehicle)), .init("name", .string(name)),
        .init("from", .string(interval.from)), .init("to", .string(interval.to)),
        .init("state", .string(state.rawValue)),
        .init("steps", .array(steps.map { .string($0.description) })), .init("etag", .string(etag.text)),
      ] + (parking.map { [.init("parking", $0.json)] } ?? []))
  }
}

/// A vehicle in the API.
struct VehicleForm: Sendable {
  let vehicle: FleetVehicle
  let bookings: [Booking]
  let now: Int64
  /// Whether whoever asks may know the vehicle's place.
  var showsPlace = true

  /// For a rider who asks for one vehicle.
  var members: [JSON.Member] {
    var members: [JSON.Member] = [
      .init("id", .string(vehicle.id)), .init("name", .string(vehicle.name)),
      .init("state", .string(vehicle.state(bookings, at: now).rawValue)), .init("steps", vehicle.steps.json),
    ]
    if showsPlace, let place = vehicle.place {
      let (latitude, longitude) = (place.position.latitude, place.position.longitude)
      members += [
        .init("place", ["latitude": .number(latitude), "longitude": .number(longitude)]),
        .init("placed_at", .string(Timestamp.text(place.since))),
      ]
    }
    return members
  }

  /// For a rider who looks for a vehicle.
  ///
  /// - Parameter asked: the interval for which to say whether the vehicle is free; nil for none.
  func listed(for asked: Interval?) -> JSON {
    guard let asked else { return .object(members) }
    let taken = bookings.map(\.interval)
    guard taken.contains(where: asked.overlaps) else { return .object(members + [.init("free", true)]) }
    // Somebody may ask for thousands of years, and the form has no later times.
    let next = BookingRules.next(asked, among: taken).filter { $0.end <= Timestamp.latest }
    return .object(members + [.init("free", false), .init("next", .array(next.map(\.json)))])
  }

  /// For the operator.
  ///
  /// - Parameter time: since when the vehicle waits for a notice, Unix time; nil if the broker has the newest.
  func summary(untoldSince time: Int64?) -> JSON {
    let untold = time.map { [JSON.Member("untold_since", .string(Timestamp.text($0)))] } ?? []
    return .object(
      members + [
        .init("service", .string(vehicle.service.rawValue)), .init("bookings", .integer(Int64(bookings.count))),
      ] + untold)
  }
}

extension Interval {
  var from: String { Timestamp.text(begin) }
  var to: String { Timestamp.text(end) }
  var json: JSON { ["from": .string(from), "to": .string(to)] }
}

extension [Step] {
  /// - Returns: nil if it is not a list of 1 to 16 steps.
  init?(json: JSON) {
    guard let items = json.array, !items.isEmpty, items.count <= 16 else { return nil }
    let steps = items.compactMap { item -> Step? in
      guard item.object?.count == 3, let id = item["id"]?.string.flatMap({ StepID($0) }),
        let side = item["side"]?.string.flatMap({ Side(rawValue: $0) }),
        let major = item["major"]?.integer.flatMap({ UInt16(exactly: $0) })
      else { return nil }
      return Step(id: id, side: side, major: major)
    }
    guard steps.count == items.count else { return nil }
    self = steps
  }

  var json: JSON {
    .array(
      map { ["id": .string($0.id.description), "side": .string($0.side.rawValue), "major": .integer(Int64($0.major))] })
  }
}

extension Invitation {
  /// A vehicle that has not joined yet, among the operator's vehicles.
  var json: JSON {
    ["name": .string(name), "state": "expected", "code_ends": .string(Timestamp.text(expires))]
  }
}

extension Admission {
  /// - Parameter name: the vehicle's.
  func json(name: String) -> JSON {
    [
      "name": .string(name), "keys": .array(keys.map(\.jwk)),
      "broker": ["host": .string(host), "port": .integer(Int64(port))], "authority": .string(authority),
      "certificate": .string(certificate), "ends": .string(Timestamp.text(end)),
    ]
  }
}

extension AccessTable.Record {
  var json: JSON {
    [
      "booking": .string(booking), "device": .string(device), "ends": .string(Timestamp.text(expires)),
      "revoked": .bool(isRevoked),
    ]
  }
}

/// A version of something, as HTTP names it (RFC 9110 8.8.3).
struct EntityTag: Sendable, Equatable {
  /// With its quotes.
  let text: String

  init(version: Int64) { text = "\"\(version)\"" }

  /// The tag of something that has no version: its content's.
  init(of content: String) { text = "\"\(hexadecimal(SHA256.hash(data: Array(content.utf8)).prefix(8)))\"" }

  /// - Returns: nil if the text is no strong tag.
  init?(_ text: some StringProtocol) {
    guard text.utf8.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") else { return nil }
    self.text = String(text)
  }

  /// The version that the tag names; nil if it is not of `init(version:)`.
  var version: Int64? { Int64(text.dropFirst().dropLast()).flatMap { EntityTag(version: $0) == self ? $0 : nil } }

  /// Reads an If-Match or If-None-Match (RFC 9110 13.1.1).
  ///
  /// - Parameter isWeak: whether a weak tag means the same as ours: for If-None-Match (RFC 9110 13.1.2). A proxy makes
  ///   tags weak when it compresses.
  /// - Returns: nil for `*`, which names all. Other weak tags are left out. Our tags contain no comma.
  static func list(_ text: String, isWeak: Bool = false) -> [EntityTag]? {
    if text == "*" { return nil }
    return text.split(separator: ",").compactMap { part in
      let tag = part.filter { $0 != " " && $0 != "\t" }
      return EntityTag(isWeak && tag.hasPrefix("W/") ? String(tag.dropFirst(2)) : tag)
    }
  }
}

extension BookingChange.Precondition {
  /// - Parameter text: the value of If-Match.
  init(ifMatch text: String) {
    self = EntityTag.list(text).map { .versions($0.compactMap(\.version)) } ?? .any
  }
}
