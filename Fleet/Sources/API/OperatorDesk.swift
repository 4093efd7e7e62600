import Dispatch
package import Domain
package import Logging
package import Provisioning
package import StepProtocol
import Synchronization
import SystemIO

/// The server's access to the operator's folder. Files are read and written outside the requests' threads, and notices
/// are published until the broker has them.
package final class OperatorDesk: Sendable {
  private let place: FleetOperator
  private let logger: Logger
  private let clock: @Sendable () -> Int64
  private let files = DispatchQueue(label: "stepfleet.operator")
  private let publishing = DispatchQueue(label: "stepfleet.notices")
  private let state = Mutex(State())

  private struct State {
    /// The vehicles with unpublished notices.
    var untold: Set<UUID> = []
    var isPublishing = false
  }

  package init(_ place: FleetOperator, logger: Logger, clock: @escaping @Sendable () -> Int64) {
    (self.place, self.logger, self.clock) = (place, logger, clock)
  }

  package func perform<Result: Sendable>(
    _ body: @escaping @Sendable (FleetOperator) throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      files.async { [place] in continuation.resume(with: Swift.Result { try body(place) }) }
    }
  }

  /// Revokes the subjects. The revocation is recorded when this returns, and published as soon as the broker accepts
  /// it.
  ///
  /// - Returns: the number of revoked tokens that have not ended.
  package func revoke(_ subjects: [Notice.Subject], of vehicles: Set<UUID>, now: Int64) async throws -> Int {
    let jtis = try await perform { try $0.revoke(subjects, now: now) }
    logger.notice("access revoked", metadata: ["tokens": "\(jtis.count)", "vehicles": "\(vehicles.count)"])
    publish(to: vehicles)
    return jtis.count
  }

  /// Gives new notices to the broker, in the background.
  package func publish(to vehicles: Set<UUID>) {
    let isFirst = state.withLock { state in
      state.untold.formUnion(vehicles)
      defer { state.isPublishing = true }
      return !state.isPublishing
    }
    if isFirst { publishing.async { self.work() } }
  }

  /// Removes a vehicle's folder, after its last notice was published. If the notice cannot be published, the folder
  /// stays.
  ///
  /// - Parameter vehicle: nil if there is no notice to publish.
  package func remove(_ folder: String, telling vehicle: UUID?) async throws {
    if let vehicle {
      let now = clock()
      let failure = try await withCheckedThrowingContinuation { continuation in
        publishing.async { [place] in
          continuation.resume(
            with: Result { try place.publish(to: [vehicle], now: now, until: .now + .seconds(30))[vehicle] })
        }
      }
      if let failure {
        logger.error("a notice is not published", metadata: ["vehicle": "\(vehicle)", "error": "\(failure)"])
        return
      }
    }
    try await perform { try $0.remove(folder) }
  }

  private func work() {
    let untold = state.withLock { state -> Set<UUID> in
      let untold = state.untold
      state.untold = []
      if untold.isEmpty { state.isPublishing = false }
      return untold
    }
    if untold.isEmpty { return }
    var left = untold
    do {
      let failures = try place.publish(to: untold, now: clock(), until: .now + .seconds(30))
      for (vehicle, error) in failures {
        logger.error("a notice is not published", metadata: ["vehicle": "\(vehicle)", "error": "\(error)"])
      }
      left = Set(failures.keys)
      if failures.count < untold.count {
        logger.info("notices published", metadata: ["vehicles": "\(untold.count - failures.count)"])
      }
    } catch {
      logger.error("notices are not published", metadata: ["error": "\(error)"])
    }
    state.withLock { $0.untold.formUnion(left) }
    publishing.asyncAfter(deadline: .now() + (left.isEmpty ? 0 : 5)) { self.work() }
  }
}
