import Booking
import Domain
import Encoding
import FleetTestSupport
import Store
import Synchronization
import Testing

@testable import API

@Suite struct MessageTests {
  /// What is sent now: kinds and addresses.
  private func sent(_ bench: Bench) async throws -> [String] {
    let messages = Mutex<[RiderMessage]>([])
    try await bench.service.sendMessages { message in messages.withLock { $0.append(message) } }
    return messages.withLock { $0.map { "\($0.kind.rawValue) \($0.email) \($0.booking?.vehicle.name ?? "-")" } }
  }

  @Test(arguments: Engine.forRules)
  func `a rider is told once what the operator has done`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let first = try await bench.book("car", 1, 2)
    #expect(try await sent(bench) == [])
    _ = try await bench.service.revoke(.booking(first.id))
    #expect(try await sent(bench) == ["cancelled ada@example.org car"])
    #expect(try await sent(bench) == [])
    // What the rider cancels, nobody tells the rider.
    let second = try await bench.book("car", 1, 2)
    _ = try await bench.service.change(second.id, of: "ada", .cancel)
    #expect(try await sent(bench) == [])
    try await bench.book("car", 1, 2)
    bench.wait(1)
    try await bench.book("van", 1, 2, by: "bob")
    try await bench.service.setService(.removed, of: "car")
    bench.wait(1)
    try await bench.run("UPDATE account SET state = 'suspended' WHERE id = 'bob'")
    _ = try await bench.service.revoke(.account("bob", isTold: true))
    bench.wait(1)
    try await bench.service.noteSuspension(of: "bob")
    let told = try await sent(bench)
    #expect(told.count == 2 && told[0].hasPrefix("vehicle_removed ada@example.org car ("))
    // Who is kept out is told that, and not each booking.
    #expect(told[1] == "suspended bob@example.org -")
    // Nor is somebody told who deletes the account.
    try await bench.run("UPDATE account SET state = 'active' WHERE id = 'bob'")
    try await bench.book("van", 1, 2, by: "bob")
    _ = try await bench.service.revoke(.account("bob", isTold: false))
    #expect(try await sent(bench) == [])
  }

  @Test(arguments: Engine.forRules)
  func `an account without an address is told nothing, and keeps nobody waiting`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    for number in 0..<3 {
      _ = try await bench.service.revoke(.booking(bench.book("car", 1, 2, by: number == 1 ? "bob" : "ada").id))
      bench.wait(1)
    }
    try await bench.run("UPDATE account SET email = NULL WHERE id = 'ada'")
    #expect(try await sent(bench) == ["cancelled bob@example.org car"])
  }

  @Test(arguments: Engine.forRules)
  func `a booking that ends soon is told once for each end`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.ride(TestDevice())
    // Without access, and too short: nobody drives it, or knows well enough.
    try await bench.book("van", 0, 3)
    func tidied() async throws -> [String] {
      try await bench.service.tidy()
      return try await sent(bench)
    }
    #expect(try await tidied() == [])
    bench.wait(3 * hour - RiderMessage.notice - 1)
    #expect(try await tidied() == [])
    bench.wait(1)
    #expect(try await tidied() == ["ends_soon ada@example.org car"])
    #expect(try await tidied() == [])
    _ = try await bench.service.change(ride.id, of: "ada", .extend(to: bench.now + hour, ifVersion: .any))
    #expect(try await tidied() == [])
    bench.wait(hour - 60)
    #expect(try await tidied() == ["ends_soon ada@example.org car"])
  }

  @Test(arguments: Engine.forRules)
  func `many are told in their order, and what is old is not told`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    for number in 0..<100 {
      let (account, time) = (number.isMultiple(of: 2) ? "ada" : "bob", bench.now - 86_450 + Int64(number))
      try await bench.store.write { try MessageTable.add(.suspended, to: account, about: nil, at: time, in: $0) }
    }
    let told = try await sent(bench)
    #expect(told.count == 49 && told.first == "suspended bob@example.org -")
    #expect(told.dropFirst().first == "suspended ada@example.org -")
  }

  @Test(arguments: Engine.forRules)
  func `a booking that has ended, or was made longer, does not end soon`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let ride = try await bench.ride(TestDevice())
    bench.wait(3 * hour - 60)
    try await bench.service.tidy()
    _ = try await bench.service.change(ride.id, of: "ada", .extend(to: bench.now + 7200, ifVersion: .any))
    #expect(try await sent(bench) == [])
    bench.wait(7200 - 60)
    try await bench.service.tidy()
    bench.wait(61)
    #expect(try await sent(bench) == [])
  }

  @Test(arguments: RiderMessage.Kind.allCases)
  func `a mail says which booking, and its subject has nothing that somebody chose`(_ kind: RiderMessage.Kind)
    async throws
  {
    let bench = try await Bench()
    let id = try await bench.book("car", 1, 2).id
    let booking = try await bench.service.booking(id, of: nil)
    let message = RiderMessage(
      kind, account: "ada", email: "ada@example.org", booking: kind == .suspended ? nil : booking)
    let removed = FleetVehicle(
      id: booking.vehicle.id, name: "car (\(booking.vehicle.id))", folder: "car", steps: [], service: .removed)
    let gone = RiderMessage(
      .vehicleRemoved, account: "ada", email: "ada@example.org",
      booking: FleetBooking(
        id: id, vehicle: removed, account: "ada", subject: "b", steps: [], booking: booking.booking))
    #expect(gone.text(host: "h").contains("The booking: car, ") && gone.json["name"] == "car")
    #expect(message.subject.utf8.allSatisfy { (0x20...0x7E).contains($0) })
    let text = message.text(host: "fleet.example")
    #expect(text.contains("fleet.example"))
    #expect(
      text.contains("car, 2027-01-15T09:00:00Z to 2027-01-15T10:00:00Z (UTC), \(id.prefix(8)).") == (kind != .suspended)
    )
    #expect(
      message.json["kind"]?.string == kind.rawValue
        && message.json["booking"]?.string == (kind == .suspended ? nil : id))
  }
}
