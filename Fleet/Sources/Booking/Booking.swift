/// The state of a booking.
package enum BookingState: String, Sendable, CaseIterable {
  case booked
  /// Access was issued, and the booking has begun.
  case active
  /// The booking was used, and has ended.
  case ended
  case cancelled
  /// The booking has ended, and access was never requested.
  case expired

  /// Whether the booking occupies the vehicle.
  package var isOpen: Bool { self == .booked || self == .active }
}

/// One vehicle, for one account, for one interval.
package struct Booking: Sendable, Equatable {
  package var interval: Interval
  /// The state that was last written. The present state depends on the time: `state(at:)`.
  package var written: BookingState
  /// Whether access was issued to any device.
  package var hasAccess: Bool

  package init(_ interval: Interval, written: BookingState = .booked, hasAccess: Bool = false) {
    (self.interval, self.written, self.hasAccess) = (interval, written, hasAccess)
  }

  package func state(at now: Int64) -> BookingState {
    guard written.isOpen else { return written }
    if now >= interval.end { return hasAccess ? .ended : .expired }
    return hasAccess && now >= interval.begin ? .active : .booked
  }

  /// The validity of a token that is issued now: from the booking's begin to 15 minutes after its end, but at most 24
  /// hours from now.
  package func validity(at now: Int64) throws(BookingProblem) -> Range<Int64> {
    guard state(at: now).isOpen else { throw .over }
    let end = min(interval.end + BookingRules.grace, now + BookingRules.maximumAccess)
    guard end > interval.begin else { throw .tooEarly(from: interval.begin - BookingRules.maximumAccess + 1) }
    return interval.begin..<end
  }

  /// The booking with another end.
  package func extended(to end: Int64, now: Int64) throws(BookingProblem) -> Booking {
    guard state(at: now).isOpen else { throw .over }
    guard end >= interval.begin else { throw .backwards }
    guard end > now else { throw .past }
    var booking = self
    booking.interval = Interval(interval.begin, end)
    try BookingRules.checkLength(booking.interval)
    return booking
  }

  /// No effect if it is already cancelled.
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

  /// No effect if it has already ended. The vehicle is free from now on.
  package func ended(now: Int64) throws(BookingProblem) -> Booking {
    switch state(at: now) {
    case .ended: return self
    case .cancelled, .expired: throw .over
    case .booked: throw .notBegun
    case .active:
      var booking = self
      booking.written = .ended
      // Not empty, even if the booking began in this second.
      booking.interval = Interval(interval.begin, max(now, interval.begin + 1))
      return booking
    }
  }
}

/// The operator's setting for a vehicle.
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

  /// - Parameter present: the state of the current booking; nil for none.
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
