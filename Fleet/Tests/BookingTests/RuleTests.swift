import Booking
import Domain
import Geography
import Testing

private let now: Int64 = 1_800_000_000
private let hour: Int64 = 3600
private let left = StepID("left")!
private let right = StepID("right")!

private func vehicle(_ service: Service = .inService) -> FleetVehicle {
  FleetVehicle(
    id: "id", name: "car", folder: "car",
    steps: [Step(id: left, side: .left, major: 1), Step(id: right, side: .right, major: 2)], service: service)
}

private func account(isActive: Bool = true, bookings: Int64 = 0, limit: Int64 = 3) -> BookingRequest.Account {
  BookingRequest.Account(isActive: isActive, bookings: bookings, limit: limit)
}

private func booking(
  _ service: Service = .inService, hasAccess: Bool = false, written: BookingState = .booked, version: Int64 = 4
) -> FleetBooking {
  FleetBooking(
    id: "b", vehicle: vehicle(service), account: "ada", subject: "b-1", steps: [left], version: version,
    booking: Booking(Interval(now - hour, now + hour), written: written, hasAccess: hasAccess))
}

/// What something is refused with.
private func refusal(_ work: () throws(FleetRefusal) -> Void) -> FleetRefusal? {
  do {
    try work()
    return nil
  } catch { return error }
}

@Suite struct BookingRequestTests {
  private func request(steps: [StepID]? = nil, length: Int64 = hour) -> BookingRequest {
    BookingRequest(vehicle: "id", Interval(now, now + length), steps: steps)
  }

  @Test func `an account books all steps, or those that it names, in the vehicle's order`() throws {
    let all = try request().accepted(for: account(), vehicle: vehicle(), now: now)
    #expect(all.interval == Interval(now, now + hour) && all.steps == [left, right])
    #expect(try request(steps: [right]).accepted(for: account(), vehicle: vehicle(), now: now).steps == [right])
    #expect(
      try request(steps: [right, left]).accepted(for: account(), vehicle: vehicle(), now: now).steps == [left, right])
  }

  @Test func `what cannot be booked is refused, the request's own mistakes first`() {
    func refused(
      _ request: BookingRequest, _ account: BookingRequest.Account = account(), _ vehicle: FleetVehicle? = vehicle()
    ) -> FleetRefusal? {
      refusal { () throws(FleetRefusal) in _ = try request.accepted(for: account, vehicle: vehicle, now: now) }
    }
    #expect(refused(request(length: 1), account(isActive: false), nil) == .tooShort)
    #expect(refused(request(), account(isActive: false), nil) == .noSuchVehicle)
    #expect(refused(request(), account(), vehicle(.removed)) == .noSuchVehicle)
    #expect(refused(request(), account(isActive: false), vehicle(.suspended)) == .outOfService)
    #expect(refused(request(steps: [left, StepID("roof")!]), account(isActive: false)) == .noSuchStep(StepID("roof")!))
    #expect(refused(request(), account(isActive: false, bookings: 3)) == .suspended)
    #expect(refused(request(), account(bookings: 3)) == .tooManyBookings(3))
    #expect(refused(request(), account(bookings: 2)) == nil)
  }
}

@Suite struct BookingChangeTests {
  private func changed(_ booking: FleetBooking, _ change: BookingChange, isOperator: Bool = false) throws(FleetRefusal)
    -> FleetBooking.Changed?
  {
    try booking.changed(by: change, isOperator: isOperator, now: now)
  }

  private func refused(_ booking: FleetBooking, _ change: BookingChange) -> FleetRefusal? {
    refusal { () throws(FleetRefusal) in _ = try changed(booking, change) }
  }

  @Test func `an end is moved by whoever has read the booking`() throws {
    let longer = try changed(booking(), .extend(to: now + 2 * hour, ifVersion: .versions([9, 4])))
    #expect(longer?.booking.interval == Interval(now - hour, now + 2 * hour) && longer?.event == nil)
    #expect(try changed(booking(), .extend(to: now + 2 * hour, ifVersion: .any)) == longer)
    #expect(refused(booking(), .extend(to: now + 2 * hour, ifVersion: .versions([3]))) == .changed)
    #expect(refused(booking(), .extend(to: now + 2 * hour, ifVersion: .versions([]))) == .changed)
    // An end that cannot be is said first: it stays wrong whoever has read what.
    #expect(refused(booking(), .extend(to: now - 1, ifVersion: .versions([]))) == .past)
  }

  @Test func `what changes nothing has no effect`() throws {
    #expect(try changed(booking(), .extend(to: now + hour, ifVersion: .any)) == nil)
    #expect(try changed(booking(written: .cancelled), .cancel) == nil)
    #expect(try changed(booking(hasAccess: true, written: .ended), .end) == nil)
  }

  @Test func `a booking of a vehicle out of service becomes shorter, and no longer`() throws {
    #expect(refused(booking(.suspended), .extend(to: now + 2 * hour, ifVersion: .versions([]))) == .outOfService)
    let shorter = try changed(booking(.suspended), .extend(to: now + 60, ifVersion: .any))
    #expect(shorter?.booking.interval.end == now + 60)
    #expect(try changed(booking(.suspended), .cancel)?.booking.written == .cancelled)
  }

  @Test func `who cancels is noted, and the end of a ride`() throws {
    #expect(try changed(booking(), .cancel)?.event == .customerCancellation)
    #expect(try changed(booking(), .cancel, isOperator: true)?.event == .providerCancellation)
    #expect(try changed(booking(hasAccess: true), .end)?.event == .tripEnd)
    #expect(refused(booking(hasAccess: true), .cancel) == .active)
    #expect(refused(booking(), .end) == .notBegun)
  }

  @Test func `access lasts as long as the booking, and no longer when it is over`() {
    #expect(booking().booking.accessLimit(at: now) == now + hour + 900)
    #expect(booking(written: .cancelled).booking.accessLimit(at: now) == now)
    #expect(booking(hasAccess: true, written: .ended).booking.accessLimit(at: now) == now)
  }

  @Test func `another rider's booking looks like a missing one`() {
    #expect(refusal { () throws(FleetRefusal) in try booking().checkOwner("bob") } == .noSuchBooking)
    #expect(refusal { () throws(FleetRefusal) in try booking().checkOwner("ada") } == nil)
    #expect(refusal { () throws(FleetRefusal) in try booking().checkOwner(nil) } == nil)
  }
}

@Suite struct AccessRuleTests {
  private func request(
    isActive: Bool = true, isRevoked: Bool = false, ends: [Int64] = [], device: [Int64] = [], vehicle: [Int64] = []
  ) -> FleetRefusal? {
    refusal { () throws(FleetRefusal) in
      try AccessRules.checkRequest(
        isActive: isActive, isRevoked: isRevoked, ends: .init(account: ends, device: device, vehicle: vehicle))
    }
  }

  @Test func `a device asks for access of an account that is active`() {
    #expect(request() == nil)
    #expect(request(isActive: false, isRevoked: true) == .suspended)
    #expect(request(isRevoked: true) == .deviceRevoked)
  }

  @Test func `an account has so many tokens, and more when the first of them has ended`() {
    #expect(request(ends: Array(1...7)) == nil)
    #expect(request(ends: [8, 3, 4, 5, 6, 7, 2, 9]) == .tooMuchAccess(until: 2))
    // Of nine, two have to end.
    #expect(request(ends: Array(11...19)) == .tooMuchAccess(until: 12))
  }

  @Test func `one notice can revoke all tokens of a device, and of a vehicle`() {
    #expect(request(device: Array(1...15), vehicle: Array(1...63)) == nil)
    #expect(request(device: Array(1...16)) == .tooMuchAccess(until: 1))
    #expect(request(vehicle: Array(1...64)) == .tooMuchAccess(until: 1))
  }

  private func gift(_ service: Service = .inService, isRevoked: Bool = false, isUnchanged: Bool = true) -> FleetRefusal?
  {
    refusal { () throws(FleetRefusal) in
      try AccessRules.checkGift(service: service, isRevoked: isRevoked, isUnchanged: isUnchanged)
    }
  }

  @Test func `a token is given away if nothing has changed while it was made`() {
    #expect(gift() == nil)
    #expect(gift(.suspended, isRevoked: true, isUnchanged: false) == .outOfService)
    #expect(gift(.removed) == .outOfService)
    #expect(gift(isRevoked: true, isUnchanged: false) == .deviceRevoked)
    #expect(gift(isUnchanged: false) == .changedMeanwhile)
  }

  @Test func `access is for the device that asks, for the booking's time`() throws {
    #expect(try booking().validity(of: "a", askedBy: "a", at: now) == now - hour..<now + hour + 900)
    #expect(throws: FleetRefusal.otherDevice) { try booking().validity(of: "a", askedBy: "b", at: now) }
    #expect(throws: FleetRefusal.outOfService) { try booking(.suspended).validity(of: "a", askedBy: "b", at: now) }
    #expect(throws: FleetRefusal.over) { try booking(written: .cancelled).validity(of: "a", askedBy: "a", at: now) }
  }

  @Test func `a token is overdue when nobody may open the vehicle with it, or not for so long`() {
    func access(
      _ expires: Int64 = now + hour + 900, written: BookingState = .booked, service: Service = .inService,
      isAccountActive: Bool = true
    ) -> GivenAccess {
      GivenAccess(
        jti: "t", expires: expires, booking: booking(written: written).booking, service: service,
        isAccountActive: isAccountActive)
    }
    #expect(!access().isOverdue)
    #expect(!access(written: .ended).isOverdue)
    #expect(access(written: .cancelled).isOverdue)
    #expect(access(service: .suspended).isOverdue && access(service: .removed).isOverdue)
    #expect(access(isAccountActive: false).isOverdue)
    #expect(access(now + hour + 901).isOverdue)
  }
}

@Suite struct FleetVehicleTests {
  @Test func `a vehicle's state is its present booking's`() {
    let present = Booking(Interval(now - 10, now + 10), hasAccess: true)
    let later = Booking(Interval(now + 10, now + 20))
    #expect(vehicle().state([later, present], at: now) == .onTrip)
    #expect(vehicle().state([later], at: now) == .available)
    #expect(vehicle().state([later, present], at: now + 10) == .reserved)
    #expect(vehicle(.suspended).state([present], at: now) == .nonOperational)
  }

  @Test func `a setting that a vehicle has is no change`() {
    for service in Service.allCases { #expect(vehicle(service).changing(to: service) == nil) }
  }

  @Test func `a vehicle that leaves service loses its access, and its name when it is removed`() {
    let suspended = vehicle().changing(to: .suspended)
    #expect(suspended?.event == .maintenance && suspended?.withdrawsAccess == true && suspended?.name == nil)
    let back = vehicle(.suspended).changing(to: .inService)
    #expect(back?.event == .maintenanceEnd && back?.withdrawsAccess == false && back?.name == nil)
    let removed = vehicle().changing(to: .removed)
    #expect(removed?.event == .decommissioned && removed?.withdrawsAccess == true && removed?.name == "car (id)")
  }

  @Test func `the end of a booking's time is the end of a trip, or of a reservation`() {
    #expect(FleetEvent(timeEndedOf: booking(hasAccess: true).booking) == .tripEnd)
    #expect(FleetEvent(timeEndedOf: booking().booking) == .reservationStop)
  }
}

@Suite struct InvitationTests {
  private let invitation = Invitation(to: "car", now: now)

  @Test func `a code is meant without its hyphens, too`() {
    for typed in ["26ZN-29DK-WVPY", "26zn29dkwvpy", "26ZN 29DK wvpy", "-26ZN29DK--WVPY"] {
      #expect(Invitation.code(meantBy: typed) == "26ZN-29DK-WVPY", "\(typed)")
    }
    for other in ["", "26ZN-29DK-WVP", "26ZN-29DK-WVPYX"] { #expect(Invitation.code(meantBy: other) == other) }
  }

  @Test func `a code lasts for a day`() {
    #expect(invitation.expires == now + 86_400)
  }

  @Test func `a code has 60 bits, and no letters that look alike`() {
    var generator = SeededGenerator(seed: 1)
    let codes = (0..<100).map { _ in Invitation.newCode(using: &generator) }
    #expect(Set(codes).count == 100)
    for code in codes {
      #expect(code.wholeMatch(of: /([A-HJ-NP-Z2-9]{4}-){2}[A-HJ-NP-Z2-9]{4}/) != nil, "\(code)")
    }
  }

  @Test func `a vehicle's name is text`() {
    #expect(refusal { () throws(FleetRefusal) in try Invitation.checkName("Rolling Chassis") } == nil)
    #expect(refusal { () throws(FleetRefusal) in try Invitation.checkName("a\nb") } == .badName)
    #expect(refusal { () throws(FleetRefusal) in try Invitation.checkName("") } == .badName)
  }

  @Test func `a vehicle joins with its own name and with steps of its own`() throws {
    let id = UUID.random()
    let steps = vehicle().steps
    #expect(try invitation.vehicle(named: nil, id: id, steps: steps).name == "car")
    #expect(try invitation.vehicle(named: "car", id: id, steps: steps).uuid == id)
    #expect(throws: FleetRefusal.otherName("car")) { try invitation.vehicle(named: "van", id: id, steps: steps) }
    #expect(throws: FleetRefusal.sameSteps) { try invitation.vehicle(named: nil, id: id, steps: [steps[0], steps[0]]) }
  }
}

@Suite struct RefusalTests {
  private static let all: [FleetRefusal] = [
    .backwards, .past, .tooShort, .tooLong, .tooFar, .taken(next: []), .noSuchBooking, .over, .active, .notBegun,
    .changed, .tooManyBookings(20), .keyReused, .noSuchVehicle, .outOfService, .noSuchStep(left), .badName, .nameTaken,
    .vehicleTaken, .topicTaken, .badCode, .otherName("car"), .sameSteps, .badApplication("damaged"), .suspended,
    .deviceRevoked, .otherDevice, .tooEarly(from: 0), .tooMuchAccess(until: 0), .changedMeanwhile,
    .badRequest("damaged"),
  ]

  @Test(arguments: all)
  func `a refusal has a word for programs and a line for people`(_ refusal: FleetRefusal) {
    #expect(refusal.code.wholeMatch(of: /[a-z_]+/) != nil)
    #expect(!refusal.description.isEmpty && !refusal.description.hasSuffix("."))
    #expect(!refusal.description.contains("\n"))
  }

  @Test func `a line has what it is about`() {
    #expect(
      FleetRefusal.tooManyBookings(20).description
        == "the account has 20 bookings that are not over, and cannot have more")
    #expect(FleetRefusal.otherName("car").description == "the code is for the vehicle \"car\"")
    #expect(
      FleetRefusal.tooMuchAccess(until: 1_803_893_400).description
        == "there is too much access to the vehicle that has not ended; ask again at 2027-03-01T09:30:00Z")
  }
}
