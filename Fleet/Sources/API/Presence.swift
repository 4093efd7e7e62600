import Domain
import Synchronization

/// Which vehicles' controllers are connected, as the broker says, and whether the broker is there. A server hears it
/// anew when it starts.
package final class Presence: Sendable {
  /// What is known of a controller's connection.
  struct Connection: Sendable, Equatable {
    let isOnline: Bool
    /// Since when that is known, Unix time; nil if it was so before this server asked.
    let since: Int64?
  }

  private struct State {
    var vehicles: [UUID: Connection] = [:]
    /// Since when the broker is away, Unix time; nil if it is there.
    var awaySince: Int64?
  }

  private let state = Mutex(State())

  package init() {}

  /// Since when the broker is away, Unix time; nil if it is there.
  var awaySince: Int64? { state.withLock { $0.awaySince } }

  /// By the vehicles' ids. While the broker is away nothing is known.
  var vehicles: [UUID: Connection] { state.withLock { $0.awaySince == nil ? $0.vehicles : [:] } }

  /// A connection to the broker begins: it says anew what it knows.
  func begin() { state.withLock { $0 = State() } }

  /// The broker is away.
  func end(at now: Int64) { state.withLock { $0.awaySince = $0.awaySince ?? now } }

  /// The broker says whether a controller is connected.
  func note(_ vehicle: UUID, isOnline: Bool, at now: Int64) {
    state.withLock { state in
      let known = state.vehicles[vehicle]
      if known?.isOnline != isOnline {
        state.vehicles[vehicle] = Connection(isOnline: isOnline, since: known == nil ? nil : now)
      }
    }
  }
}
