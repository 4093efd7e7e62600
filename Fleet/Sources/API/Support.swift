import Booking
import Encoding
import Store
import Web

/// What an operator has to know to help a rider who cannot open a step.
extension FleetService {
  /// - Parameter who: an account's address or id, or what `bookingMeant` takes.
  /// - Returns: the account, its bookings that are not over, its last refusals, what their vehicles have told; and, for
  ///   people, what may be wrong, the most probable first.
  func support(_ who: String) async throws -> JSON {
    let now = clock()
    var account = try await store.read { try Self.account(who.lowercased(), in: $0) }
    if account == nil {
      let id = try await bookingMeant(by: who)
      guard let booking = try await store.read({ try BookingTable.find(id, in: $0) }) else {
        throw FleetRefusal.noSuchBooking
      }
      account = try await store.read { try Self.account(booking.account, in: $0) }
    }
    guard let account else { throw FleetRefusal.noSuchBooking }
    let (bookings, events, present, notices) = try await store.read { transaction in
      (
        try BookingTable.newest(of: account.id, in: transaction).filter { $0.booking.state(at: now).isOpen },
        try EventTable.history(.init(account: account.id, limit: 200), in: transaction).map(\.json),
        try EventTable.present(in: transaction), try NoticeTable.states(in: transaction)
      )
    }
    let untold = try await untold()
    let refusals = Array(events.filter { $0["kind"]?.string == "refused" }.suffix(5))
    var wrong: [String] = []
    if account.state != "active" {
      wrong.append("the account is \(account.state): `stepfleet account resume` lets it book and open again")
    }
    let active = bookings.filter { $0.booking.interval.begin <= now }
    if active.isEmpty {
      let next = bookings.map(\.booking.interval.begin).min()
      wrong.append(
        next.map { "no booking has begun: the next begins at \(Timestamp.text($0))" }
          ?? "there is no booking that is not over")
    }
    for booking in active {
      let (vehicle, told) = (booking.vehicle, present[booking.vehicle.id])
      if vehicle.service != .inService { wrong.append("\(vehicle.name) is out of service: `stepfleet vehicle resume`") }
      if let since = untold[vehicle.id] {
        wrong.append(
          "the broker lacks \(vehicle.name)'s newest notice since \(Timestamp.text(since)): does the broker run?")
      }
      if notices[vehicle.id] == .unconfirmed {
        wrong.append("\(vehicle.name) has not said that it obeys its newest notice: it may not be connected")
      }
      wrong.append(
        told?.heard.map { "\(vehicle.name) was heard last at \(Timestamp.text($0))" }
          ?? "\(vehicle.name) was never heard: does it reach the broker?")
    }
    if let last = refusals.last {
      func text(_ name: String) -> String { last[name]?.string ?? "?" }
      let cause = last["cause"]?.string.map { " (\($0))" } ?? ""
      wrong.insert("\(text("vehicle")) refused at \(text("time")): \(text("code"))\(cause)", at: 0)
    }
    return [
      "account": .string(account.id), "email": account.email.map(JSON.string) ?? .null, "state": .string(account.state),
      "bookings": .array(bookings.map { BookingForm($0, at: now).json }), "refusals": .array(refusals),
      "findings": .array(wrong.map(JSON.string)),
    ]
  }

  private static func account(
    _ name: String, in transaction: borrowing Transaction
  ) throws(StoreError) -> (id: String, email: String?, state: String)? {
    try transaction.run("SELECT id, email, state FROM account WHERE ? IN (id, email)", [.text(name)]).first.map {
      ($0.text("id"), $0.optionalText("email"), $0.text("state"))
    }
  }
}
