import Domain
import Rider
import StepProtocol
import Testing

/// What the rider is told must be true, whatever the network, the journal, the servo and the power do.
@Suite("A rider and a vehicle") struct NetworkTests {
  private let step = World.vehicle.steps[0]

  @Test("open: the step is open, and the rider is told how it goes")
  func opens() throws {
    var world = World(.move(.open, World.sighting(step)), to: step, World.Faults(), seed: 1)
    world.live()
    #expect(try world.result?.get().position == .open)
    #expect(world.places == [step.id: 1, World.vehicle.steps[1].id: 0])
    let told = world.updates.map { update in
      switch update {
      case .send: "send"
      case .answered: "answered"
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
    var world = World(.status, to: step, World.Faults(), seed: 1)
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
      var world = World(.move(.open, World.sighting(step)), to: step, faults, seed: seed)
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
      var world = World(.move(.open, World.sighting(step)), to: step, faults, seed: seed)
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
}
