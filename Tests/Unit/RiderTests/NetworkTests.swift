import Domain
import Glibc
import Rider
import StepProtocol
import Testing

/// What the rider is told must be true, whatever the network, the journal, the servo and the power do.
@Suite("A rider and a vehicle") struct NetworkTests {
  private let step = World.vehicle.steps[0]

  @Test("open: the step is open, and the rider is told how it goes")
  func opens() throws {
    var world = World(.move(.open, World.sighting(step)), World.Faults(), seed: 1)
    world.live()
    #expect(try world.result?.get().position == .open)
    #expect(world.places == [step.id: 1, World.vehicle.steps[1].id: 0])
    let told = world.updates.map { update in
      switch update {
      case .send: "send"
      case .answered: "answered"
      case .call, .heard: "called"
      case .commanded: "commanded"
      case .moving: "moving"
      case .done: "done"
      case .failed: "failed"
      }
    }
    #expect(told == ["send", "answered", "send", "commanded", "moving", "done"])
  }

  @Test("a status request moves nothing, and tells the policy")
  func status() throws {
    var world = World(.status(step.id), World.Faults(), seed: 1)
    world.live()
    #expect(try world.result?.get().position == .close)
    #expect(world.motions == 0)
    let policies = world.updates.compactMap { if case .answered(_, let policy) = $0 { policy } else { nil } }
    #expect(policies == [PresencePolicy(methods: [.nfc], zone: .near, acceptsStatic: true)])
  }

  @Test("messages that are late, doubled and out of order do not keep a step from opening", arguments: 0..<20)
  func untidy(part: UInt64) throws {
    for seed in part * 50..<(part + 1) * 50 {
      let faults = World.Faults(doubled: 0.4, delay: 900)
      var world = World(.move(.open, World.sighting(step)), faults, seed: seed)
      world.live()
      let result = try #require(world.result, "seed \(seed)")
      #expect(throws: Never.self, "seed \(seed)") { try result.get() }
      #expect(world.places[step.id] == 1, "seed \(seed)")
    }
  }

  @Test("nothing is told that is not true, whatever fails", arguments: 0..<40)
  func truth(part: UInt64) throws {
    for seed in part * 75..<(part + 1) * 75 {
      let faults = World.Faults(
        lost: 0.15, doubled: 0.2, delay: 2_500, journalFails: 0.05, servoFails: 0.01, restarts: 0.1)
      var world = World(.move(.open, World.sighting(step)), faults, seed: seed)
      world.live()
      switch try #require(world.result, "seed \(seed)") {
      case .success(let statement):
        #expect(statement.position == .open && statement.phase == .idle, "seed \(seed)")
        #expect(world.places[step.id] == 1, "seed \(seed)")
      case .failure(let error):
        // Whoever is told that nothing moved can rely on it.
        #expect(error.mayHaveMoved || world.motions == 0, "seed \(seed): \(error)")
        #expect(error.mayHaveMoved == (error.exitStatus == .unconfirmed), "seed \(seed)")
      }
      #expect(world.places[World.vehicle.steps[1].id] == 0, "seed \(seed)")
    }
  }

  /// `STEPCTL_SCHEDULES=10000` plays so many.
  private static let schedules = getenv("STEPCTL_SCHEDULES").flatMap { UInt64(String(cString: $0)) } ?? 200

  @Test(
    "one command over two ways that break moves once, and nothing is told that is not true, whatever fails",
    arguments: 0..<4)
  func twoWays(part: UInt64) throws {
    var counts = (done: 0, doubts: 0, other: 0)
    for seed in stride(from: part, to: Self.schedules, by: 4) {
      let faults = World.Faults(
        lost: seed % 3 == 0 ? 0.1 : 0, doubled: 0.3, delay: seed % 2 == 0 ? 300 : 2_500,
        restarts: seed % 5 == 0 ? 0.1 : 0, hasLink: true, breaks: 0.15)
      var world = World(.move(.open, World.sighting(step)), faults, seed: seed)
      world.live()
      #expect(world.begun <= 1, "seed \(seed): it moved twice")
      switch try #require(world.result, "seed \(seed)") {
      case .success(let statement):
        counts.done += 1
        #expect(statement.position == .open && statement.phase == .idle && world.places[step.id] == 1, "seed \(seed)")
      case .failure(let error):
        if error.mayHaveMoved { counts.doubts += 1 } else { counts.other += 1 }
        #expect(error.mayHaveMoved || world.motions == 0, "seed \(seed): \(error)")
      }
    }
    print("two ways, part \(part): \(counts)")
    // A test in which nothing happens shows nothing.
    #expect(counts.done > 0 && counts.doubts > 0 && counts.other > 0)
  }

  @Test("a rider whose way breaks after the command is told by the other one that the step is open", arguments: 0..<20)
  func goesOn(seed: UInt64) throws {
    var world = World(.move(.open, World.sighting(step)), World.Faults(hasLink: true), seed: seed)
    world.live { $0.updates.contains { if case .commanded = $0 { true } else { false } } }
    world.loseWay(of: 0)
    world.live()
    #expect(try #require(world.result).get().position == .open)
    #expect(world.begun == 1)
  }

  /// Somebody opens a step, and somebody else stops it after the command has left.
  private func stopped(_ faults: World.Faults, seed: UInt64) -> World {
    var world = World(.move(.open, World.sighting(step)), faults, seed: seed)
    world.live { $0.updates.contains { if case .commanded = $0 { true } else { false } } }
    world.add(.stop(step.id), after: 0...700)
    world.live()
    return world
  }

  @Test("stop: the step is at rest, whoever opened it is told, and nothing moves any more")
  func stops() throws {
    var world = World(.move(.open, World.sighting(step)), World.Faults(), seed: 1)
    world.live { $0.motions > 5 }
    world.add(.stop(step.id), after: 0...0)
    world.live()
    let statement = try #require(world.result(of: 1)).get()
    #expect(statement.position == .unknown && statement.phase == .idle)
    #expect((0.01..<0.99).contains(world.places[step.id]!))
    let error = try #require(throws: RiderError.self) { try world.result?.get() }
    #expect(error.description == "the left step came to rest somewhere between open and closed")
    #expect(error.mayHaveMoved)
  }

  @Test(
    "a stop gets through a network that delays, doubles and reorders, and a controller that starts again",
    arguments: 0..<10)
  func stopsUntidily(part: UInt64) throws {
    for seed in part * 50..<(part + 1) * 50 {
      let world = stopped(World.Faults(doubled: 0.4, delay: 900, restarts: 0.1, outdated: 0.5), seed: seed)
      if world.told.count < 2 { continue }  // The command was refused before anybody could stop it.
      let result = try #require(world.result(of: 1), "seed \(seed)")
      #expect(throws: Never.self, "seed \(seed)") { try result.get() }
    }
  }

  @Test("who is told that a step is at rest can rely on it, whatever fails", arguments: 0..<20)
  func stopsTruly(part: UInt64) throws {
    for seed in part * 75..<(part + 1) * 75 {
      let faults = World.Faults(
        lost: 0.15, doubled: 0.2, delay: 2_500, journalFails: 0.05, servoFails: 0.01, restarts: 0.1, outdated: 0.5)
      let world = stopped(faults, seed: seed)
      if world.told.count < 2 { continue }
      switch try #require(world.result(of: 1), "seed \(seed)") {
      case .success(let statement):
        #expect(statement.phase.isAtRest, "seed \(seed)")
        #expect(world.told[1].last!.motions == world.motions, "seed \(seed): it moved after the stop")
      case .failure(let error):
        #expect(!error.mayHaveMoved, "seed \(seed)")
        #expect([.refused, .unconfirmed, .unavailable].contains(error.exitStatus), "seed \(seed): \(error)")
      }
      if case .success = world.result { #expect(world.places[step.id] == 1, "seed \(seed)") }
    }
  }
}
