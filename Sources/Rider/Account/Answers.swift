package import Domain
package import Encoding
package import Geography
import HTTP

/// Reads the members of an answer. It ignores unknown members, because a later server may send more.
struct AnswerReader {
  let value: JSON
  let host: String

  init(_ value: JSON, from host: String) throws(FleetError) {
    guard value.object != nil else { throw .malformed("not an object", host: host) }
    self.value = value
    self.host = host
  }

  /// The body of an answer as one object without duplicate names.
  init(_ response: HTTPResponse, from host: String) throws(FleetError) {
    let value: JSON
    do throws(JSON.SyntaxError) { value = try JSON(parsing: response.body) } catch {
      throw .malformed("\(error)", host: host)
    }
    try self.init(value, from: host)
  }

  func take<Value>(_ name: String, _ expected: String, _ read: (JSON) -> Value?) throws(FleetError) -> Value {
    guard let member = value[name] else { throw .malformed("\(name) is missing", host: host) }
    guard let result = read(member) else { throw .malformed("\(name) is not \(expected)", host: host) }
    return result
  }

  /// Nil if the member is missing or null.
  func optional<Value>(_ name: String, _ expected: String, _ read: (JSON) -> Value?) throws(FleetError) -> Value? {
    guard let member = value[name], member != .null else { return nil }
    guard let result = read(member) else { throw .malformed("\(name) is not \(expected)", host: host) }
    return result
  }

  /// Text of 1 to `limit` bytes.
  func text(_ name: String, limit: Int = 512) throws(FleetError) -> String {
    try take(name, "1 to \(limit) bytes of text") { Self.text($0, limit) }
  }

  func optionalText(_ name: String, limit: Int = 512) throws(FleetError) -> String? {
    try optional(name, "1 to \(limit) bytes of text") { Self.text($0, limit) }
  }

  /// A value for a header or a form: visible ASCII.
  func token(_ name: String) throws(FleetError) -> String {
    try take(name, "a token") { value in
      Self.text(value, 8192).flatMap { $0.utf8.allSatisfy { (0x21..<0x7F).contains($0) } ? $0 : nil }
    }
  }

  /// Whole seconds.
  func seconds(_ name: String, _ range: ClosedRange<Int64>) throws(FleetError) -> Int64 {
    try take(name, "\(range.lowerBound) to \(range.upperBound)") { value in
      value.integer.flatMap { range.contains($0) ? $0 : nil }
    }
  }

  func time(_ name: String) throws(FleetError) -> Int64 {
    try take(name, "a time in UTC, as 2026-11-23T08:00:00Z") { $0.string.flatMap(Timestamp.read) }
  }

  func uuid(_ name: String) throws(FleetError) -> UUID {
    try take(name, "a UUID") { $0.string.flatMap { UUID($0) } }
  }

  /// A URL on the server itself.
  func url(_ name: String, on server: FleetAddress) throws(FleetError) -> String {
    try take(name, "an address of this server") { value in
      Self.text(value, 1024).flatMap { url in
        server.has(url) && url.utf8.allSatisfy { (0x21..<0x7F).contains($0) } ? url : nil
      }
    }
  }

  func list<Value>(
    _ name: String, limit: Int, _ read: (JSON) throws(FleetError) -> Value
  ) throws(FleetError) -> [Value] {
    let items = try take(name, "a list of at most \(limit)") { value in
      value.array.flatMap { $0.count <= limit ? $0 : nil }
    }
    var values: [Value] = []
    for item in items { values.append(try read(item)) }
    return values
  }

  private static func text(_ value: JSON, _ limit: Int) -> String? {
    value.string.flatMap { (1...limit).contains($0.utf8.count) ? $0 : nil }
  }
}

/// A vehicle that can be booked.
package struct FleetVehicle: Equatable, Sendable {
  package let id: UUID
  package let name: String
  /// The state in MDS's terms: `available`, `reserved`, `on_trip`, `non_operational`…
  package let state: String
  package let steps: [(id: StepID, side: Side)]
  /// Whether it is free for the whole requested time; nil if no time was requested.
  package let isFree: Bool?
  /// If it is not free: the next free times of that length. Seconds of Unix time.
  package let next: [Range<Int64>]
  /// Where the vehicle is, if the server knows.
  package let place: Place?
  /// As the server sent it.
  package let json: JSON

  package struct Place: Equatable, Sendable {
    package let position: Coordinate
    /// When the place was reported: Unix time, by the server's clock.
    package let since: Int64
  }

  init(_ json: JSON, from host: String) throws(FleetError) {
    let reader = try AnswerReader(json, from: host)
    id = try reader.uuid("id")
    name = try reader.take("name", "a vehicle's name") { $0.string.flatMap { Vehicle.isName($0) ? $0 : nil } }
    state = try reader.take("state", "a word") { $0.string.flatMap { isWord($0) ? $0 : nil } }
    steps = try reader.list("steps", limit: 8) { item throws(FleetError) in
      let step = try AnswerReader(item, from: host)
      return (
        try step.take("id", "the id of a step") { $0.string.flatMap { StepID($0) } },
        try step.take("side", "left or right") { $0.string.flatMap(Side.init(rawValue:)) }
      )
    }
    isFree = try reader.optional("free", "true or false") { $0.bool }
    next = try reader.optional("next", "a list of times") { $0.array.map(times(in:)) } ?? []
    if let position = try reader.optional("place", "a latitude and a longitude", position(in:)) {
      place = Place(position: position, since: try reader.time("placed_at"))
    } else {
      place = nil
    }
    self.json = json
  }

  package static func == (a: Self, b: Self) -> Bool { a.json == b.json }
}

/// A part of the ground that the operator has named.
package struct FleetZone: Equatable, Sendable {
  package let name: String
  /// Whether bookings should end here.
  package let isParking: Bool
  package let squareMetres: Int64
  /// As the server sent it.
  package let json: JSON

  init(_ json: JSON, from host: String) throws(FleetError) {
    let reader = try AnswerReader(json, from: host)
    name = try reader.take("name", "a zone's name") { $0.string.flatMap { Vehicle.isName($0) ? $0 : nil } }
    isParking = try reader.take("parking", "true or false") { $0.bool }
    squareMetres = try reader.take("square_metres", "a number above 0") { $0.integer.flatMap { $0 > 0 ? $0 : nil } }
    self.json = json
  }
}

/// Where a vehicle stood when a booking ended.
package struct Parking: Equatable, Sendable {
  /// The nearest parking zone, by its name.
  package let zone: String
  /// To its border; 0 inside.
  package let metres: Int64
  /// Since when the vehicle's place was known, Unix time.
  package let placed: Int64

  init(_ json: JSON, from host: String) throws(FleetError) {
    let reader = try AnswerReader(json, from: host)
    zone = try reader.take("zone", "a zone's name") { $0.string.flatMap { Vehicle.isName($0) ? $0 : nil } }
    metres = try reader.take("metres", "a number") { $0.integer.flatMap { $0 >= 0 ? $0 : nil } }
    placed = try reader.time("placed_at")
  }

  package var json: JSON {
    ["zone": .string(zone), "metres": .integer(metres), "placed_at": .string(Timestamp.text(placed))]
  }
}

/// The booking of a vehicle for some time.
package struct Booking: Equatable, Sendable {
  /// How long after the booking's end a token still opens a step, seconds.
  package static let grace: Int64 = 900
  /// How long before the booking's begin access is granted, seconds.
  package static let lead: Int64 = 86_400

  package let id: String
  package let vehicle: UUID
  /// The vehicle's name, if the server or this device knows it.
  package let name: String?
  /// Unix time.
  package let from: Int64
  package let to: Int64
  /// `booked`, `active`, `ended`, `cancelled`, `expired`, or a word of a later server.
  package let state: String
  package let steps: [StepID]
  /// Identifies this version of the booking (RFC 9110 8.8.3).
  package let etag: String?
  /// Where it ended; nil if the server does not know.
  package let parking: Parking?

  init(_ json: JSON, from host: String, name known: String? = nil, etag header: String? = nil) throws(FleetError) {
    let reader = try AnswerReader(json, from: host)
    // It becomes part of a path.
    id = try reader.take("id", "the id of a booking") { value in
      value.string.flatMap { text in
        (1...64).contains(text.utf8.count)
          && text.utf8.allSatisfy { $0.isASCIIAlphanumeric || "-_".utf8.contains($0) } ? text : nil
      }
    }
    vehicle = try reader.uuid("vehicle")
    name =
      try reader.optional("name", "a vehicle's name") { $0.string.flatMap { Vehicle.isName($0) ? $0 : nil } } ?? known
    from = try reader.time("from")
    to = try reader.time("to")
    state = try reader.take("state", "a word") { $0.string.flatMap { isWord($0) ? $0 : nil } }
    steps =
      try reader.optional("steps", "a list of ids of steps") { value in
        value.array.flatMap { items in
          let ids = items.compactMap { $0.string.flatMap { StepID($0) } }
          return ids.count == items.count && ids.count <= 8 ? ids : nil
        }
      } ?? []
    etag = try reader.optionalText("etag") ?? header
    if let json = try reader.optional("parking", "an object", { $0.object == nil ? nil : $0 }) {
      parking = try Parking(json, from: host)
    } else {
      parking = nil
    }
    guard from < to else { throw .malformed("to is not after from", host: host) }
  }

  package init(
    id: String, vehicle: UUID, name: String?, from: Int64, to: Int64, state: String, steps: [StepID], etag: String?
  ) {
    self.id = id
    self.vehicle = vehicle
    self.name = name
    self.from = from
    self.to = to
    self.state = state
    self.steps = steps
    self.etag = etag
    parking = nil
  }

  /// Whether it can still be used.
  package var isLive: Bool { !["ended", "cancelled", "expired"].contains(state) }

  /// Whether its times let its token open a step now.
  package func isActive(at now: Int64) -> Bool { isLive && from <= now && now < to + Self.grace }

  package var json: JSON {
    [
      "id": .string(id), "vehicle": .string(vehicle.description), "name": name.map(JSON.string) ?? .null,
      "from": .string(Timestamp.text(from)), "to": .string(Timestamp.text(to)), "state": .string(state),
      "steps": .array(steps.map { .string($0.description) }), "etag": etag.map(JSON.string) ?? .null,
      "parking": parking?.json ?? .null,
    ]
  }
}

/// What a vehicle has reported of a booking.
package struct BookingEvent: Equatable, Sendable {
  /// Unix time, on the vehicle's clock.
  package let time: Int64
  /// `began`, `ended`, `stopped`, `refused`, or a word of a later server.
  package let kind: String
  package let step: StepID?
  /// `open`, `close`, `unknown` or `stop`: what was asked for, or where the step came to rest.
  package let position: String?
  /// Why a command was refused, or why the step is not where it should be; and the check that failed.
  package let code, cause: String?
  /// How the rider was found in front of the step.
  package let method: String?
  /// Where the vehicle stood.
  package let place: Coordinate?

  init(_ json: JSON, from host: String) throws(FleetError) {
    let reader = try AnswerReader(json, from: host)
    func word(_ name: String) throws(FleetError) -> String? {
      try reader.optional(name, "a word") { $0.string.flatMap { isWord($0) ? $0 : nil } }
    }
    time = try reader.time("time")
    kind = try reader.take("kind", "a word") { $0.string.flatMap { isWord($0) ? $0 : nil } }
    step = try reader.optional("step", "the id of a step") { $0.string.flatMap { StepID($0) } }
    (position, code, cause, method) = (try word("position"), try word("code"), try word("cause"), try word("method"))
    place = try reader.optional("place", "a latitude and a longitude", Rider.position(in:))
  }

  package var json: JSON {
    func word(_ word: String?) -> JSON { word.map(JSON.string) ?? .null }
    return [
      "time": .string(Timestamp.text(time)), "kind": .string(kind), "step": word(step?.description),
      "position": word(position), "code": word(code), "cause": word(cause), "method": word(method),
      "place": place.map { ["latitude": .number($0.latitude), "longitude": .number($0.longitude)] } ?? .null,
    ]
  }
}

private func position(in json: JSON) -> Coordinate? {
  func degrees(_ name: String) -> Double? {
    switch json[name] {
    case .integer(let whole): Double(whole)
    case .number(let number): number
    default: nil
    }
  }
  guard let latitude = degrees("latitude"), let longitude = degrees("longitude") else { return nil }
  return Coordinate(latitude: latitude, longitude: longitude)
}

/// Up to three intervals that the server proposes. Malformed ones are skipped.
func times(in items: [JSON]) -> [Range<Int64>] {
  items.prefix(3).compactMap { item in
    guard let from = item["from"]?.string.flatMap(Timestamp.read), let to = item["to"]?.string.flatMap(Timestamp.read),
      from < to
    else { return nil }
    return from..<to
  }
}
