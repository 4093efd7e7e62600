/// What happened to a vehicle, in the words of the Mobility Data Specification 2.0 (car share).
package enum FleetEvent: String, Sendable, CaseIterable {
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

  /// What the end of a booking's time is for the vehicle.
  package init(timeEndedOf booking: Booking) { self = booking.hasAccess ? .tripEnd : .reservationStop }
}
