import Domain
import Glibc
import StepController
import StepProtocol
import TestSupport
import Testing

/// Steps, servos, people and obstacles as physics moves them, with a controller that many things happen to. Each
/// schedule is determined by its seed; one that violates something is shrunk before it is shown.
///
/// Some run with every test run. `STEPCTL_SIMULATIONS=10000` runs so many, and `STEPCTL_SIMULATION=7` the one of that
/// seed.
@Suite("Simulation") struct SimulationTests {
  static let groups: UInt64 = 2
  static let count = number("STEPCTL_SIMULATIONS") ?? 240
  static let only = number("STEPCTL_SIMULATION")
  static let first = number("STEPCTL_SIMULATION_FIRST") ?? 0

  private static func number(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }

  @Test("no step is thrown, pressed, extended or moved where it must not, and what is told of it is true", arguments: 0..<groups)
  func random(group: UInt64) {
    let crew = SimulationCrew()
    if let seed = Self.only {
      if group == 0 { _ = run(seed, crew, shrinks: true) }
      return
    }
    var totals = SimulationTotals()
    var failures = 0
    for seed in stride(from: Self.first + group, to: Self.first + Self.count, by: Int(Self.groups)) where failures < 5 {
      let (isFine, counted) = run(seed, crew, shrinks: true)
      if !isFine { failures += 1 }
      totals.add(counted)
    }
    print("\(Self.count / Self.groups) simulations: \(totals)")
  }

  private func run(_ seed: UInt64, _ crew: SimulationCrew, shrinks: Bool) -> (Bool, SimulationTotals) {
    let schedule = SimulationSchedule(seed)
    let simulation = Simulation(schedule, crew)
    guard let violation = simulation.run() else { return (true, simulation.totals) }
    let minimal = schedule.shrunk { Simulation($0, crew).run()?.kind == violation.kind }
    let text = Simulation(minimal, crew).run()?.text ?? violation.text
    Issue.record(
      "seed \(seed): \(violation.kind)\n  \(text)\n\(minimal.actions.count) of \(schedule.actions.count) actions:\n\(minimal)")
    return (false, simulation.totals)
  }
}
