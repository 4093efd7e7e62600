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
  package func validity(at now: Int64) throws(FleetRefusal) -> Range<Int64> {
    guard state(at: now).isOpen else { throw .over }
    let end = min(interval.end + BookingRules.grace, now + BookingRules.maximumAccess)
    guard end > interval.begin else { throw .tooEarly(from: interval.begin - BookingRules.maximumAccess + 1) }
    return interval.begin..<end
  }

  /// The booking with another end.
  package func extended(to end: Int64, now: Int64) throws(FleetRefusal) -> Booking {
    guard state(at: now).isOpen else { throw .over }
    guard end >= interval.begin else { throw .backwards }
    guard end > now else { throw .past }
    var booking = self
    booking.interval = Interval(interval.begin, end)
    try BookingRules.checkLength(booking.interval)
    return booking
  }

  /// Until when access may last now that the booking is as it is: what lasts longer is withdrawn.
  package func accessLimit(at now: Int64) -> Int64 { written.isOpen ? interval.end + BookingRules.grace : now }

  /// No effect if it is already cancelled.
  package func cancelled(now: Int64) throws(FleetRefusal) -> Booking {
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
  package func ended(now: Int64) throws(FleetRefusal) -> Booking {
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
