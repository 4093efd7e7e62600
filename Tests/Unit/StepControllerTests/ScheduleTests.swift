import Domain
import Glibc
import StepController
import StepProtocol
import TestSupport
import Testing

/// Random schedules: commands, stalls, failures, kills and power cuts at any moment, each determined by its seed.
///
/// Two hundred run with every test run, because each command costs its cryptography; `STEPCTL_SCHEDULES=2000` runs so
/// many.
@Suite("Schedules") struct ScheduleTests {
  static let groups: UInt64 = 4
  static let count = getenv("STEPCTL_SCHEDULES").flatMap { UInt64(String(cString: $0)) } ?? 200

  @Test(
    "whatever happens, no step is thrown, moves without its journal, or is said to be where it is not",
    arguments: 0..<groups)
  func random(group: UInt64) {
    var totals = Schedule.Totals()
    for seed in stride(from: group, to: Self.count, by: Int(Self.groups)) {
      let schedule = Schedule(seed)
      schedule.run()
      #expect(schedule.violations.isEmpty, "seed \(seed): \(schedule.violations)")
      totals.add(schedule.totals)
    }
    print("\(Self.count / Self.groups) schedules: \(totals)")
    // A schedule in which nothing happens shows nothing.
    let each = Int(Self.count / Self.groups)
    #expect(totals.motions > each && totals.ended > each / 2 && totals.faults > each / 4)
    #expect(totals.refused > each && totals.crashes > each / 2 && totals.approaches > each)
  }
}

/// One of them, and what must hold in it.
private final class Schedule {
  struct Totals: CustomStringConvertible {
    var (commands, motions, ended, faults, refused, crashes, approaches, moves) = (0, 0, 0, 0, 0, 0, 0, 0)

    mutating func add(_ other: Totals) {
      commands += other.commands
      motions += other.motions
      ended += other.ended
      faults += other.faults
      refused += other.refused
      crashes += other.crashes
      approaches += other.approaches
      moves += other.moves
    }

    var description: String {
      "\(commands) commands, \(refused) refused, \(motions) motions, \(ended) of them ended, \(faults) faults, "
        + "\(crashes) kills, \(approaches) approaches, \(moves) positions"
    }
  }

  private(set) var totals = Totals()
  private(set) var violations: [String] = []
  private let bench = Bench()
  private let riders: [Rider]
  private var random: SplitMix
  private var old: [(StepID, [UInt8])] = []
  /// When a step's servo last did something, and whether it was late.
  private var told: [StepID: (clock: Int64, wasSlow: Bool)] = [:]
  private var moving: Set<StepID> = []

  init(_ seed: UInt64) {
    random = SplitMix(seed)
    riders = [bench.rider(expires: 1 << 20), bench.rider(expires: 1 << 20)]
    bench.profile = MotionProfile(travel: [200, 700, 1_500].randomElement(using: &random)!, limit: 5_000)
    bench.start()
    bench.servo.atOrder = { [unowned self] order in check(order) }
  }

  func run() {
    for _ in 0..<30 { act() }
    // All is well again: every motion comes to its end.
    repair()
    for _ in 0..<2 { observe(bench.settle()) }
    run(ticks: 1_300)
    if !bench.controller.isAtRest { violate("it does not come to rest") }
    observe(bench.handle(.connected))
  }

  private func violate(_ text: String) { violations.append("at \(bench.time.clock): \(text)") }

  private func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  // MARK: - What happens

  private func act() {
    switch Int.random(in: 0..<100, using: &random) {
    case ..<30: command()
    case ..<60: run(ticks: Int.random(in: 1...60, using: &random))
    case ..<65: bench.wait(Int64.random(in: 1...400, using: &random))
    case ..<68: bench.wait(Int64.random(in: 400...20_000, using: &random))
    case ..<73: bench.journal.isSlow.toggle()
    case ..<76: bench.journal.failure = chance(50) ? "Input/output error" : nil
    case ..<80: bench.servo.isSlow.toggle()
    case ..<82: bench.servo.failure = chance(50) ? [.obstructed, .failed("gone")].randomElement(using: &random) : nil
    case ..<84: bench.servo.releaseFailure = chance(50) ? .failed("gone") : nil
    case ..<88: observe(bench.settle())
    case ..<91:
      let hindrance = Hindrance("a foot")
      bench.motionGuard.clearance = [.go, .hold(hindrance), .stop(hindrance)].randomElement(using: &random)!
    case ..<93:
      guard let (step, payload) = old.randomElement(using: &random) else { return }
      if bench.send(payload, to: step).contains(where: { $0.answer?.refusal == nil }) { violate("a replay is obeyed") }
    case ..<94: observe(bench.handle(.connected))
    case ..<95: bench.handle(.ending)
    case ..<97: repair()
    default: crash()
    }
  }

  private func command() {
    let (rider, step) = (riders.randomElement(using: &random)!, chance(60) ? left : right)
    let target: Command.Move.Target = chance(60) ? .open : .close
    let deadline = bench.time.clock + Int64.random(in: 1...10_000, using: &random)
    let move = bench.move(target, step, as: rider).with(deadline: deadline)
    let payload = rider.command(step, .move(move))
    totals.commands += 1
    old.append((step, payload))
    observe(bench.send(payload, to: step))
  }

  private func run(ticks: Int) {
    for _ in 0..<ticks {
      bench.wait(chance(90) ? MotionProfile.tick : Int64.random(in: 1...150, using: &random))
      observe(bench.handle(.tick))
    }
  }

  private func repair() {
    (bench.journal.isSlow, bench.journal.failure) = (false, nil)
    (bench.servo.isSlow, bench.servo.failure, bench.servo.releaseFailure) = (false, nil, nil)
    bench.motionGuard.clearance = .go
  }

  private func crash() {
    totals.crashes += 1
    if chance(30) { bench.journal.write() }
    if chance(30) { bench.servo.powerCut() }
    bench.start()
    moving = []
    let before = bench.servo.orders.count
    observe(bench.handle(.connected))
    if bench.servo.orders.count != before { violate("something moves at the start") }
  }

  // MARK: - What must hold

  /// Looks at an order before the servo obeys it.
  private func check(_ order: ServoOrder) {
    let step = order.step
    let place = bench.servo.places[step] ?? 0
    switch order.action {
    case .prepare:
      totals.motions += 1
    case .release:
      break
    case .move(let next):
      totals.moves += 1
      // Two positions within a frame share the frame's stride.
      let last = told[step] ?? (0, false)
      let time = bench.time.clock - last.clock
      let share = bench.servo.isSlow || last.wasSlow ? 1 : min(1, Double(time) / Double(MotionProfile.tick))
      if abs(next - place) > bench.profile.longestStride * share + 1e-9 {
        violate("\(step) is thrown from \(place) to \(next) within \(time) ms")
      }
      checkJournal(step, "moves")
    case .inch:
      totals.approaches += 1
      checkJournal(step, "inches")
    }
    told[step] = (bench.time.clock, bench.servo.isSlow)
  }

  /// An order that a slow servo carries out after its motion was given up finds a journal that knows no place.
  private func checkJournal(_ step: StepID, _ what: String) {
    guard let entry = bench.journal.medium.entries[step], entry.challenge != nil,
      entry.motion != nil || entry.position == .unknown
    else { return violate("\(step) \(what), and the journal knows nothing of it") }
  }

  private func observe(_ statements: [Statement]) {
    for statement in statements {
      let step = statement.step
      if let refusal = statement.answer?.refusal {
        totals.refused += 1
        if refusal.code == .malformed { violate("\(step): a good command is malformed") }
      }
      switch statement.phase {
      case .moving:
        moving.insert(step)
      case .idle, .fault, .other:
        if moving.remove(step) != nil { if statement.phase == .idle { totals.ended += 1 } else { totals.faults += 1 } }
      }
      if statement.phase == .idle {
        let end: Double? = statement.position == .open ? 1 : statement.position == .close ? 0 : nil
        if end != bench.servo.places[step] ?? 0 {
          violate("\(step) is said to be \(statement.position) and stands at \(bench.servo.places[step] ?? 0)")
        }
      }
      if statement.phase == .fault, statement.fault == .interrupted, statement.position != .unknown {
        violate("\(step) was interrupted, and its place is said to be known")
      }
    }
  }
}
