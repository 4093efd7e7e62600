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
    /// When the connection to the broker began, Unix time.
    var begun: Int64 = 0
    /// Since when the broker is away, Unix time; nil if it is there.
    var awaySince: Int64?
  }

  private let state = Mutex(State())

  package init() {}

  /// Since when the broker is away, Unix time; nil if it is there.
  var awaySince: Int64? { state.withLock { $0.awaySince } }

  /// By the vehicles' ids. While the broker is away nothing is known.
  var vehicles: [UUID: Connection] { state.withLock { $0.awaySince == nil ? $0.vehicles : [:] } }

  /// Whether a vehicle's controller is connected; nil if that is not known.
  ///
  /// A broker that was away may have an older "online" than the truth. It counts when the vehicle has been heard since:
  /// each connection lets all vehicles report.
  ///
  /// - Parameter heard: when the vehicle was heard last, Unix time; nil for never.
  func isOnline(_ vehicle: UUID, heard: Int64?) -> Bool? {
    state.withLock { state in
      guard state.awaySince == nil, let known = state.vehicles[vehicle] else { return nil }
      guard known.isOnline, known.since == nil else { return known.isOnline }
      return heard.map { $0 >= state.begun } ?? false ? true : nil
    }
  }

  /// A connection to the broker begins: it says anew what it knows.
  func begin(at now: Int64) { state.withLock { $0 = State(begun: now) } }

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
