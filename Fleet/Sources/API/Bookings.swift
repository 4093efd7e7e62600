package import Booking
import Crypto
import Domain
import Encoding
import Logging
import Store
import Web

/// A request that may be sent twice.
struct Repeatable: Sendable {
  let key: String
  /// The digest of the request's content: the same key with other content is refused.
  let digest: String

  init(key: String, body: [UInt8]) {
    self.key = key
    digest = API.digest(body)
  }
}

extension FleetService {
  /// - Returns: the booking as it was when it was made, also for a request that comes again.
  func book(_ request: BookingRequest, for caller: Caller, repeatable: Repeatable?) async throws -> BookingForm {
    let now = clock()
    let account = caller.account
    let id = UUID.random().description
    do {
      return try await store.write { [limit] transaction in
        // Serializes the account's requests: each sees the earlier ones, including a copy of itself. A cancellation of
        // all bookings sees this one too.
        try transaction.reserve(account)
        if let repeatable, let earlier = try AnswerTable.find(repeatable.key, of: account, in: transaction) {
          guard earlier.digest == repeatable.digest else { throw FleetRefusal.keyReused }
          return try BookingForm(parsing: earlier.text)
        }
        // No other booking of the vehicle, and no command that takes it away, comes in between. And PostgreSQL writes a
        // row before it looks for overlaps: two such transactions at once would wait for each other until PostgreSQL
        // aborts one after a second, while further ones arrive.
        try transaction.reserve(request.vehicle)
        let vehicle = try VehicleTable.find(id: request.vehicle, in: transaction)
        let standing = BookingRequest.Account(
          isActive: try AccountTable.isActive(account, in: transaction),
          bookings: try BookingTable.count(of: account, at: now, in: transaction), limit: limit)
        let (interval, steps) = try request.accepted(for: standing, vehicle: vehicle, now: now)
        guard let vehicle else { throw FleetRefusal.noSuchVehicle }
        let booking = FleetBooking(
          id: id, vehicle: vehicle, account: account, subject: Self.newSubject(), steps: steps,
          booking: Booking(interval))
        try BookingTable.insert(booking, at: now, in: transaction)
        try VehicleTable.note(.reservationStart, of: vehicle.id, id, at: now, in: transaction)
        let form = BookingForm(booking, at: now)
        if let repeatable {
          try AnswerTable.insert(
            .init(digest: repeatable.digest, text: form.json.text), repeatable.key, of: account, at: now,
            in: transaction)
        }
        return form
      }
    } catch StoreError.constraint(FleetTables.overlap) {
      throw try await taken(request.vehicle, request.interval, now: now)
    }
  }

  /// The rider's name for one booking: the vehicle knows no person.
  private static func newSubject() -> String {
    "b-" + hexadecimal(SymmetricKey(size: .init(bitCount: 64)).withUnsafeBytes { Array($0) })
  }

  private func taken(_ vehicle: String, _ asked: Interval, now: Int64) async throws -> FleetRefusal {
    let asked = Interval(max(asked.begin, now), asked.end)
    let open = try await store.read { try BookingTable.open(of: vehicle, endingAfter: asked.begin, in: $0) }
    return .taken(next: BookingRules.next(asked, among: open.map(\.interval)))
  }

  /// A page of an account's bookings: those that are not over, then the others, the newest first.
  ///
  /// - Parameter last: the id of the last one of the page before; nil for the first page.
  /// - Returns: the bookings, and the `last` of the next page; nil if this one is the last.
  func bookings(of account: String, after last: String? = nil) async throws -> ([FleetBooking], next: String?) {
    try await store.read { transaction in
      let page =
        if let last {
          try BookingTable.newest(
            of: account, before: Self.booking(last, of: account, in: transaction), in: transaction)
        } else {
          try BookingTable.newest(of: account, in: transaction)
        }
      return (page, page.count == BookingTable.page ? page.last?.id : nil)
    }
  }

  /// For the operator: all bookings that are not over, each with its account's address.
  package func openBookings() async throws -> [(booking: FleetBooking, email: String?)] {
    let now = clock()
    return try await store.read { transaction in
      let emails = try BookingTable.emails(at: now, in: transaction)
      return try BookingTable.open(at: now, in: transaction).map { ($0, emails[$0.account]) }
    }
  }

  /// The booking that an operator means by an id, or by its beginning: four digits or more, as riders see them, with
  /// the brackets and signs that may be around them; or by the name that vehicles' logs have for its rider
  /// (`b-547EC553F6121C54`), or a token's id.
  ///
  /// - Throws: `FleetRefusal`.
  func bookingMeant(by typed: String) async throws -> String {
    let text = typed.trimmingCharacters { $0.isWhitespace || "()[]#,.".contains($0) }
    let names = [text, text.lowercased().hasPrefix("b-") ? "b-\(text.dropFirst(2).uppercased())" : text]
    for name in names {
      if let found = try await store.read({ try BookingTable.ids(ofSubjectOrToken: name, in: $0) }).first {
        return found
      }
    }
    let begin = text.lowercased()
    // No other character has a meaning in a pattern.
    guard (4...36).contains(begin.utf8.count), begin.allSatisfy({ $0 == "-" || $0.isASCII && $0.isHexDigit }) else {
      throw FleetRefusal.noSuchBooking
    }
    let found = try await store.read { try BookingTable.ids(beginning: begin, in: $0) }
    guard found.count < 2 else { throw FleetRefusal.severalBookings(begin) }
    guard let found = found.first else { throw FleetRefusal.noSuchBooking }
    return found
  }

  /// - Parameter account: the required owner; nil for the operator.
  func booking(_ id: String, of account: String?) async throws -> FleetBooking {
    try await store.read { try Self.booking(id, of: account, in: $0) }
  }

  private static func booking(
    _ id: String, of account: String?, in transaction: borrowing Transaction
  ) throws -> FleetBooking {
    guard let booking = try BookingTable.find(id, in: transaction) else { throw FleetRefusal.noSuchBooking }
    try booking.checkOwner(account)
    return booking
  }

  /// Changes a booking, and revokes access that lasts longer than the booking now does.
  ///
  /// - Parameter account: the required owner; nil for the operator.
  func change(_ id: String, of account: String?, _ change: BookingChange) async throws -> FleetBooking {
    let now = clock()
    var longer: (vehicle: String, interval: Interval)?
    // A booking can be ended without them.
    let zones = change == .end ? (try? await zones()) ?? [] : []
    do {
      if case .extend(let end, _) = change {
        let found = try await booking(id, of: account)
        longer = (found.vehicle.id, Interval(found.booking.interval.begin, end))
      }
      let (changed, count) = try await store.write { [longer] transaction -> (FleetBooking, Int?) in
        if let longer { try transaction.reserve(longer.vehicle) }
        let old = try Self.booking(id, of: account, in: transaction)
        guard let new = try old.changed(by: change, isOperator: account == nil, now: now) else { return (old, nil) }
        var parking: Parking?
        if change == .end {
          let rested = try EventTable.rested(old.vehicle.id, in: transaction)
          parking = old.parking(zones, rested: rested, now: now)
        }
        guard try BookingTable.update(id, version: old.version, to: new.booking, parking: parking, in: transaction)
        else { throw FleetRefusal.changed }
        if let event = new.event { try VehicleTable.note(event, of: old.vehicle.id, id, at: now, in: transaction) }
        let longer = try AccessTable.given(
          for: .booking(id), beyond: new.booking.accessLimit(at: now), in: transaction)
        let count = try TokenTable.withdraw(longer, at: now, in: transaction)
        return (try Self.booking(id, of: account, in: transaction), count)
      }
      guard let count else { return changed }
      await noteWithdrawn(count, ["booking": "\(id)", "vehicle": "\(changed.vehicle.id)"])
      if let parking = changed.parking, parking.metres > 0 {
        logger.notice(
          "a booking ended outside the parking zones",
          metadata: [
            "booking": "\(id)", "vehicle": "\(changed.vehicle.id)", "nearest": "\(parking.zone)",
            "metres": "\(parking.metres)",
          ])
      }
      return changed
    } catch let error as StoreError {
      // Only a booking that becomes longer can meet another.
      guard error == .constraint(FleetTables.overlap), let longer else { throw error }
      let begins = try await store.read { transaction in
        try BookingTable.open(of: longer.vehicle, endingAfter: now, in: transaction).map(\.interval.begin)
      }
      guard let end = begins.filter({ $0 > longer.interval.begin }).min() else {
        // The other booking has gone meanwhile.
        throw FleetRefusal.taken(next: [])
      }
      throw FleetRefusal.takenUntil(end)
    }
  }
}

extension String {
  /// The text without such characters at its begin and its end.
  func trimmingCharacters(_ isTrimmed: (Character) -> Bool) -> String {
    var rest = drop(while: isTrimmed)
    while let last = rest.last, isTrimmed(last) { rest.removeLast() }
    return String(rest)
  }
}
