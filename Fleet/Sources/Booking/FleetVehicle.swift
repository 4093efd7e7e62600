package import Domain
package import Geography

/// A vehicle of the fleet.
package struct FleetVehicle: Sendable, Equatable {
  package let id: String
  package let name: String
  /// The name of the vehicle's folder at the operator.
  package let folder: String
  package let steps: [Step]
  package let service: Service
  /// The vehicle's place, if the operator has set one.
  package let place: Place?

  package struct Place: Sendable, Equatable {
    package let position: Coordinate
    /// When the operator set it: Unix time.
    package let since: Int64

    package init(position: Coordinate, since: Int64) { (self.position, self.since) = (position, since) }
  }

  package init(id: String, name: String, folder: String, steps: [Step], service: Service, place: Place? = nil) {
    (self.id, self.name, self.folder) = (id, name, folder)
    (self.steps, self.service, self.place) = (steps, service, place)
  }

  /// The vehicle's state now.
  ///
  /// - Parameter bookings: its open bookings, in any order.
  package func state(_ bookings: [Booking], at now: Int64) -> VehicleState {
    let present = bookings.first { $0.interval.begin <= now && now < $0.interval.end }
    return VehicleState(service, present: present?.state(at: now))
  }

  /// What the operator's change of the setting means.
  ///
  /// - Returns: nil if the vehicle has that setting already.
  package func changing(to service: Service) -> ServiceChange? {
    guard service != self.service else { return nil }
    return switch service {
    case .inService: ServiceChange(service: service, event: .maintenanceEnd, withdrawsAccess: false, name: nil)
    case .suspended: ServiceChange(service: service, event: .maintenance, withdrawsAccess: true, name: nil)
    case .removed:
      ServiceChange(service: service, event: .decommissioned, withdrawsAccess: true, name: "\(name) (\(id))")
    }
  }
}

/// The operator's setting for a vehicle.
package enum Service: String, Sendable, CaseIterable {
  case inService = "in_service"
  case suspended
  case removed
}

/// What follows when the operator takes a vehicle out of service, or returns it.
package struct ServiceChange: Sendable, Equatable {
  package let service: Service
  package let event: FleetEvent
  /// Issued access is withdrawn. Bookings stay, unless the vehicle is removed.
  package let withdrawsAccess: Bool
  /// The name that a removed vehicle has from now on, so that another one can have its own. Its bookings are
  /// cancelled.
  package let name: String?
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
