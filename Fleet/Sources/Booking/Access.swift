/// The rules for access: what a device gets that opens a vehicle's steps.
package enum AccessRules {
  /// The maximum number of an account's unexpired tokens for one vehicle, including revoked ones. A vehicle can
  /// remember few revocations, and one account must not use up the space of all others.
  package static let most = 8
  /// The maximum number of unexpired tokens, including revoked ones: for one vehicle, and for one device at that
  /// vehicle. One notice must be able to revoke all of them.
  package static let (mostOfVehicle, mostOfDevice) = (64, 16)

  /// When the tokens for a vehicle end that have not ended, in any order. Unix time.
  package struct Ends: Sendable, Equatable {
    package let account, device, vehicle: [Int64]

    package init(account: [Int64], device: [Int64], vehicle: [Int64]) {
      (self.account, self.device, self.vehicle) = (account, device, vehicle)
    }
  }

  /// Decides whether one more token can be given.
  package static func checkRequest(isActive: Bool, isRevoked: Bool, ends: Ends) throws(FleetRefusal) {
    guard isActive else { throw .suspended }
    guard !isRevoked else { throw .deviceRevoked }
    let limits = [(ends.account, most), (ends.device, mostOfDevice), (ends.vehicle, mostOfVehicle)]
    for (ends, most) in limits where ends.count >= most {
      throw .tooMuchAccess(until: ends.sorted()[ends.count - most])
    }
  }

  /// Decides whether a token that was made may be given away: something may have changed while it was made.
  ///
  /// - Parameters:
  ///   - service: the vehicle's setting now.
  ///   - isRevoked: whether the operator has taken back the device's access.
  ///   - isUnchanged: whether the booking is open, and of the version that the token was made for.
  package static func checkGift(service: Service, isRevoked: Bool, isUnchanged: Bool) throws(FleetRefusal) {
    guard service == .inService else { throw .outOfService }
    guard !isRevoked else { throw .deviceRevoked }
    guard isUnchanged else { throw .changedMeanwhile }
  }
}

extension FleetBooking {
  /// The validity of a token that a device asks for.
  ///
  /// - Parameters:
  ///   - device: the device in the request, by its key's thumbprint.
  ///   - caller: the device that sends it.
  package func validity(of device: String, askedBy caller: String, at now: Int64) throws(FleetRefusal) -> Range<Int64> {
    guard vehicle.service == .inService else { throw .outOfService }
    guard device == caller else { throw .otherDevice }
    return try booking.validity(at: now)
  }
}

/// A token that was given to a device, with what it depends on.
package struct GivenAccess: Sendable, Equatable {
  /// The token's id.
  package let jti: String
  /// Unix time.
  package let expires: Int64
  package let booking: Booking
  package let service: Service
  package let isAccountActive: Bool

  package init(jti: String, expires: Int64, booking: Booking, service: Service, isAccountActive: Bool) {
    (self.jti, self.expires, self.booking) = (jti, expires, booking)
    (self.service, self.isAccountActive) = (service, isAccountActive)
  }

  /// Whether the token should not count any more: nobody may open the vehicle with it, or not for so long.
  package var isOverdue: Bool {
    booking.written == .cancelled || service != .inService || !isAccountActive
      || expires > booking.interval.end + BookingRules.grace
  }
}
