import Access
import Booking
import Domain
import Encoding
import HTTPTypes
import Logging
import StepProtocol
import Store
import Web

/// What an operator has to know to help a rider who cannot open a step.
extension FleetService {
  /// - Parameters:
  ///   - who: an account's address or id, or what `bookingMeant` takes.
  ///   - reissues: whether the access of the booking is made new: of the one that is meant, or else of the only one
  ///     that has begun.
  /// - Returns: the account, its bookings that are not over, its last refusals, what their vehicles have told; and, for
  ///   people, what may be wrong, the most probable first.
  func support(_ who: String, reissues: Bool = false) async throws -> JSON {
    let now = clock()
    let (account, meant) = try await supported(who)
    let reissued = reissues ? try await reissue(of: account.id, booking: meant) : nil
    let revoked = try await store.read { try AccessTable.revokedDevices(of: account.id, at: now, in: $0) }
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
    for device in revoked {
      wrong.append(
        "the device \(Thumbprint(device)?.grouped ?? device) is revoked: whoever uses it needs a new key (stepfleet(8), revoke)"
      )
    }
    // Callers are known by their address: then it is the booking that was refused last.
    if let about = meant ?? refusals.last?["booking"]?.string,
      let booking = try await store.read({ try BookingTable.find(about, in: $0) }),
      !booking.booking.state(at: now).isOpen
    {
      let state = booking.booking.state(at: now).rawValue
      let interval = booking.booking.interval
      wrong.append(
        "\(about.prefix(8)) of \(booking.vehicle.name), \(interval.from) to \(interval.to), is \(state)")
    }
    if let since = presence.awaySince { wrong.append("the broker is away since \(Timestamp.text(since))") }
    let active = bookings.filter { $0.booking.interval.begin <= now }
    if active.isEmpty {
      let next = bookings.map(\.booking.interval.begin).min()
      wrong.append(
        next.map { "no booking has begun: the next begins at \(Timestamp.text($0))" }
          ?? "no booking is booked or active")
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
      let connection = UUID(vehicle.id).flatMap { presence.vehicles[$0] }
      if connection?.isOnline == false {
        let since = connection?.since.map { " since \(Timestamp.text($0))" } ?? ""
        wrong.append("\(vehicle.name) is not connected to the broker\(since): is its controller on?")
      }
      wrong.append(
        told?.heard.map { "\(vehicle.name) was heard last at \(Timestamp.text($0))" }
          ?? "\(vehicle.name) has never reported anything\(connection == nil ? ": does it reach the broker?" : "")")
    }
    if let last = refusals.last {
      func text(_ name: String) -> String { last[name]?.string ?? "?" }
      let cause = last["cause"]?.string.map { " (\($0))" } ?? ""
      wrong.insert("\(text("vehicle")) refused at \(text("time")): \(text("code"))\(cause)", at: 0)
    }
    return [
      "account": .string(account.id), "email": account.email.map(JSON.string) ?? .null, "state": .string(account.state),
      "bookings": .array(bookings.map { BookingForm($0, at: now).json }), "refusals": .array(refusals),
      "findings": .array(wrong.map(JSON.string)), "reissued": reissued.map(JSON.string) ?? .null,
    ]
  }

  /// The account that is meant by an address, an id, or what `bookingMeant` takes; and the booking, if one is meant.
  private func supported(
    _ who: String
  ) async throws -> (account: (id: String, email: String?, state: String), booking: String?) {
    let name = who.trimmingCharacters(\.isWhitespace).lowercased()
    if let account = try await store.read({ try Self.account(name, in: $0) }) { return (account, nil) }
    if name.contains("@") {
      let now = clock()
      let (isAsked, emails) = try await store.read { transaction in
        let asked = try transaction.run(
          "SELECT id FROM registration WHERE email = ? AND expires > ?", [.text(name), .integer(now)])
        let emails = try transaction.run("SELECT email FROM account WHERE email IS NOT NULL").map { $0.text("email") }
        return (!asked.isEmpty, emails)
      }
      guard !isAsked else {
        throw Problem(
          .notFound, "not_found", "\(name) has no account yet: the code that was mailed has not been typed")
      }
      throw FleetRefusal.notNamed("account", name, near: Spelling.nearest(to: name, among: emails))
    }
    do {
      let id = try await bookingMeant(by: who)
      let booking = try await booking(id, of: nil)
      if let account = try await store.read({ try Self.account(booking.account, in: $0) }) { return (account, id) }
    } catch FleetRefusal.noSuchBooking {
      throw Problem(
        .notFound, "not_found",
        "\"\(name)\" is no account's address, and no booking's id (or how that begins, four digits or more)")
    }
    throw FleetRefusal.noSuchBooking
  }

  /// Withdraws a booking's access, so that its rider's program fetches it anew, and lets its vehicle have its notice
  /// again.
  ///
  /// - Parameter meant: the booking's id; nil for the account's only one that has begun.
  /// - Returns: the booking's id.
  private func reissue(of account: String, booking meant: String?) async throws -> String {
    let now = clock()
    let (booking, count) = try await store.write { transaction -> (String, Int) in
      try transaction.reserve(account)
      try transaction.reserve(AccessTable.lock)
      let begun = try BookingTable.newest(of: account, in: transaction).filter { booking in
        let isBegun = booking.booking.state(at: now).isOpen && booking.booking.interval.begin <= now
        return isBegun && (meant.map { $0 == booking.id } ?? true)
      }
      guard let booking = begun.first else { throw FleetRefusal.notBegunYet }
      guard begun.count == 1 else { throw FleetRefusal.severalBegun(begun.count) }
      guard booking.vehicle.service == .inService else { throw FleetRefusal.outOfService }
      // What is withdrawn must come again: whoever has had too much access would get none.
      let vehicle = booking.vehicle.id
      let tokens = try AccessTable.given(for: .booking(booking.id), beyond: now, in: transaction)
      let known = try AccessTable.ends(of: account, at: vehicle, after: now, in: transaction)
      guard try AccountTable.isActive(account, in: transaction) else { throw FleetRefusal.suspended }
      var devices: [String] = []
      for device in Set(try AccessTable.devices(of: booking.id, after: now, in: transaction)).sorted()
      where try !AccessTable.isRevoked(device, at: now, in: transaction) { devices.append(device) }
      // The first devices to come must leave room for the last one.
      let others = Array(repeating: Int64.max, count: max(0, devices.count - 1))
      // Without one, a device that has none yet.
      for device in devices.isEmpty ? [""] : devices {
        let ends = try TokenTable.ends(at: vehicle, of: device, after: now, in: transaction)
        try AccessRules.checkRequest(
          isActive: true, isRevoked: false,
          ends: .init(account: known + others, device: ends.device, vehicle: ends.vehicle + others))
      }
      let count = try TokenTable.withdraw(tokens, at: now, in: transaction)
      try NoticeTable.wantAgain(vehicle, at: now, in: transaction)
      return (booking.id, count)
    }
    await noteWithdrawn(count, ["booking": "\(booking)"])
    return booking
  }

  static func account(
    _ name: String, in transaction: borrowing Transaction
  ) throws(StoreError) -> (id: String, email: String?, state: String)? {
    try transaction.run("SELECT id, email, state FROM account WHERE ? IN (id, email)", [.text(name)]).first.map {
      ($0.text("id"), $0.optionalText("email"), $0.text("state"))
    }
  }
}
