package import Booking
import Domain
package import Geography
import Logging
import Operator
import Store

extension FleetService {
  /// Since when vehicles wait for a notice, by their ids: Unix time.
  package func untold() async throws -> [String: Int64] { try await store.read { try NoticeTable.waiting(in: $0) } }

  /// The accounts whose vehicles are in use, by the vehicles' ids. Where a rider stops is nobody else's business.
  ///
  /// - Returns: with them, when the next of them is not in use any more, Unix time.
  func riders() async throws -> (accounts: [String: String], nextEnd: Int64?) {
    let now = clock()
    return try await store.read { try BookingTable.riders(at: now, in: $0) }
  }

  /// - Returns: the vehicles by name, with their bookings; without removed vehicles.
  package func vehicles() async throws -> [(vehicle: FleetVehicle, bookings: [Booking])] {
    let now = clock()
    let vehicles = try await known.all()
    let bookings = try await store.read { try BookingTable.openByVehicle(at: now, in: $0) }
    return vehicles.map { ($0, bookings[$0.id] ?? []) }
  }

  /// The vehicles in service as they are now.
  ///
  /// - Parameter interval: for which it is to be said whether they are free; nil for none.
  func view(for interval: Interval?) async throws -> FleetView {
    let now = clock()
    let vehicles = try await known.all().filter { $0.service == .inService }
    let (bookings, nextBegin, riders) = try await store.read { transaction in
      let riders = try BookingTable.riders(at: now, in: transaction)
      guard interval != nil else {
        let (bookings, next) = try BookingTable.present(at: now, in: transaction)
        return (bookings, next, riders)
      }
      return (try BookingTable.openByVehicle(at: now, in: transaction), Int64?.none, riders)
    }
    return FleetView(
      vehicles.map { ($0, bookings[$0.id] ?? []) }, interval: interval,
      nextChange: [nextBegin, riders.nextEnd].compactMap(\.self).min(), riders: riders.accounts, at: now)
  }

  /// The view that those share who watch the fleet.
  func sharedView() async throws -> FleetView {
    try await shared.view(round: changes.round, at: clock()) { [self] in try await view(for: nil) }
  }

  /// - Returns: the vehicle, and its next booking or present one.
  func vehicle(_ id: String) async throws -> (vehicle: FleetVehicle, bookings: [Booking]) {
    let now = clock()
    guard let vehicle = try await known.all().first(where: { $0.id == id }) else { throw FleetRefusal.noSuchVehicle }
    return (vehicle, try await store.read { try BookingTable.open(of: id, endingAfter: now, limit: 1, in: $0) })
  }

  /// Finds a vehicle by name or id.
  package func named(_ name: String) async throws -> (vehicle: FleetVehicle, bookings: [Booking]) {
    let now = clock()
    return try await store.read { transaction in
      let vehicle = try VehicleTable.find(named: name, in: transaction)
      return (vehicle, try BookingTable.open(of: vehicle.id, endingAfter: now, in: transaction))
    }
  }

  /// Takes a vehicle out of service, or returns it. Bookings stay. Out of service, no access is issued, and issued
  /// access is revoked. With the vehicle, the access of bookings that are not over comes back.
  package func setService(_ service: Service, of name: String) async throws {
    let now = clock()
    let vehicle = try await named(name).vehicle
    let change = vehicle.changing(to: service)
    let (withdrawn, restored) = try await store.write { transaction -> (Int, Int) in
      // A booking that is being made is there before, or sees the change.
      try transaction.reserve(vehicle.id)
      try transaction.reserve(AccessTable.lock)
      var withdrawn = 0
      if let change {
        // Another command may have removed the vehicle since it was found.
        guard try VehicleTable.update(vehicle.id, by: change, in: transaction) else { throw FleetRefusal.noSuchVehicle }
        if service == .removed { try BookingTable.cancel(.vehicle(vehicle.id), at: now, in: transaction) }
        try VehicleTable.note(change.event, of: vehicle.id, at: now, in: transaction)
        try FleetChange.fleet.announce(in: transaction)
        if change.withdrawsAccess {
          let given = try AccessTable.given(for: .vehicle(vehicle.id), beyond: now, in: transaction)
          withdrawn = try TokenTable.withdraw(given, at: now, in: transaction)
        }
      }
      // What was revoked before the suspension stays so.
      guard service == .inService, let time = try VehicleTable.suspended(vehicle.id, in: transaction) else {
        return (withdrawn, 0)
      }
      let tokens = try AccessTable.restorable(of: vehicle.id, since: time, at: now, in: transaction)
      try TokenTable.restore(tokens, of: vehicle.id, at: now, in: transaction)
      return (withdrawn, tokens.count)
    }
    known.forget()
    if let change {
      logger.notice(
        "a vehicle's service was changed",
        metadata: ["vehicle": "\(vehicle.id)", "name": "\(vehicle.name)", "service": "\(change.service.rawValue)"])
    }
    await noteWithdrawn(withdrawn, ["vehicle": "\(vehicle.id)"])
    if service == .removed { await agreeOnVehicles() }
    guard restored > 0 else { return }
    logger.notice("access given back", metadata: ["tokens": "\(restored)", "vehicle": "\(vehicle.id)"])
    await agreeWithLedger()
  }

  /// Sets a vehicle's present place; nil if it is no longer known.
  package func setPlace(_ position: Coordinate?, of name: String) async throws {
    let now = clock()
    let vehicle = try await named(name).vehicle
    try await store.write { transaction in
      try VehicleTable.place(vehicle.id, at: position, since: now, in: transaction)
      try FleetChange.fleet.announce(in: transaction)
    }
    known.forget()
  }

  /// New notices for every vehicle, because the broker may have lost what it kept. Their numbers are above those that
  /// the operator has given.
  package func publishToAll() async throws {
    let now = clock()
    var last: Int64 = 0
    // Notices cannot be written then either. What else the server does goes on.
    do { last = try await issuer.lastNumber() } catch {
      logger.error("the number of the operator's last notice is unknown", metadata: ["error": "\(error)"])
    }
    try await store.write { [last] transaction in
      try NoticeTable.wantAll(at: now, in: transaction)
      try NoticeTable.raise(to: last, in: transaction)
    }
  }

  // MARK: - Vehicles that join

  /// Registers a vehicle that will join with the code, or adopts one that `stepctl provision vehicle --operator` has
  /// made.
  ///
  /// - Returns: the code; nil if the vehicle exists already.
  package func addVehicle(_ name: String) async throws -> String? {
    try Invitation.checkName(name)
    let now = clock()
    if let made = try await issuer.record(in: name) {
      // A vehicle that was changed by hand is taken in again.
      if try await !update(made, folder: name) { try await insert(made, folder: name, now: now, code: nil) }
      return nil
    }
    var generator = SystemRandomNumberGenerator()
    let code = Invitation.newCode(using: &generator)
    try await store.write { transaction in
      let others = try InvitationTable.all(at: now, in: transaction).map(\.name)
      let isAnothers = others.contains { $0 != name && $0.lowercased() == name.lowercased() }
      guard try !isAnothers && !VehicleTable.isTaken(name, in: transaction) else { throw FleetRefusal.nameTaken }
      try InvitationTable.replace(
        Invitation(to: name, now: now), code: digest(code.utf8), at: now, in: transaction)
    }
    return code
  }

  /// - Returns: false if the vehicle is not the fleet's, has another folder, or has not changed.
  private func update(_ record: VehicleRecord, folder: String) async throws -> Bool {
    guard !record.topics.areAnothers else { throw FleetRefusal.topicTaken }
    do {
      let isKnown = try await store.write { transaction in
        let id = record.vehicle.uuid.description
        guard try VehicleTable.folder(of: id, in: transaction) == folder,
          try VehicleTable.record(of: id, in: transaction) != record
        else { return false }
        try VehicleTable.complete(record, in: transaction)
        try FleetChange.fleet.announce(in: transaction)
        return true
      }
      if isKnown { known.forget() }
      return isKnown
    } catch StoreError.constraint {
      throw FleetRefusal.topicTaken
    }
  }

  /// - Parameter code: the digest of the invitation's code, which is used up; nil for none.
  private func insert(_ record: VehicleRecord, folder: String, now: Int64, code: String?) async throws {
    do {
      try await store.write { transaction in
        // Of two vehicles that bring a code at once, one joins.
        if let code {
          guard try InvitationTable.spend(code, at: now, in: transaction) else { throw FleetRefusal.badCode }
        }
        guard !record.topics.areAnothers,
          try !VehicleTable.isTaken(record.topic, byOtherThan: record.vehicle.uuid, in: transaction)
        else {
          throw FleetRefusal.topicTaken
        }
        try VehicleTable.insert(record, folder: folder, at: now, in: transaction)
        try VehicleTable.note(.providerDropOff, of: record.vehicle.uuid.description, at: now, in: transaction)
        // Its first notice has the key to which it encrypts what it reports.
        try NoticeTable.want([record.vehicle.uuid.description], at: now, in: transaction)
        try FleetChange.fleet.announce(in: transaction)
      }
      known.forget()
    } catch StoreError.constraint {
      throw FleetRefusal.vehicleTaken
    }
  }

  /// The vehicle that has not joined yet, and that is meant.
  func invitation(named name: String) async throws -> Invitation? {
    let all = try await invitations()
    if let exact = all.first(where: { $0.name == name }) { return exact }
    let meant = all.filter { Vehicle.isMeant($0.name, by: name) }
    return meant.count == 1 ? meant[0] : nil
  }

  /// Lets a vehicle that has not joined yet not join any more.
  func withdraw(_ invitation: Invitation) async throws {
    try await store.write { _ = try InvitationTable.remove(named: invitation.name, in: $0) }
    logger.notice("a code for joining was withdrawn", metadata: ["vehicle": "\(invitation.name)"])
  }

  /// The vehicles that have not joined yet.
  package func invitations() async throws -> [Invitation] {
    let now = clock()
    return try await store.read { try InvitationTable.all(at: now, in: $0) }
  }

  /// - Returns: the vehicle's name, and what the operator gives it.
  func enrol(_ enrolment: Enrolment) async throws -> (name: String, admission: Admission) {
    let now = clock()
    let code = digest(Invitation.code(meantBy: enrolment.code).utf8)
    guard let invitation = try await store.read({ try InvitationTable.find(code: code, at: now, in: $0) }) else {
      // Strangers can cause it: it is no warning.
      logger.info("a vehicle came with a code that does not count", metadata: ["vehicle": "\(enrolment.id)"])
      throw FleetRefusal.badCode
    }
    let vehicle = try invitation.vehicle(named: enrolment.name, id: enrolment.id, steps: enrolment.steps)
    let (admission, record): (Admission, VehicleRecord)
    do {
      admission = try await issuer.admit(vehicle, enrolment, now: now)
      record = VehicleRecord(
        vehicle: vehicle, topic: enrolment.topic, encryptionKey: enrolment.encryptionKey,
        signingKey: enrolment.statementKey, certificate: Array(admission.certificate.utf8))
      guard try await !folders.hasByHand(record) else { throw FleetRefusal.topicTaken }
    } catch { throw refusal(of: error, for: enrolment.id) }
    // Who comes second with the code does not get the certificate.
    try await insert(record, folder: enrolment.id.description, now: now, code: code)
    // A broker with lists lets nobody in who is not there. All else follows.
    if issuer.listed.contains(record) { await agreeOnVehicles() }
    logger.notice("vehicle joined", metadata: ["vehicle": "\(enrolment.id)"])
    return (invitation.name, admission)
  }

  private func refusal(of error: any Error, for vehicle: UUID) -> any Error {
    guard let error = error as? IssuerError else { return error }
    if case .request(let reason) = error { return FleetRefusal.badApplication(reason) }
    // This line is for the operator, because it names files.
    logger.error("a vehicle has not joined", metadata: ["vehicle": "\(vehicle)", "error": "\(error)"])
    return OperatorFailure.admission
  }
}
