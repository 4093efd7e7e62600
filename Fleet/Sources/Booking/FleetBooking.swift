package import Domain

/// A booking as the fleet keeps it.
package struct FleetBooking: Sendable, Equatable {
  package let id: String
  package let vehicle: FleetVehicle
  package let account: String
  /// The rider's name for the vehicle: a word that is used only for this booking.
  package let subject: String
  package let steps: [StepID]
  /// Grows with each change.
  package let version: Int64
  package let booking: Booking
  /// Where the vehicle stood when the rider ended the booking; nil if that is unknown.
  package let parking: Parking?

  package init(
    id: String, vehicle: FleetVehicle, account: String, subject: String, steps: [StepID], version: Int64 = 1,
    booking: Booking, parking: Parking? = nil
  ) {
    (self.id, self.vehicle, self.account, self.subject) = (id, vehicle, account, subject)
    (self.steps, self.version, self.booking, self.parking) = (steps, version, booking, parking)
  }

  /// Another rider's booking looks like a missing one.
  ///
  /// - Parameter account: the account that asks; nil for the operator.
  package func checkOwner(_ account: String?) throws(FleetRefusal) {
    guard account == nil || account == self.account else { throw .noSuchBooking }
  }
}

/// A rider's wish for a vehicle.
package struct BookingRequest: Sendable, Equatable {
  /// The vehicle's id.
  package let vehicle: String
  package let interval: Interval
  /// Nil for all steps of the vehicle.
  package let steps: [StepID]?

  package init(vehicle: String, _ interval: Interval, steps: [StepID]? = nil) {
    (self.vehicle, self.interval, self.steps) = (vehicle, interval, steps)
  }

  /// What an account has when it asks for one more booking.
  package struct Account: Sendable, Equatable {
    /// It may have been suspended since the request was read.
    package let isActive: Bool
    /// How many of its bookings are not over.
    package let bookings: Int64
    /// How many of them it may have.
    package let limit: Int64

    package init(isActive: Bool, bookings: Int64, limit: Int64) {
      (self.isActive, self.bookings, self.limit) = (isActive, bookings, limit)
    }
  }

  /// Decides whether the account may have the vehicle. Whether another booking has that time is decided by the
  /// database, because only it sees all requests at once.
  ///
  /// - Parameter vehicle: nil if there is none.
  /// - Returns: the interval and the steps of the booking.
  package func accepted(
    for account: Account, vehicle: FleetVehicle?, now: Int64
  ) throws(FleetRefusal) -> (interval: Interval, steps: [StepID]) {
    let interval = try BookingRules.interval(interval, now: now)
    guard let vehicle, vehicle.service != .removed else { throw .noSuchVehicle }
    guard vehicle.service == .inService else { throw .outOfService }
    let known = vehicle.steps.map(\.id)
    if let unknown = steps?.first(where: { !known.contains($0) }) { throw .noSuchStep(unknown) }
    guard account.isActive else { throw .suspended }
    guard account.bookings < account.limit else { throw .tooManyBookings(account.limit) }
    return (interval, known.filter { steps?.contains($0) ?? true })
  }
}

/// A change of a booking.
package enum BookingChange: Sendable, Equatable {
  case extend(to: Int64, ifVersion: Precondition)
  case cancel, end

  /// The versions that whoever asks has read.
  package enum Precondition: Sendable, Equatable {
    case any
    case versions([Int64])

    package func holds(for version: Int64) -> Bool {
      switch self {
      case .any: true
      case .versions(let versions): versions.contains(version)
      }
    }
  }
}

extension FleetBooking {
  /// What a change makes of the booking.
  package struct Changed: Sendable, Equatable {
    package let booking: Booking
    /// What happened to the vehicle; nil if nothing did.
    package let event: FleetEvent?
  }

  /// Decides what a change makes of the booking.
  ///
  /// - Parameter isOperator: whether the operator asks, instead of the rider.
  /// - Returns: nil if the change has no effect.
  package func changed(by change: BookingChange, isOperator: Bool, now: Int64) throws(FleetRefusal) -> Changed? {
    let new: Booking
    let event: FleetEvent?
    switch change {
    case .extend(let end, let precondition):
      new = try booking.extended(to: end, now: now)
      event = nil
      // The longer booking would have no access. An earlier end is possible, because it leaves time to others.
      guard vehicle.service == .inService || end <= booking.interval.end else { throw .outOfService }
      guard precondition.holds(for: version) else { throw .changed }
    case .cancel:
      new = try booking.cancelled(now: now)
      event = isOperator ? .providerCancellation : .customerCancellation
    case .end:
      new = try booking.ended(now: now)
      event = .tripEnd
    }
    return new == booking ? nil : Changed(booking: new, event: event)
  }

  /// How old a place may be that says where a booking ends, seconds.
  package static let oldestPlace: Int64 = 900

  /// Where the vehicle stands when the rider ends the booking; nil if that is unknown.
  ///
  /// A place says nothing if it is from before the booking, or older than a quarter of an hour, or if a step has come
  /// to rest since, and the vehicle did not tell a place with that. A vehicle that is driven for less than a quarter of
  /// an hour, without a motion of a step, is taken to be where it was.
  ///
  /// - Parameter rested: since when a place tells where a step of the vehicle came to rest last, Unix time; nil if none
  ///   did.
  package func parking(_ zones: [FleetZone], rested: Int64?, now: Int64) -> Parking? {
    guard let place = vehicle.place, place.since >= booking.interval.begin, place.since >= now - Self.oldestPlace,
      place.since >= rested ?? 0
    else { return nil }
    return Parking(place, zones)
  }
}
