package import Encoding

/// A message to a rider.
package struct RiderMessage: Sendable, Equatable {
  /// Why. The word never changes: it is kept in the database, and the operator's program reads it.
  package enum Kind: String, Sendable, CaseIterable {
    /// The operator has cancelled the booking.
    case cancelled
    /// The operator has taken the vehicle out of the fleet.
    case vehicleRemoved = "vehicle_removed"
    /// The booking ends soon.
    case endsSoon = "ends_soon"
    /// The operator keeps the account out. Such a message has no booking.
    case suspended
  }

  package let kind: Kind
  package let account: String
  package let email: String
  /// Nil if the message is about the account.
  package let booking: FleetBooking?

  package init(_ kind: Kind, account: String, email: String, booking: FleetBooking?) {
    (self.kind, self.account, self.email, self.booking) = (kind, account, email, booking)
  }

  /// How long before a booking's end its rider is told, seconds; and the shortest booking of which a rider is told
  /// that.
  package static let (notice, shortest): (Int64, Int64) = (900, 3600)

  /// The subject of the mail: ASCII, and nothing that somebody else has chosen.
  package var subject: String {
    switch kind {
    case .cancelled, .vehicleRemoved: "Your booking was cancelled"
    case .endsSoon: "Your booking ends soon"
    case .suspended: "Your account was suspended"
    }
  }

  /// Whether it says what is no longer so.
  package func isOutdated(at now: Int64) -> Bool {
    guard kind == .endsSoon else { return false }
    guard let booking = booking?.booking else { return true }
    return !booking.state(at: now).isOpen || booking.interval.end > now + Self.notice
  }

  /// The vehicle's name. One that was removed has its id behind it.
  private var name: String? {
    guard let vehicle = booking?.vehicle else { return nil }
    let suffix = " (\(vehicle.id))"
    return vehicle.name.hasSuffix(suffix) ? String(vehicle.name.dropLast(suffix.count)) : vehicle.name
  }

  /// - Parameter host: the server's.
  package func text(host: String) -> String {
    let what = booking.map { booking in
      let interval = booking.booking.interval
      return """
        The booking: \(name ?? ""), \(Timestamp.text(interval.begin)) to \(Timestamp.text(interval.end)) (UTC), \
        \(booking.id.prefix(8)).

        """
    }
    let why =
      switch kind {
      case .cancelled: "The operator of \(host) has cancelled your booking. You may not use the vehicle any more."
      case .vehicleRemoved:
        "The operator of \(host) has taken the vehicle out of the fleet, and cancelled your booking."
      case .endsSoon:
        """
        Your booking at \(host) ends soon. `stepctl bookings extend` makes it longer, if nobody else has the vehicle then.
        """
      case .suspended:
        """
        The operator of \(host) has suspended your account: you cannot log in or book, and your bookings were cancelled.
        """
      }
    return "\(why)\n\n\(what ?? "")"
  }

  /// For the operator's program.
  package var json: JSON {
    var members: [JSON.Member] = [
      .init("kind", .string(kind.rawValue)), .init("account", .string(account)), .init("email", .string(email)),
    ]
    if let booking {
      members += [
        .init("booking", .string(booking.id)), .init("vehicle", .string(booking.vehicle.id)),
        .init("name", .string(name ?? "")),
        .init("from", .string(Timestamp.text(booking.booking.interval.begin))),
        .init("to", .string(Timestamp.text(booking.booking.interval.end))),
      ]
    }
    return .object(members)
  }
}
