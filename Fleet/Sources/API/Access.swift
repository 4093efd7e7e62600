package import Access
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
    let place = try await takePlace(booking, for: caller, until: validity.upperBound, now: now)
    let token: IssuedToken
    do {
      token = try await desk.issue(
        Grant(
          folder: booking.vehicle.folder, subject: booking.subject, steps: booking.steps, validity: validity,
          request: request), now: now)
    } catch {
      try await store.write { try AccessTable.giveUp(place, in: $0) }
      throw refusal(of: error, for: id)
    }
    let refusal = try await store.write { transaction -> FleetRefusal? in
      try transaction.reserve(AccessTable.lock)
      let refusal = try Self.confirm(booking, device: caller.device, in: transaction)
      try AccessTable.give(token, at: place, isGiven: refusal == nil, in: transaction)
      if refusal == nil, !booking.booking.hasAccess {
        try VehicleTable.note(
          .tripStart, of: booking.vehicle.id, id, at: max(now, validity.lowerBound), in: transaction)
      }
      return refusal
    }
    if let refusal {
      try await withdraw()
      throw refusal
    }
    return token.text
  }

  /// Reserves a place for a token that is about to be made. Of simultaneous requests, each sees the earlier ones.
  ///
  /// - Returns: the placeholder for the token's jti.
  private func takePlace(
    _ booking: FleetBooking, for caller: Caller, until end: Int64, now: Int64
  ) async throws -> String {
    let place = "asked \(UUID.random())"
    try await store.write { transaction in
      try transaction.reserve(caller.account)
      try AccessRules.checkRequest(
        isActive: try AccountTable.isActive(caller.account, in: transaction),
        isRevoked: try AccessTable.isRevoked(caller.device, in: transaction),
        ends: try AccessTable.ends(of: caller.account, at: booking.vehicle.id, after: now, in: transaction))
      try AccessTable.ask(place, for: booking.id, device: caller.device, until: end, in: transaction)
    }
    return place
  }

  /// Records that a booking has access.
  ///
  /// - Returns: why it may not have access: something changed meanwhile, and that transaction did not see the new
  ///   token.
  private static func confirm(
    _ booking: FleetBooking, device: String, in transaction: borrowing Transaction
  ) throws(StoreError) -> FleetRefusal? {
    let service = try VehicleTable.find(id: booking.vehicle.id, in: transaction)?.service ?? .removed
    let isRevoked = try AccessTable.isRevoked(device, in: transaction)
    // A booking whose access is refused does not become one that has access.
    let isUnchanged =
      service == .inService && !isRevoked
      ? try BookingTable.giveAccess(booking.id, version: booking.version, in: transaction) : false
    do throws(FleetRefusal) {
      try AccessRules.checkGift(service: service, isRevoked: isRevoked, isUnchanged: isUnchanged)
      return nil
    } catch { return error }
  }

  private func refusal(of error: any Error, for booking: String) -> any Error {
    guard let error = error as? DeskError else { return error }
    switch error {
    case .request(let reason): return FleetRefusal.badRequest(reason)
    case .tooMany(let next): return FleetRefusal.tooMuchAccess(until: next)
    case .deviceRevoked: return FleetRefusal.deviceRevoked
    case .taken, .failed:
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
    /// The account, by its id. Its bookings are cancelled.
    case account(String)
  }

  /// - Returns: the number of tokens.
  package func revoke(_ revocation: Revocation) async throws -> Int {
    let now = clock()
    switch revocation {
    case .device(let device):
      try await store.write { transaction in
        try transaction.reserve(AccessTable.lock)
        try AccessTable.revokeDevice(device.description, at: now, in: transaction)
        try AccessTable.mark(.device(device.description), beyond: now, in: transaction)
      }
      return try await withdraw()
    case .booking(let id):
      _ = try await booking(id, of: nil)
      return try await cancelAll(.booking(id), lock: id, now: now)
    case .account(let id):
      return try await cancelAll(.account(id), lock: id, now: now)
    }
  }

  private func cancelAll(_ group: BookingTable.Group, lock: String, now: Int64) async throws -> Int {
    let count = try await store.write { transaction in
      // Waits for a booking that is being made, so that it is cancelled too.
      try transaction.reserve(lock)
      try BookingTable.cancel(group, at: now, in: transaction)
      try AccessTable.mark(.bookings(group), beyond: now, in: transaction)
      return try AccessTable.countMarked(group, at: now, in: transaction)
    }
    try await withdraw()
    return Int(count)
  }

  /// Revokes all marked tokens. When it returns, the operator's ledger has the revocations, and vehicles are being
  /// told. If it throws, the marks stay, and the next request or the housekeeping repeats it.
  ///
  /// - Returns: the number of tokens.
  @discardableResult
  package func withdraw() async throws -> Int {
    let now = clock()
    let (tokens, devices) = try await store.read { transaction in
      (try AccessTable.marked(at: now, in: transaction), try AccessTable.devicesToRevoke(in: transaction))
    }
    guard !tokens.isEmpty || !devices.isEmpty else { return 0 }
    var vehicles = Set(tokens.map(\.vehicle))
    // The ledger also knows tokens that `stepctl provision token` gave to the device; the database does not.
    if !devices.isEmpty { vehicles.formUnion(try await known.all().map(\.id)) }
    let count = try await desk.revoke(
      devices.compactMap { Thumbprint($0).map(Notice.Subject.device) } + tokens.map { .token($0.jti) },
      of: Set(vehicles.compactMap { UUID($0) }), now: now)
    try await store.write { transaction in
      try AccessTable.noteWithdrawn(tokens: tokens.map(\.jti), devices: devices, in: transaction)
    }
    return count
  }

  // MARK: - Export

  /// All data about an account, for its export.
  package func export(_ account: String) async throws -> [JSON.Member] {
    let now = clock()
    let (bookings, access) = try await store.read { transaction in
      (
        try BookingTable.all(of: account, in: transaction), try AccessTable.records(of: account, in: transaction)
      )
    }
    return [
      JSON.Member("bookings", .array(bookings.map { BookingForm($0, at: now).json })),
      .init("access", .array(access.map(\.json))),
    ]
  }
}
