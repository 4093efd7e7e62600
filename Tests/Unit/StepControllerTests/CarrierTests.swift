import Domain
import StepController
import StepProtocol
import TestSupport
import Testing

/// Random schedules of two carriers, a broker and a link: whatever a rider sends goes by one of them or by both, and
/// each loses, doubles, delays and reorders it, while the controller is killed and its journal is slow.
///
/// Two hundred run with every test run, each determined by its seed; `STEPCTL_SCHEDULES=10000` runs so many.
@Suite("Two carriers") struct CarrierTests {
  @Test(
    "move once for a command at the most, and each answer goes where its command came from",
    arguments: 0..<ScheduleTests.groups)
  func random(group: UInt64) {
    var totals = CarrierSchedule.Totals()
    for seed in ScheduleTests.seeds(of: group) {
      let schedule = CarrierSchedule(seed)
      schedule.run()
      #expect(schedule.violations.isEmpty, "seed \(seed): \(schedule.violations)")
      totals.add(schedule.totals)
    }
    let each = ScheduleTests.each
    print("\(each) schedules of two carriers: \(totals)")
    // Carriers that carry nothing, or each thing once, would show nothing.
    #expect(totals.motions > each && totals.again > 2 * each && totals.byLink > each && totals.byBroker > each)
    #expect(totals.lost > each / 4 && totals.kills > each / 2)
  }
}

/// One of them, and what must hold in it.
private final class CarrierSchedule {
  struct Totals: CustomStringConvertible {
    /// Commands to move, of which no copy arrived, and deliveries after a command's first.
    var (commands, lost, again) = (0, 0, 0)
    /// Motions, and the carrier whose copy came first.
    var (motions, byLink, byBroker, kills) = (0, 0, 0, 0)

    mutating func add(_ other: Totals) {
      commands += other.commands
      lost += other.lost
      again += other.again
      motions += other.motions
      byLink += other.byLink
      byBroker += other.byBroker
      kills += other.kills
    }

    var description: String {
      "\(commands) commands, \(lost) lost, \(again) deliveries more, \(motions) motions, first by link \(byLink), "
        + "by broker \(byBroker), \(kills) kills"
    }
  }

  /// A copy on its way.
  private struct Parcel {
    let payload: [UInt8]
    let step: StepID
    let origin: LinkOrigin?
    let due: Int64
  }

  private(set) var totals = Totals()
  private(set) var violations: [String] = []
  private let bench = Bench()
  private let riders: [Rider]
  private var random: SplitMix
  private var parcels: [Parcel] = []
  /// The commands that came on each link, and how often each command to move was delivered.
  private var arrived: [Int: Set<CommandDigest>] = [:]
  private var deliveries: [CommandDigest: Int] = [:]
  /// By the challenge of the command for which a motion began.
  private var motions: [[UInt8]: Int] = [:]
  private var lastLink = 0
  private var looked = 0

  init(_ seed: UInt64) {
    random = SplitMix(seed)
    riders = [bench.rider(expires: 1 << 20), bench.rider(expires: 1 << 20)]
    bench.profile = MotionProfile(travel: 200, limit: 3_000)
    bench.start()
    bench.servo.atOrder = { [unowned self] order in note(order) }
  }

  func run() {
    for _ in 0..<8 {
      ask()
      pass(Int64.random(in: 0...2_000, using: &random))
      if chance(15) { kill() }
      if chance(10) { bench.journal.isSlow.toggle() }
    }
    bench.journal.isSlow = false
    _ = bench.settle()
    // The last copies arrive. From an unknown place, a step may need half a minute to its end.
    for _ in 0..<10 where !parcels.isEmpty || !bench.controller.isAtRest { pass(5_000) }
    if !bench.controller.isAtRest { violations.append("it does not come to rest") }
    totals.lost = deliveries.values.count { $0 == 0 }
    totals.again = deliveries.values.reduce(0) { $0 + max(0, $1 - 1) }
  }

  private func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  /// A rider asks, and commands a motion with the answer, if there is one.
  private func ask() {
    let (rider, step) = (riders.randomElement(using: &random)!, chance(70) ? left : right)
    let link = newLink
    let question = rider.sealed(step, .status)
    let statements = chance(50) ? deliver(question, step, on: link) : deliver(question, step, on: nil)
    guard let statement = statements.first(where: { $0.answer?.command == question.digest }),
      case .challenge(let challenge)? = statement.answer?.outcome
    else { return }
    let move = Command.Move(
      target: chance(50) ? .open : .close, epoch: statement.epoch, challenge: challenge.bytes,
      deadline: bench.time.clock + 5_000, proof: .standing(at: step), proofTime: bench.time.clock - 500)
    let command = rider.sealed(step, .move(move))
    totals.commands += 1
    deliveries[command.digest] = 0
    // The link of the question, a later one, and the broker: each may carry any number of copies.
    for carrier in [link, newLink, nil] {
      let origin = carrier.map { LinkOrigin(link: $0, key: command.answerKey) }
      for _ in 0..<[0, 0, 1, 1, 1, 2].randomElement(using: &random)! {
        let delay = chance(50) ? Int64.random(in: 0...50, using: &random) : Int64.random(in: 0...8_000, using: &random)
        parcels.append(Parcel(payload: command.bytes, step: step, origin: origin, due: bench.time.clock + delay))
      }
    }
  }

  private var newLink: Int {
    lastLink += 1
    return lastLink
  }

  private func deliver(_ command: SealedCommand, _ step: StepID, on link: Int?) -> [Statement] {
    deliver(
      Parcel(
        payload: command.bytes, step: step, origin: link.map { LinkOrigin(link: $0, key: command.answerKey) }, due: 0))
  }

  private func deliver(_ parcel: Parcel) -> [Statement] {
    let digest = CommandDigest(of: parcel.payload)
    if let link = parcel.origin?.link { arrived[link, default: []].insert(digest) }
    if let count = deliveries[digest] {
      deliveries[digest] = count + 1
      if count == 0 { if parcel.origin == nil { totals.byBroker += 1 } else { totals.byLink += 1 } }
    }
    let statements = bench.handle(
      .request(Request(parcel.payload, on: parcel.step, isRetained: false, from: parcel.origin)))
    look()
    return statements
  }

  /// Time passes, and what is due arrives, in any order.
  private func pass(_ milliseconds: Int64) {
    let end = bench.time.clock + milliseconds
    while bench.time.clock < end {
      bench.wait(MotionProfile.tick)
      if bench.controller.needsTicks { bench.handle(.tick) }
      if chance(5) { _ = bench.settle() }
      let due = parcels.filter { $0.due <= bench.time.clock }
      parcels.removeAll { $0.due <= bench.time.clock }
      for parcel in due.shuffled(using: &random) { _ = deliver(parcel) }
      look()
    }
  }

  /// Links end with the program. The broker keeps nothing, and what is on its way arrives all the same.
  private func kill() {
    totals.kills += 1
    if chance(30) { bench.journal.write() }
    parcels.removeAll { $0.origin != nil }
    bench.start()
  }

  private func note(_ order: ServoOrder) {
    guard case .prepare = order.action else { return }
    totals.motions += 1
    guard let challenge = bench.journal.medium.entries[order.step]?.challenge else {
      return violations.append("\(order.step) moves, and the journal knows no command")
    }
    motions[challenge, default: 0] += 1
    if motions[challenge]! > 1 { violations.append("\(order.step) moves twice for one command") }
  }

  /// A link gets answers to what came on it; everybody else gets states.
  private func look() {
    for (origin, statement) in bench.published.dropFirst(looked) {
      if let origin, !(statement.answer.map { arrived[origin.link, default: []].contains($0.command) } ?? false) {
        violations.append("link \(origin.link) is told what does not answer a command of it")
      }
    }
    looked = bench.published.count
  }
}
