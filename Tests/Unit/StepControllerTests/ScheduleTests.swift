import Domain
import Glibc
import StepController
import StepProtocol
import TestSupport
import Testing

/// Random schedules: commands of two riders, stops, stalls, failures, inputs that change or are lost, kills and power
/// cuts at any moment, each determined by its seed.
///
/// Two hundred run with every test run, because each command costs its cryptography; `STEPCTL_SCHEDULES=2000` runs so
/// many.
@Suite("Schedules") struct ScheduleTests {
  static let groups: UInt64 = 4
  static let count = getenv("STEPCTL_SCHEDULES").flatMap { UInt64(String(cString: $0)) } ?? 200
  /// How many seeds a group has.
  static var each: Int { Int(count / groups) }

  static func seeds(of group: UInt64) -> StrideTo<UInt64> { stride(from: group, to: count, by: Int(groups)) }

  @Test(
    "whatever happens, no step is thrown, goes on against its inputs or without its journal, or is said to be elsewhere",
    arguments: 0..<groups)
  func random(group: UInt64) {
    var totals = Schedule.Totals()
    for seed in Self.seeds(of: group) {
      let schedule = Schedule(seed)
      schedule.run()
      #expect(schedule.violations.isEmpty, "seed \(seed): \(schedule.violations)")
      totals.add(schedule.totals)
    }
    print("\(Self.each) schedules: \(totals)")
    // A schedule in which nothing happens shows nothing.
    let each = Self.each
    #expect(totals.motions > each && totals.ended > each / 2 && totals.faults > each / 4)
    #expect(totals.refused > each && totals.crashes > each / 2 && totals.approaches > each)
    #expect(
      totals.stops > each / 10 && totals.turns > each / 10 && totals.retreats > each / 10 && totals.retractions > 0)
  }
}

/// One of them, and what must hold in it.
private final class Schedule {
  struct Totals: CustomStringConvertible {
    var (commands, motions, ended, faults, refused, crashes, approaches, moves) = (0, 0, 0, 0, 0, 0, 0, 0)
    var (stops, turns, retreats, retractions) = (0, 0, 0, 0)

    mutating func add(_ other: Totals) {
      stops += other.stops
      turns += other.turns
      retreats += other.retreats
      retractions += other.retractions
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
        + "\(crashes) kills, \(approaches) approaches, \(moves) positions, \(stops) stopped, \(turns) turned, "
        + "\(retreats) retreats, \(retractions) retractions"
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
  /// What the inputs say that are wired. Those at the ends say where the servo is, unless their wires are cut.
  private var inputs: [SensorID: Bool?] = [:]
  private var cut: Set<SensorID> = []
  /// The orders that were looked at, and where each step was sent last; no place after single pulses.
  private var issued = 0
  private var sent: [StepID: (place: Double?, direction: Double)] = [:]
  /// Where each step had been sent when something came in its way, and how far it extended since the vehicle moves.
  private var blocked: [StepID: (place: Double?, direction: Double)] = [:]
  private var extended: [StepID: Double] = [:]

  init(_ seed: UInt64) {
    random = SplitMix(seed)
    riders = [bench.rider(expires: 1 << 20), bench.rider(expires: 1 << 20)]
    wire()
    bench.profile = MotionProfile(travel: [200, 700, 1_500].randomElement(using: &random)!, limit: 5_000)
    bench.start()
    bench.servo.atOrder = { [unowned self] order in check(order) }
    readInputs()
  }

  /// Half of the vehicles have inputs.
  private func wire() {
    guard chance(50) else { return }
    if chance(50) { inputs[.enable] = true }
    if chance(90) { inputs[.standing] = true }
    for step in [left, right] {
      if chance(60) { inputs[.clear(step)] = true }
      if chance(40) { inputs[.endOpen(step)] = false }
      if chance(40) { inputs[.endClosed(step)] = true }
    }
    bench.inputs = Inputs(
      wirings: inputs.mapValues { _ in InputWiring(.file("/dev/null")) },
      interlock: Interlock(onMoving: chance(80) ? .retract : .warn))
  }

  func run() {
    for _ in 0..<30 {
      act()
      followEnds()
    }
    // All is well again: every motion comes to its end.
    repair()
    for _ in 0..<2 { observe(bench.settle()) }
    followEnds()
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
    case ..<63: bench.wait(Int64.random(in: 1...400, using: &random))
    case ..<65: bench.wait(Int64.random(in: 400...20_000, using: &random))
    case ..<68: stop()
    case ..<73: changeInput()
    case ..<75: bench.journal.isSlow.toggle()
    case ..<77: bench.journal.failure = chance(50) ? "Input/output error" : nil
    case ..<80: bench.servo.isSlow.toggle()
    case ..<82: bench.servo.failure = chance(50) ? [.obstructed, .failed("gone")].randomElement(using: &random) : nil
    case ..<84: bench.servo.releaseFailure = chance(50) ? .failed("gone") : nil
    case ..<88: observe(bench.settle())
    case ..<91:
      let blockReason = BlockReason("a foot")
      bench.motionGuard.clearance = [.clear, .hold(blockReason), .stop(blockReason)].randomElement(using: &random)!
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
    let wasMoving = moving.contains(step)
    let statements = bench.send(payload, to: step)
    if wasMoving, statements.first?.phase == .moving, statements.refusal == nil { totals.turns += 1 }
    observe(statements)
  }

  private func stop() {
    let (rider, step) = (riders.randomElement(using: &random)!, chance(60) ? left : right)
    let statements = bench.stop(step, as: rider)
    totals.stops += statements.count > 1 ? 1 : 0
    observe(statements)
    if bench.handle(.connected).first(where: { $0.step == step })?.phase == .moving { violate("it is not stopped") }
  }

  /// In the same order whenever the seed is the same.
  private var wired: [SensorID] { inputs.keys.sorted { $0.description < $1.description } }

  private func changeInput() {
    guard var sensor = wired.randomElement(using: &random) else { return }
    if inputs[.standing] != nil, chance(60) { sensor = .standing }
    switch sensor {
    case .endOpen, .endClosed:
      if cut.remove(sensor) == nil { cut.insert(sensor) }
      followEnds()
    case .clear, .standing, .enable:
      sense(sensor, inputs[sensor]! == true ? (chance(80) ? false : nil) : true)
    }
  }

  private func sense(_ sensor: SensorID, _ isActive: Bool?) {
    inputs[sensor] = .some(isActive)
    switch sensor {
    case .clear(let step): blocked[step] = isActive == true ? nil : sent[step] ?? (nil, 0)
    case .standing: extended = isActive == true ? [:] : [left: 0, right: 0]
    case .endOpen, .endClosed, .enable: break
    }
    observe(bench.sense(sensor, isActive))
  }

  /// A switch sees its end within 2 % of the way. It is heard at once, also after an order that a slow servo carries
  /// out late.
  private func followEnds() {
    for sensor in wired {
      var isThere: Bool?
      switch sensor {
      case .endOpen(let step): isThere = bench.servo.places[step] ?? 0 >= 0.98
      case .endClosed(let step): isThere = bench.servo.places[step] ?? 0 <= 0.02
      case .clear, .standing, .enable: break
      }
      if var isThere {
        isThere = isThere && !cut.contains(sensor)
        if inputs[sensor]! != isThere { sense(sensor, isThere) }
      }
    }
  }

  /// The shell reads every input at the start.
  private func readInputs() {
    for sensor in wired { observe(bench.sense(sensor, inputs[sensor]!)) }
  }

  private func run(ticks: Int) {
    for _ in 0..<ticks {
      bench.wait(chance(90) ? MotionProfile.tick : Int64.random(in: 1...150, using: &random))
      observe(bench.handle(.tick))
      followEnds()
    }
  }

  private func repair() {
    (bench.journal.isSlow, bench.journal.failure) = (false, nil)
    (bench.servo.isSlow, bench.servo.failure, bench.servo.releaseFailure) = (false, nil, nil)
    bench.motionGuard.clearance = .clear
    cut = []
    for sensor in [SensorID.enable, .standing, .clear(left), .clear(right)] where inputs[sensor] != nil {
      if inputs[sensor]! != true { sense(sensor, true) }
    }
    followEnds()
  }

  private func crash() {
    totals.crashes += 1
    if chance(30) { bench.journal.write() }
    if chance(30) { bench.servo.powerCut() }
    bench.start()
    moving = []
    let before = bench.servo.orders.count
    readInputs()
    observe(bench.handle(.connected))
    if bench.servo.orders.count != before { violate("something moves at the start") }
  }

  // MARK: - What must hold

  /// Looks at an order before the servo obeys it.
  private func check(_ order: ServoOrder) {
    let step = order.step
    let place = bench.servo.places[step] ?? 0
    let isSlow = bench.servo.isSlow || bench.servo.isLate
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
      let share = isSlow || last.wasSlow ? 1 : min(1, Double(time) / Double(MotionProfile.tick))
      if abs(next - place) > bench.profile.longestStride * share + 1e-9 {
        violate("\(step) is thrown from \(place) to \(next) within \(time) ms")
      }
      checkJournal(step, "moves")
    case .inch:
      totals.approaches += 1
      checkJournal(step, "inches")
    }
    told[step] = (bench.time.clock, isSlow)
  }

  /// An order that a slow servo carries out after its motion has ended finds a journal that knows no place. If the
  /// order is late, the journal may have the place of a switch, which is read again at each start.
  private func checkJournal(_ step: StepID, _ what: String) {
    // A step that the controller closed by itself may have been moved by no command yet.
    guard let entry = bench.journal.medium.entries[step], entry.challenge != nil || inputs[.standing] != nil,
      entry.motion != nil || entry.position == .unknown
        || bench.servo.isLate && hasSwitch(at: entry.position, of: step)
    else { return violate("\(step) \(what), and the journal knows nothing of it") }
  }

  private func hasSwitch(at position: Position, of step: StepID) -> Bool {
    inputs[position == .open ? .endOpen(step) : .endClosed(step)] != nil
  }

  /// Looks at the orders that were given since the last look: what the inputs forbid is not ordered.
  private func checkOrders() {
    for order in bench.servo.orders.dropFirst(issued) {
      let step = order.step
      let last = sent[step]?.place
      switch order.action {
      case .prepare, .release:
        sent[step] = nil
        continue
      case .inch(let end):
        sent[step] = (nil, 0)
        if inputs[.enable] ?? true != true { violate("\(step) inches, and motion is not enabled") }
        if blocked[step] != nil { violate("\(step) inches, and something is in its way") }
        if end == 1, extended[step] != nil { violate("\(step) inches outward while the vehicle moves") }
      case .move(let next):
        sent[step] = (next, last.map { next < $0 ? -1 : next > $0 ? 1 : 0 } ?? 0)
        if inputs[.enable] ?? true != true { violate("\(step) moves, and motion is not enabled") }
        if let (place, direction) = blocked[step] {
          // The first place of a motion has no direction yet.
          let way = next - (place ?? next)
          if place == nil || abs(way) > 0.05 + 1e-9 || way * direction > 1e-9 {
            violate("\(step) moves to \(next), and something was in its way at \(place ?? -1)")
          }
        }
        if let way = extended[step], let last {
          extended[step] = next > last ? way + next - last : 0
          if extended[step]! > 0.05 + 1e-9 { violate("\(step) extends while the vehicle moves") }
        }
      }
    }
    issued = bench.servo.orders.count
    for event in bench.events {
      if case .retracts = event { totals.retractions += 1 }
      if case .failed(_, .obstructed, _, _) = event { totals.retreats += 1 }
    }
    bench.events = []
  }

  private func observe(_ statements: [Statement]) {
    checkOrders()
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
      // A switch sees its end a little early.
      if statement.phase == .idle, statement.position != .unknown {
        let error = abs((statement.position == .open ? 1 : 0) - (bench.servo.places[step] ?? 0))
        if error > (hasSwitch(at: statement.position, of: step) ? 0.02 : 0) {
          violate("\(step) is said to be \(statement.position) and stands at \(bench.servo.places[step] ?? 0)")
        }
      }
      if statement.phase == .fault, statement.fault == .interrupted, statement.position != .unknown,
        inputs[.endOpen(step)] == nil, inputs[.endClosed(step)] == nil
      {
        violate("\(step) was interrupted, and its place is said to be known")
      }
    }
  }
}
