import Domain
import Glibc
import StepController
import StepProtocol
import TestSupport
import Testing

/// Steps, servos, people and obstacles as physics moves them, with a controller that many things happen to. Each
/// schedule is determined by its seed; one that violates something is shrunk before it is shown.
///
/// Some run with every test run. `STEPCTL_SIMULATIONS=10000` runs so many, from the seed
/// `STEPCTL_SIMULATION_FIRST` on, and `STEPCTL_SIMULATION=7` the one of that seed.
@Suite("Simulation") struct SimulationTests {
  static let groups: UInt64 = 2
  static let first = number("STEPCTL_SIMULATION") ?? number("STEPCTL_SIMULATION_FIRST") ?? 0
  static let count = number("STEPCTL_SIMULATION").map { _ in 1 } ?? number("STEPCTL_SIMULATIONS") ?? 200

  private static func number(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }

  @Test(
    "no step is thrown, presses, or moves where or when it must not, and what is told of it is true",
    arguments: 0..<groups)
  func random(group: UInt64) {
    let crew = SimulationCrew()
    var totals = SimulationTotals()
    var (done, violated) = (0, 0)
    for seed in stride(from: Self.first + group, to: Self.first + Self.count, by: Int(Self.groups)) where violated < 5 {
      let schedule = SimulationSchedule(seed)
      let simulation = Simulation(schedule, crew)
      if let violation = simulation.run() {
        violated += 1
        Issue.record("seed \(seed): \(minimal(schedule, violation, crew))")
      }
      done += 1
      totals.add(simulation.totals)
    }
    print("\(done) simulations: \(totals)")
    // Where nothing happens, nothing is shown.
    guard done >= 100, violated == 0 else { return }
    #expect(totals.motions > done && totals.ends > done / 2 && totals.stops > done / 5 && totals.kills > done / 3)
    #expect(totals.backOffs > done / 20 && totals.retractions > done / 50 && totals.reversals > done / 50)
    #expect(totals.faults.count >= 6 && totals.refusals.count >= 6)
  }

  /// What is violated, and the smallest schedule that was found to do so.
  private func minimal(
    _ schedule: SimulationSchedule, _ violation: Simulation.Violation, _ crew: SimulationCrew
  ) -> String {
    let shrunk = schedule.shrunk { Simulation($0, crew).run()?.kind == violation.kind }
    let text = Simulation(shrunk, crew).run()?.text ?? violation.text
    return "\(text)\n\(shrunk.actions.count) of \(schedule.actions.count) actions do it:\n\(shrunk)"
  }

  @Test("what something in the way feels", arguments: [true, false], [5_000.0, 20_000])
  func force(hasBeam: Bool, stiffness: Double) {
    var setting = SimulationSetting()
    (setting.sensors, setting.hasBeam) = ([.clear(left)], hasBeam)
    let simulation = Simulation(
      SimulationSchedule(
        setting: setting,
        [
          (100, .command(rider: 0, left, .open, deadline: 5_000, transit: 0)),
          (hasBeam ? 500 : 50, .obstacle(left, 0.45, stiffness: stiffness)),
        ]), SimulationCrew())
    #expect(simulation.run()?.text == nil)
    let totals = simulation.totals
    print("\(hasBeam ? "a beam" : "an edge"), \(stiffness) N/m: \(Int(totals.force)) N, then \(Int(totals.residue)) N")
    #expect(totals.backOffs == 1 && totals.faults == ["obstructed": 1])
    #expect(hasBeam || totals.force > 8, "the edge feels it")
    // A servo that goes on pushes with 300 N.
    #expect(totals.force < 200 && totals.residue < 20)
  }

  @Test("a controller that hears nothing of its inputs is found out")
  func deaf() {
    let crew = SimulationCrew()
    var kinds: Set<String> = []
    for seed in 0..<40 {
      var schedule = SimulationSchedule(UInt64(seed))
      schedule.setting.isDeaf = true
      if let violation = Simulation(schedule, crew).run() { kinds.insert(violation.kind) }
    }
    #expect(kinds.count > 3, "\(kinds)")
  }

  @Test("a schedule shrinks to what matters")
  func shrinking() {
    let stops = (0..<200 as Range<UInt64>).lazy.map(SimulationSchedule.init).first { schedule in
      schedule.actions.count > 10 && schedule.actions.contains { $0.action.isPowerCut }
    }!
    let shrunk = stops.shrunk { $0.actions.contains { $0.action.isPowerCut } }
    #expect(shrunk.actions.count == 1 && shrunk.setting.sensors.isEmpty)
    #expect(shrunk.description.contains("the power is cut for 20 ms"))
  }

  @Test("a seed determines its schedule")
  func seeds() {
    #expect((0..<20 as Range<UInt64>).allSatisfy { "\(SimulationSchedule($0))" == "\(SimulationSchedule($0))" })
    #expect(Set((0..<20 as Range<UInt64>).map { "\(SimulationSchedule($0))" }).count == 20)
  }
}

extension SimulatedAction {
  fileprivate var isPowerCut: Bool { if case .powerCut = self { true } else { false } }
}
