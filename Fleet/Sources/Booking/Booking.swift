/// How far a booking is.
package enum BookingState: String, Sendable, CaseIterable {
  case booked
  /// Access was given, and its time has come.
  case active
  /// It was used, and is over.
  case ended
  case cancelled
  /// It is over, and nobody ever asked for access.
  case expired

  /// Whether the vehicle is taken by it.
  package var isOpen: Bool { self == .booked || self == .active }
}

/// One vehicle, for one account, for one interval.
package struct Booking: Sendable, Equatable {
  package var interval: Interval
  /// As it was written last. What it is now depends on the time: `state(at:)`.
  package var written: BookingState
  /// Whether access was given to anyone.
  package var hasAccess: Bool

  package init(_ interval: Interval, written: BookingState = .booked, hasAccess: Bool = false) {
    (self.interval, self.written, self.hasAccess) = (interval, written, hasAccess)
  }

  package func state(at now: Int64) -> BookingState {
    guard written.isOpen else { return written }
    if now >= interval.end { return hasAccess ? .ended : .expired }
    return hasAccess && now >= interval.begin ? .active : .booked
  }

  /// For how long a token for it is valid that is made now: from its begin to 15 minutes after its end, and for 24
  /// hours from now at the most.
  package func validity(at now: Int64) throws(BookingProblem) -> Range<Int64> {
    guard state(at: now).isOpen else { throw .over }
    let end = min(interval.end + BookingRules.grace, now + BookingRules.maximumAccess)
    guard end > interval.begin else { throw .tooEarly(from: interval.begin - BookingRules.maximumAccess + 1) }
    return interval.begin..<end
  }

  /// With another end.
  package func extended(to end: Int64, now: Int64) throws(BookingProblem) -> Booking {
    guard state(at: now).isOpen else { throw .over }
    guard end >= interval.begin else { throw .backwards }
    guard end > now else { throw .past }
    var booking = self
    booking.interval = Interval(interval.begin, end)
    try BookingRules.checkLength(booking.interval)
    return booking
  }

  /// Where it is cancelled already, nothing changes.
  package func cancelled(now: Int64) throws(BookingProblem) -> Booking {
    switch state(at: now) {
    case .cancelled: return self
    case .ended, .expired: throw .over
    case .active: throw .active
    case .booked:
      var booking = self
      booking.written = .cancelled
      return booking
    }
  }

  /// Where it has ended already, nothing changes. The vehicle is free from now on.
  package func ended(now: Int64) throws(BookingProblem) -> Booking {
    switch state(at: now) {
    case .ended: return self
    case .cancelled, .expired: throw .over
    case .booked: throw .notBegun
    case .active:
      var booking = self
      booking.written = .ended
      // Not empty, where it began in this very second.
      booking.interval = Interval(interval.begin, max(now, interval.begin + 1))
      return booking
    }
  }
}

/// What the operator has said of a vehicle.
package enum Service: String, Sendable {
  case inService = "in_service"
  case suspended
  case removed
}

/// A vehicle's state in the words of the Mobility Data Specification 2.0.
package enum VehicleState: String, Sendable {
  case available, reserved
  case onTrip = "on_trip"
  case nonOperational = "non_operational"
  case removed

  /// - Parameter present: the state of the booking whose time it is; nil for none.
  package init(_ service: Service, present: BookingState?) {
    switch (service, present) {
    case (.removed, _): self = .removed
    case (.suspended, _): self = .nonOperational
    case (.inService, .active): self = .onTrip
    case (.inService, .booked): self = .reserved
    case (.inService, .ended), (.inService, .cancelled), (.inService, .expired), (.inService, nil): self = .available
    }
  }
}

/// What happened to a vehicle, in the words of the Mobility Data Specification 2.0 (car share).
package enum FleetEvent: String, Sendable {
  case providerDropOff = "provider_drop_off"
  case maintenance
  case maintenanceEnd = "maintenance_end"
  case decommissioned
  case reservationStart = "reservation_start"
  case reservationStop = "reservation_stop"
  case customerCancellation = "customer_cancellation"
  case providerCancellation = "provider_cancellation"
  case tripStart = "trip_start"
  case tripEnd = "trip_end"
}
