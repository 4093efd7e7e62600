import Booking
import Logging
import Store
import Synchronization

/// The vehicles, without removed ones, and the zones. They change rarely and are read at every request. A transaction
/// that changes one announces it.
final class KnownFleet: Sendable {
  private let store: any Store
  private let logger: Logger
  private let state = Mutex(State())

  private struct State {
    /// Sorted by name; nil until they are needed.
    var vehicles: [FleetVehicle]?
    var zones: [FleetZone]?
    /// The numbers of changes so far.
    var age = (vehicles: 0, zones: 0)
  }

  init(_ store: any Store, logger: Logger) { (self.store, self.logger) = (store, logger) }

  /// A change by this server, or by another one of the same database.
  ///
  /// - Parameter change: nil if everything may have changed.
  func forget(_ change: FleetChange?) {
    switch change {
    case .fleet, nil: forget()
    case .place: forgetVehicles()
    case .booking: break
    }
  }

  func forget() {
    forgetVehicles()
    state.withLock {
      $0.zones = nil
      $0.age.zones += 1
    }
  }

  private func forgetVehicles() {
    state.withLock {
      $0.vehicles = nil
      $0.age.vehicles += 1
    }
  }

  func all() async throws -> [FleetVehicle] {
    let (vehicles, age) = state.withLock { ($0.vehicles, $0.age.vehicles) }
    if let vehicles { return vehicles }
    // Databases sort names differently, and a page begins after a name.
    let read = try await store.read { try VehicleTable.all(in: $0) }.sorted { $0.name < $1.name }
    // A change during the read means that the result may be outdated.
    state.withLock { if $0.age.vehicles == age { $0.vehicles = read } }
    return read
  }

  func zones() async throws -> [FleetZone] {
    let (zones, age) = state.withLock { ($0.zones, $0.age.zones) }
    if let zones { return zones }
    // Their areas are read outside of the transaction: they have up to 200 vertices each.
    let rows = try await store.read { try ZoneTable.all(in: $0) }
    let read = rows.compactMap { row in
      do { return try FleetZone(row) } catch {
        logger.error("a zone cannot be read", metadata: ["zone": "\(row.text("name"))", "error": "\(error)"])
        return nil
      }
    }.sorted { $0.name < $1.name }
    state.withLock { if $0.age.zones == age { $0.zones = read } }
    return read
  }
}
