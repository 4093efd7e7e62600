import Booking
import Store
import Synchronization

/// The vehicles, without removed ones. They change rarely and are read at every request. A transaction that changes one
/// announces it.
final class KnownVehicles: Sendable {
  private let store: any Store
  private let state = Mutex(State())

  private struct State {
    /// Sorted by name; nil until they are needed.
    var vehicles: [FleetVehicle]?
    /// The number of changes so far.
    var age = 0
  }

  init(_ store: any Store) { self.store = store }

  /// Tells every server of the database that a vehicle changes.
  static func announceChange(in transaction: borrowing Transaction) throws(StoreError) {
    try transaction.announce(announcement)
  }

  private static let announcement = "vehicle"

  /// Follows changes by this server and by others of the same database. Ends with the store.
  ///
  /// - Parameter changed: what else follows a change.
  func follow(_ changed: () -> Void) async {
    let announcements = store.announcements()
    forget()
    for await announcement in announcements where [.everything, .change(Self.announcement)].contains(announcement) {
      forget()
      changed()
    }
  }

  func forget() {
    state.withLock {
      $0.vehicles = nil
      $0.age += 1
    }
  }

  func all() async throws -> [FleetVehicle] {
    let (vehicles, age) = state.withLock { ($0.vehicles, $0.age) }
    if let vehicles { return vehicles }
    // Databases sort names differently, and a page begins after a name.
    let read = try await store.read { try VehicleTable.all(in: $0) }.sorted { $0.name < $1.name }
    // A change during the read means that the result may be outdated.
    state.withLock { if $0.age == age { $0.vehicles = read } }
    return read
  }
}
