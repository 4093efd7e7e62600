import Dispatch
package import Domain
package import Logging
package import Operator
package import StepProtocol
import Synchronization
import SystemIO

/// The operator's folder. Files are read and written outside the requests' threads, and notices are published until the
/// broker has them.
package final class FolderDesk: OperatorDesk {
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

  private func perform<Result: Sendable>(
    _ body: @escaping @Sendable (FleetOperator) throws -> Result
  ) async throws -> Result {
    do {
      return try await withCheckedThrowingContinuation { continuation in
        files.async { [place] in continuation.resume(with: Swift.Result { try body(place) }) }
      }
    } catch let refusal as FleetOperator.Refusal {
      switch refusal {
      case .request(let reason): throw DeskError.request(reason)
      case .tooMany(let next): throw DeskError.tooMany(until: next)
      }
    } catch let error as any Failure {
      throw DeskError.failed("\(error)")
    }
  }

  package func keys() async throws -> [VerificationKey] { try await perform { try $0.keys() } }

  package func vehicle(in folder: String) async throws -> Vehicle? { try await perform { try $0.vehicle(folder) } }

  package func admit(_ vehicle: Vehicle, _ enrolment: Enrolment, now: Int64) async throws -> Admission {
    try await perform { place in
      do {
        let admission = try place.admit(
          .init(
            vehicle: vehicle, topic: enrolment.topic, encryptionKey: enrolment.encryptionKey,
            statementKey: enrolment.statementKey, certificateRequest: enrolment.certificateRequest), now: now)
        return Admission(
          keys: admission.keys, host: admission.host, port: admission.port,
          authority: String(decoding: admission.authority, as: UTF8.self),
          certificate: String(decoding: admission.certificate, as: UTF8.self), end: admission.end)
      } catch let error as any Failure where error.exitStatus == .usage {
        throw DeskError.taken("\(error)")
      }
    }
  }

  package func issue(_ grant: Grant, now: Int64) async throws -> IssuedToken {
    try await perform { place in
      let granted = try place.grant(
        grant.folder, subject: grant.subject, steps: grant.steps, validity: grant.validity, to: grant.request, now: now)
      guard let granted else { throw DeskError.deviceRevoked }
      return IssuedToken(jti: granted.token.id, expires: granted.token.expires, text: granted.text)
    }
  }

  package func revoke(_ subjects: [Notice.Subject], of vehicles: Set<UUID>, now: Int64) async throws -> Int {
    let jtis = try await perform { try $0.revoke(subjects, now: now) }
    logger.notice("access revoked", metadata: ["tokens": "\(jtis.count)", "vehicles": "\(vehicles.count)"])
    publish(to: vehicles)
    return jtis.count
  }

  package func rotateKeys(now: Int64) async throws -> String { try await perform { try $0.rotateKeys(now: now) } }

  package func retireKey(now: Int64) async throws { try await perform { try $0.retireKey(now: now) } }

  package func tidy(now: Int64) async throws { try await perform { try $0.tidy(now: now) } }

  package func publish(to vehicles: Set<UUID>) {
    let isFirst = state.withLock { state in
      state.untold.formUnion(vehicles)
      defer { state.isPublishing = true }
      return !state.isPublishing
    }
    if isFirst { publishing.async { self.work() } }
  }

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
