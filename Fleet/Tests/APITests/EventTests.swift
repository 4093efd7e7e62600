import Domain
import FleetTestSupport
import Logging
import Operator
import StepProtocol
import Store
import Synchronization
import Testing

@testable import API

/// A vehicle's controller: it signs events, and seals them for the operator.
private struct Controller {
  let vehicle: UUID
  let key = SigningKey()
  private(set) var last: EventPlace?

  init(_ vehicle: UUID) { self.vehicle = vehicle }

  /// - Parameter skipping: how many numbers before it were used for what could not be written.
  mutating func event(
    _ kind: VehicleEvent.Kind, skipping: Int64 = 0, after place: EventPlace?? = nil, token: String? = nil
  ) throws -> SignedEvent {
    let before = place ?? last
    let event = VehicleEvent(
      vehicle: vehicle, sequence: (before?.sequence ?? 0) + 1 + skipping, previous: before?.digest ?? .random(),
      .init(kind, time: 1, step: StepID("left"), position: .open, token: token))
    let signed = try SignedEvent(kept: Array(event.signed(by: key).utf8))
    last = signed.place
    return signed
  }
}

@Suite struct EventTests {
  private func take(_ bench: Bench, _ events: SignedEvent..., isLast: Bool = false) async throws -> [EventTable.Outcome]
  {
    let now = bench.now
    return try await bench.store.write { transaction in
      try events.map { try EventTable.take($0, isLast: isLast, at: now, in: transaction) }
    }
  }

  @Test(arguments: Engine.forRules)
  func `an event is kept once, and after the one before`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    var car = Controller(.random())
    let (first, second, third) = (try car.event(.started), try car.event(.began), try car.event(.ended))
    #expect(try await take(bench, second, third) == [.waits, .waits])
    #expect(try await take(bench, first, first, second, third, second) == [.kept([]), .known, .kept([]), .kept([]), .known])
    let name = car.vehicle.description
    #expect(try await bench.store.read { try EventTable.end(of: name, in: $0) } == third.place)
    let kept = { (place: EventPlace?) in
      try await bench.store.read { try EventTable.kept(after: place, of: name, upTo: 10, in: $0) }
    }
    #expect(try await kept(nil) == [first, second, third] && kept(first.place) == [second, third])
    #expect(try await kept(third.place) == [] && kept(EventPlace(9, .random())) == [])
  }

  @Test(arguments: Engine.forRules)
  func `what is wrong with a vehicle's events is kept with them`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    var car = Controller(.random())
    let first = try car.event(.started)
    let jumped = try car.event(.began, skipping: 2)
    #expect(try await take(bench, first, jumped) == [.kept([]), .kept([.unwritten(2...3)])])
    // Files that were put back, and somebody else with the key, look alike.
    let other = try car.event(.began, after: .some(first.place))
    #expect(try await take(bench, other) == [.kept([.wentBack(to: 1, from: 4)])])
    let lost = try car.event(.ended)
    let after = try car.event(.ended)
    #expect(try await take(bench, after) == [.waits])
    #expect(try await take(bench, after, isLast: true) == [.kept([.missing(3...3)])])
    // It comes late, and stands before what is kept.
    #expect(try await take(bench, lost, isLast: true) == [.kept([.wentBack(to: 2, from: 4)])])
    let new = try car.event(.started, after: .some(nil))
    #expect(try await take(bench, new) == [.kept([.beganAgain(after: 3)])])
  }

  @Test(arguments: Engine.forRules)
  func `the first event follows what commands by hand have fetched`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    var car = Controller(.random())
    let (by, next) = (try car.event(.started), try car.event(.began))
    let name = car.vehicle.description
    try await bench.store.write { try EventTable.setEnd(by.place, of: name, in: $0) }
    #expect(try await take(bench, by, next) == [.known, .kept([])])
  }

  @Test(arguments: Engine.forRules)
  func `events are shown with the booking and the rider whose they are`(_ engine: Engine) async throws {
    let (bench, phone) = (try await Bench(engine), TestDevice())
    let booking = try await bench.ride(phone)
    let id = try await bench.id(of: "car")
    var car = Controller(UUID(id)!)
    _ = try await take(
      bench, car.event(.started), car.event(.began, token: "token 1"), car.event(.notice), car.event(.ended))
    let shown = try await bench.service.history(.init())
    #expect(shown.map { $0["kind"]?.string } == ["started", "began", "ended"])
    #expect(shown[1]["booking"]?.string == booking.id && shown[1]["vehicle"]?.string == "car")
    #expect(shown[1]["email"]?.string != nil && shown[0]["email"] == .null)
    for (query, count) in [
      (EventTable.Query(booking: String(booking.id.prefix(8))), 1), (.init(vehicle: "CAR"), 3), (.init(vehicle: "van"), 0),
      (.init(account: shown[1]["email"]?.string?.uppercased()), 1), (.init(since: bench.now + 1), 0), (.init(limit: 2), 2),
    ] {
      #expect(try await bench.service.history(query).count == count, "\(query)")
    }
  }
}
