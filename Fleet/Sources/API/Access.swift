import Access
import Booking
import Domain
package import Encoding
import Logging
package import StepProtocol
import Store
import Web

extension FleetService {
  /// Gives a booking's access to the device that asks.
  ///
  /// - Returns: the text of the access file.
  func access(to id: String, for caller: Caller, _ request: DeviceRequest) async throws -> String {
    let now = clock()
    let booking = try await booking(id, of: caller.account)
    let validity = try booking.validity(
      of: request.device.thumbprint.description, askedBy: caller.device, at: now)
    // Before anything is signed for somebody who gets nothing.
    let record = try await store.read { transaction in
      try Self.check(booking, for: caller, at: now, in: transaction)
      return try VehicleTable.record(of: booking.vehicle.id, in: transaction)
    }
    guard let record else {
      logger.error("no access: the vehicle's public part is unknown", metadata: ["vehicle": "\(booking.vehicle.id)"])
      throw OperatorFailure.access
    }
    let token: IssuedToken
    do {
      token = try await issuer.issue(
        Grant(
          vehicle: record, subject: booking.subject, steps: booking.steps, validity: validity,
          request: request), now: now)
    } catch { throw refusal(of: error, for: id) }
    // Nobody has the token before this is written.
    try await store.write { transaction in
      // Of simultaneous requests, each sees the earlier ones.
      try transaction.reserve(caller.account)
      try transaction.reserve(AccessTable.lock)
      try Self.check(booking, for: caller, at: now, in: transaction)
      try Self.confirm(booking, device: caller.device, at: now, in: transaction)
      try AccessTable.give(token.entry, for: id, in: transaction)
      guard !booking.booking.hasAccess else { return }
      try VehicleTable.note(.tripStart, of: booking.vehicle.id, id, at: max(now, validity.lowerBound), in: transaction)
    }
    return token.text
  }

  /// Throws unless the caller may have one more token for the booking.
  private static func check(
    _ booking: FleetBooking, for caller: Caller, at now: Int64, in transaction: borrowing Transaction
  ) throws {
    let others = try TokenTable.ends(at: booking.vehicle.id, of: caller.device, after: now, in: transaction)
    try AccessRules.checkRequest(
      isActive: try AccountTable.isActive(caller.account, in: transaction),
      isRevoked: try AccessTable.isRevoked(caller.device, at: now, in: transaction),
      ends: .init(
        account: try AccessTable.ends(of: caller.account, at: booking.vehicle.id, after: now, in: transaction),
        device: others.device, vehicle: others.vehicle))
  }

  /// Records that a booking has access. Throws if something has changed since the booking was read.
  private static func confirm(
    _ booking: FleetBooking, device: String, at now: Int64, in transaction: borrowing Transaction
  ) throws {
    let service = try VehicleTable.find(id: booking.vehicle.id, in: transaction)?.service ?? .removed
    try AccessRules.checkGift(
      service: service, isRevoked: try AccessTable.isRevoked(device, at: now, in: transaction),
      isUnchanged: try BookingTable.giveAccess(booking.id, version: booking.version, in: transaction))
  }

  private func refusal(of error: any Error, for booking: String) -> any Error {
    guard let error = error as? IssuerError else { return error }
    switch error {
    case .request(let reason): return FleetRefusal.badRequest(reason)
    case .failed:
      // This line is for the operator, because it names files.
      logger.error("no access", metadata: ["booking": "\(booking)", "error": "\(error)"])
      return OperatorFailure.access
    }
  }

  // MARK: - Revocation

  /// What the operator revokes.
  package enum Revocation: Sendable {
    /// The booking is also cancelled.
    case booking(String)
    /// The device never gets access again.
    case device(Thumbprint)
    /// The account, by its id. Its bookings are cancelled, and the rider is told or is not.
    case account(String, isTold: Bool)
  }

  /// - Returns: the number of tokens. Vehicles are to be told, and what was revoked stays so if this server ends.
  package func revoke(_ revocation: Revocation) async throws -> Int {
    let now = clock()
    let count: Int
    let about: Logger.Metadata
    switch revocation {
    case .device(let device):
      about = ["device": "\(device)"]
      // `stepctl provision token` may have given it something.
      await agreeWithLedger()
      count = try await store.write { transaction in
        try transaction.reserve(AccessTable.lock)
        try AccessTable.revokeDevice(device.description, at: now, in: transaction)
        let given = try TokenTable.given(to: device.description, at: now, in: transaction)
        return try TokenTable.withdraw(given, at: now, in: transaction)
      }
    case .booking(let id):
      about = ["booking": "\(id)", "vehicle": "\(try await booking(id, of: nil).vehicle.id)"]
      logger.notice("a booking was cancelled by the operator", metadata: about)
      count = try await cancelAll(.booking(id), lock: id, now: now)
    case .account(let id, let isTold):
      about = ["account": "\(id)"]
      count = try await cancelAll(.account(id), tells: isTold, lock: id, now: now)
    }
    await noteWithdrawn(count, about)
    return count
  }

  /// Whether a device is known: it has, or had, a login or a token.
  func isKnown(_ device: Thumbprint) async throws -> Bool {
    try await store.read { transaction in
      for table in ["session", "token", "access", "revoked_device"]
      where try !transaction.run("SELECT device FROM \(table) WHERE device = ? LIMIT 1", [.text(device.description)])
        .isEmpty
      { return true }
      return false
    }
  }

  func email(of account: String) async throws -> String? {
    try await store.read { try AccountTable.email(of: account, in: $0) }
  }

  private func cancelAll(
    _ group: BookingTable.Group, tells: Bool = true, lock: String, now: Int64
  ) async throws -> Int {
    try await store.write { transaction in
      // Waits for a booking that is being made, so that it is cancelled too.
      try transaction.reserve(lock)
      try BookingTable.cancel(group, tells: tells, at: now, in: transaction)
      return try TokenTable.withdraw(
        AccessTable.given(for: group, beyond: now, in: transaction), at: now, in: transaction)
    }
  }

  /// What follows a revocation, and cannot fail it.
  ///
  /// - Parameter about: whose access it was, for the log.
  func noteWithdrawn(_ count: Int, _ about: Logger.Metadata) async {
    guard count > 0 else { return }
    logger.notice("access revoked", metadata: ["tokens": "\(count)"].merging(about) { own, _ in own })
    await agreeWithLedger()
  }

  // MARK: - Export

  /// All data about an account, for its export.
  package func export(_ account: String) async throws -> [JSON.Member] {
    let now = clock()
    let (bookings, access, events) = try await store.read { transaction in
      (
        try BookingTable.all(of: account, in: transaction), try AccessTable.records(of: account, in: transaction),
        try EventTable.history(.init(account: account, limit: Self.longestHistory), in: transaction)
      )
    }
    return [
      JSON.Member("bookings", .array(bookings.map { BookingForm($0, at: now).json })),
      .init("access", .array(access.map(\.json))), .init("events", .array(events.map(\.forExport))),
    ]
  }
}
