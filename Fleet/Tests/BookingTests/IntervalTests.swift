import Booking
import Testing

private let now: Int64 = 1_800_000_000
private let hour: Int64 = 3600

@Suite struct IntervalTests {
  @Test func `two bookings that touch do not overlap`() {
    #expect(!Interval(0, 10).overlaps(Interval(10, 20)))
    #expect(Interval(0, 11).overlaps(Interval(10, 20)))
    #expect(Interval(0, 30).overlaps(Interval(10, 20)))
  }

  @Test func `what begins just now begins now`() throws {
    #expect(try BookingRules.interval(Interval(now - 300, now + hour), now: now) == Interval(now, now + hour))
    #expect(try BookingRules.interval(Interval(now + 5, now + hour), now: now) == Interval(now + 5, now + hour))
  }

  @Test(arguments: [
    (Interval(now + hour, now), FleetRefusal.backwards),
    (Interval(now - 301, now + hour), .past),
    (Interval(now - 200, now - 100), .past),
    (Interval(now + hour, now + hour), .tooShort),
    (Interval(now, now + 59), .tooShort),
    // What is left of it is too short.
    (Interval(now - 30, now + 30), .tooShort),
    (Interval(now, now + 400 * 86_400), .tooLong),
    (Interval(now + 401 * 86_400, now + 401 * 86_400 + hour), .tooFar),
  ])
  func `an interval that cannot be booked is refused`(_ interval: Interval, _ problem: FleetRefusal) {
    #expect(throws: problem) { try BookingRules.interval(interval, now: now) }
  }

  @Test func `the next free times are found between and after other bookings`() {
    let taken = [Interval(10, 20), Interval(24, 30), Interval(0, 4), Interval(36, 40)]
    #expect(BookingRules.next(Interval(2, 7), among: taken) == [Interval(4, 9), Interval(30, 35), Interval(40, 45)])
    #expect(BookingRules.next(Interval(50, 55), among: taken, count: 2) == [Interval(50, 55), Interval(55, 60)])
  }

  @Test func `what is proposed is free, of the same length, in order, and nothing earlier is`() {
    var generator = SeededGenerator(seed: 7)
    for _ in 0..<500 {
      let taken = (0..<Int.random(in: 0...12, using: &generator)).map { _ in
        let begin = Int64.random(in: 0..<200, using: &generator)
        return Interval(begin, begin + .random(in: 1...30, using: &generator))
      }
      let asked = Interval(50, 50 + .random(in: 1...25, using: &generator))
      let next = BookingRules.next(asked, among: taken)
      #expect(next.count == 3)
      var free = asked.begin
      for proposal in next {
        #expect(proposal.length == asked.length && !taken.contains(where: proposal.overlaps))
        for begin in free..<proposal.begin {
          #expect(taken.contains(where: Interval(begin, begin + asked.length).overlaps))
        }
        free = proposal.end
      }
    }
  }
}

/// SplitMix64.
struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64
  init(seed: UInt64) { state = seed }
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}

@Suite struct BookingTests {
  private let interval = Interval(now + hour, now + 3 * hour)

  @Test func `a booking becomes active where there is access, and expires where there is none`() {
    let unused = Booking(interval)
    #expect([now, now + hour, now + 3 * hour].map(unused.state) == [.booked, .booked, .expired])
    let used = Booking(interval, hasAccess: true)
    #expect(
      [now, now + hour, now + 3 * hour - 1, now + 3 * hour].map(used.state) == [.booked, .active, .active, .ended])
    #expect(Booking(interval, written: .cancelled, hasAccess: true).state(at: now + hour) == .cancelled)
  }

  @Test func `access lasts to fifteen minutes after the end, and for a day at the most`() throws {
    #expect(try Booking(interval).validity(at: now) == now + hour..<now + 3 * hour + 900)
    let long = Booking(Interval(now, now + 72 * hour))
    #expect(try long.validity(at: now) == now..<now + 24 * hour)
    #expect(try long.validity(at: now + 60 * hour) == now..<now + 72 * hour + 900)
    let tomorrow = Booking(Interval(now + 24 * hour, now + 26 * hour))
    #expect(throws: FleetRefusal.tooEarly(from: now + 1)) { try tomorrow.validity(at: now) }
    #expect(try tomorrow.validity(at: now + 1) == now + 24 * hour..<now + 24 * hour + 1)
    #expect(throws: FleetRefusal.over) { try Booking(interval).validity(at: now + 3 * hour) }
    #expect(throws: FleetRefusal.over) { try Booking(interval, written: .cancelled).validity(at: now) }
  }

  @Test func `an end can be moved while the booking is open`() throws {
    let booking = Booking(interval)
    #expect(try booking.extended(to: now + 5 * hour, now: now).interval == Interval(now + hour, now + 5 * hour))
    #expect(throws: FleetRefusal.backwards) { try booking.extended(to: now, now: now) }
    #expect(throws: FleetRefusal.past) { try booking.extended(to: now + 90 * 60, now: now + 2 * hour) }
    #expect(throws: FleetRefusal.tooShort) { try booking.extended(to: now + hour, now: now) }
    #expect(throws: FleetRefusal.tooLong) { try booking.extended(to: now + 400 * 86_400, now: now) }
    #expect(throws: FleetRefusal.over) { try booking.extended(to: now + 9 * hour, now: now + 3 * hour) }
  }

  @Test func `what is not in use is cancelled, what is in use is ended, and twice is once`() throws {
    let booking = Booking(interval)
    let cancelled = try booking.cancelled(now: now + 2 * hour)
    #expect(cancelled.state(at: now) == .cancelled)
    #expect(try cancelled.cancelled(now: now + 9 * hour) == cancelled)
    #expect(throws: FleetRefusal.notBegun) { try booking.ended(now: now) }
    #expect(throws: FleetRefusal.over) { try booking.cancelled(now: now + 3 * hour) }

    let active = Booking(interval, hasAccess: true)
    #expect(throws: FleetRefusal.active) { try active.cancelled(now: now + 2 * hour) }
    let ended = try active.ended(now: now + 2 * hour)
    #expect(ended.interval == Interval(now + hour, now + 2 * hour) && ended.state(at: now + 2 * hour) == .ended)
    #expect(try ended.ended(now: now + 9 * hour) == ended)
    #expect(try active.ended(now: now + hour).interval.length == 1)
    #expect(throws: FleetRefusal.over) { try cancelled.ended(now: now + 2 * hour) }
  }

  @Test func `a vehicle's state is in the words of MDS`() {
    #expect(VehicleState(.inService, present: nil).rawValue == "available")
    #expect(VehicleState(.inService, present: .booked).rawValue == "reserved")
    #expect(VehicleState(.inService, present: .active).rawValue == "on_trip")
    #expect(VehicleState(.suspended, present: .active).rawValue == "non_operational")
    #expect(VehicleState(.removed, present: nil).rawValue == "removed")
  }
}
