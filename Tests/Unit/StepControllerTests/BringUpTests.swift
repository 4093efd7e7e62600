import Domain
import StepProtocol
import TestSupport
import Testing

@testable import StepController

/// A servo that a technician leads, a clock, and inputs.
private final class Workbench {
  var bringUp: BringUp
  private(set) var clock: Int64 = 0
  private(set) var events: [BringUp.Message] = []
  /// What the servo was told, and when.
  private(set) var orders: [(clock: Int64, order: ServoOrder)] = []
  /// Whether the servo answers.
  var answers = true
  /// Where the output is held at the beginning.
  private let held: Double?

  init(held pulse: Int? = 1500, ends: ServoPulses = ServoPulses(), inputs: [SensorID] = []) {
    held = pulse.map { Double($0 - 1000) / 1000 }
    let wirings = inputs.map { ($0, InputWiring(.file("/\($0)"))) }
    bringUp = BringUp(left, ends: ends, inputs: Inputs(wirings: Dictionary(uniqueKeysWithValues: wirings)))
    for input in inputs { sense(input, input != .endOpen(left)) }
    handle(.started)
  }

  func handle(_ input: BringUp.Input) {
    for effect in bringUp.handle(input, at: clock) {
      switch effect {
      case .show(let message): events.append(message)
      case .servo(let order):
        orders.append((clock, order))
        guard answers else { continue }
        if case .prepare = order.action {
          handle(.servo(ServoReport(order, .ready(at: held))))
        } else {
          handle(.servo(ServoReport(order, .done)))
        }
      }
    }
  }

  func order(_ order: BringUp.Order) { handle(.ordered(order)) }
  func sense(_ sensor: SensorID, _ isActive: Bool?) { handle(.sensed(SensorReport(sensor, isActive: isActive))) }

  /// Lets time pass, in ticks.
  func run(for time: Int64, gap: Int64 = MotionProfile.tick) {
    let end = clock + time
    while clock < end {
      clock += gap
      handle(.tick)
    }
  }

  func rests() {
    for _ in 0..<10_000 where bringUp.isMoving { run(for: MotionProfile.tick) }
    #expect(!bringUp.isMoving)
  }

  /// The pulses that the servo was given to hold, microseconds.
  var pulses: [(clock: Int64, pulse: Double)] {
    orders.compactMap { if case .move(let place) = $0.order.action { ($0.clock, 1000 + place * 1000) } else { nil } }
  }

  /// The pulse may change by as much as in the slowest motion that stepd makes between its usual ends.
  func expectNoHaste(from first: Double, _ comment: Comment? = nil) {
    let stride = MotionProfile(travel: 20_000, limit: 60_000).longestStride * 1000 + 0.001
    var before = (clock: Int64(-1000), pulse: first)
    for now in pulses {
      #expect(abs(now.pulse - before.pulse) <= stride, comment)
      #expect(now.clock - before.clock >= MotionProfile.tick, comment)
      #expect((500...2500).contains(now.pulse), comment)
      before = now
    }
  }
}

@Suite("Bringing up a servo") struct BringUpTests {
  @Test("a servo that is held is led from there, one increment a key, and no faster than the slowest motion")
  func increments() {
    let bench = Workbench(held: 1500)
    #expect(bench.events == [.ready(1500)])
    #expect(bench.pulses.isEmpty)
    bench.order(.jog(by: 10))
    bench.rests()
    #expect(bench.events.last == .arrived(1510))
    bench.order(.jog(by: -1))
    bench.rests()
    #expect(bench.events.last == .arrived(1509))
    bench.order(.move(by: 300))
    bench.rests()
    bench.order(.go(to: 1234))
    bench.rests()
    #expect(bench.events.last == .arrived(1234))
    bench.expectNoHaste(from: 1500)
    #expect(bench.bringUp.readout.pulse == 1234)
  }

  @Test("it arrives at exactly the pulse that was asked for", arguments: [500, 501, 777, 1499, 1502, 1530, 2500])
  func exact(pulse: Int) throws {
    let bench = Workbench(held: 1500)
    bench.order(.go(to: pulse))
    bench.rests()
    #expect(abs(try #require(bench.pulses.last).pulse - Double(pulse)) < 1e-6)
    bench.expectNoHaste(from: 1500)
  }

  @Test("a key that is held down does not run ahead: it stops within its lead when the key is let go")
  func heldDown() throws {
    for (key, lead) in [(1, 30.0), (10, 30), (100, 100), (-10, 30)] {
      let bench = Workbench(held: 1500)
      for _ in 0..<150 {
        bench.order(.jog(by: key))
        bench.run(for: 40)
      }
      let released = try #require(bench.pulses.last).pulse
      bench.rests()
      #expect(abs(try #require(bench.pulses.last).pulse - released) <= lead + 1)
      #expect(abs(released - 1500) > 20)
      bench.expectNoHaste(from: 1500)
    }
  }

  @Test("nothing leads it out of 500 to 2500 µs")
  func bounds() {
    let bench = Workbench(held: 2490)
    for _ in 0..<20 {
      bench.order(.jog(by: 100))
      bench.run(for: 500)
    }
    bench.rests()
    #expect(bench.events.last == .arrived(2500))
    for pulse in [499, 2501, 0, -1, Int.max, Int.min] {
      bench.order(.go(to: pulse))
      #expect(bench.events.last == .refused("\(pulse) µs is not between 500 and 2500"))
    }
    bench.order(.move(by: -9999))
    bench.rests()
    #expect(bench.events.last == .arrived(500))
    bench.expectNoHaste(from: 2490)
  }

  @Test("a stop holds it at once, and an input that becomes inactive or is lost does so too")
  func held() throws {
    for stop in 0..<4 {
      let inputs: [SensorID] = [.clear(left), .enable, .standing]
      let bench = Workbench(held: 1500, inputs: inputs)
      bench.order(.go(to: 2000))
      bench.run(for: 4_000)
      let count = bench.orders.count
      let pulse = try #require(bench.bringUp.readout.pulse)
      #expect((1510...1990).contains(pulse))
      if stop < 3 { bench.sense(inputs[stop], stop == 1 ? nil : false) } else { bench.order(.stop) }
      #expect(!bench.bringUp.isMoving)
      bench.run(for: 4_000)
      #expect(bench.orders.count == count)
      let reasons = ["something is in the way", "the enable input is lost", "the vehicle moves"]
      #expect(bench.events.last == (stop < 3 ? .held(pulse, reasons[stop]) : .stopped(pulse)))
      guard stop < 3 else { continue }
      for order in [BringUp.Order.jog(by: 10), .go(to: 1500), .move(by: -1), .test] {
        bench.order(order)
        bench.run(for: 100)
        #expect(bench.events.last == .refused(reasons[stop]))
      }
      #expect(bench.orders.count == count)
      bench.sense(inputs[stop], true)
      bench.run(for: 1_000)
      #expect(bench.orders.count == count)
      bench.order(.go(to: 1500))
      bench.rests()
      #expect(bench.events.last == .arrived(1500))
      bench.expectNoHaste(from: 1500)
    }
  }

  @Test("an input that was not read yet holds it")
  func unread() {
    let bench = Workbench(held: 1500, inputs: [])
    bench.bringUp = BringUp(left, ends: ServoPulses(), inputs: Inputs(wirings: [.enable: InputWiring(.file("/e"))]))
    bench.handle(.started)
    bench.order(.jog(by: 10))
    #expect(bench.events.last == .refused("the enable input forbids motion"))
  }

  @Test("a place that nobody knows is approached by single pulses, and nothing else moves before")
  func finding() {
    let bench = Workbench(held: nil)
    #expect(bench.events == [.ready(nil)])
    for order in [BringUp.Order.jog(by: 10), .go(to: 1500), .test, .mark(.open)] { bench.order(order) }
    bench.run(for: 1_000)
    #expect(bench.orders.count == 1)
    bench.order(.find)
    bench.run(for: Inching.duration - MotionProfile.tick)
    #expect(bench.pulses.isEmpty)
    #expect(bench.orders.count == 1 + Int(Inching.pulses))
    #expect(bench.orders.dropFirst().allSatisfy { $0.order.action == .inch(toward: 0.5) })
    bench.run(for: 2 * MotionProfile.tick)
    #expect(bench.events.last == .arrived(1500))
    bench.order(.find)
    #expect(bench.events.last == .arrived(1500))
    #expect(!bench.bringUp.isMoving)
  }

  @Test("a stop while it is looked for lets it go")
  func stopFinding() {
    let bench = Workbench(held: nil, inputs: [.clear(left)])
    for isStop in [true, false] {
      bench.order(.find)
      bench.run(for: 3_000)
      if isStop { bench.order(.stop) } else { bench.sense(.clear(left), false) }
      #expect(bench.events.last == (isStop ? .stopped(nil) : .held(nil, "something is in the way")))
      #expect(bench.orders.last?.order.action == .release)
      let count = bench.orders.count
      bench.run(for: 3_000)
      #expect(bench.orders.count == count)
    }
  }

  @Test("the test goes along the slowest ramp and tells where each switch sees the step")
  func test() {
    let bench = Workbench(
      held: 1200, ends: ServoPulses(closed: 1000, open: 1800), inputs: [.endOpen(left), .endClosed(left), .clear(left)])
    bench.sense(.endClosed(left), false)
    bench.order(.test)
    while bench.bringUp.isMoving, bench.clock < 200_000 {
      bench.run(for: MotionProfile.tick)
      guard let pulse = bench.bringUp.readout.pulse else { continue }
      let inputs = bench.bringUp.readout.inputs
      let (closed, open) = (inputs[1].isActive == true, inputs[2].isActive == true)
      if (pulse <= 1010) != closed { bench.sense(.endClosed(left), pulse <= 1010) }
      if (pulse >= 1780) != open { bench.sense(.endOpen(left), pulse >= 1780) }
    }
    #expect(
      bench.events.suffix(4) == [
        .reached(.close, sawAt: 1010), .reached(.open, sawAt: 1780), .reached(.close, sawAt: 1010), .passed,
      ])
    bench.expectNoHaste(from: 1200)
    #expect(bench.clock >= 60_000)
    #expect(bench.bringUp.position(by: bench.bringUp.ends) == .close)
  }

  @Test("the test stops where a switch does not see the step, and needs none")
  func missed() {
    let bench = Workbench(held: 1000, inputs: [.endOpen(left)])
    bench.order(.test)
    bench.rests()
    #expect(bench.events.suffix(2) == [.reached(.close, sawAt: nil), .missed(.open)])
    #expect(bench.bringUp.readout.pulse == 2000)
    let bare = Workbench(held: 2000, ends: ServoPulses(closed: 2000, open: 1000))
    bare.order(.test)
    bare.rests()
    #expect(bare.events.last == .passed)
    bare.expectNoHaste(from: 2000)
  }

  @Test("a servo that does not answer, or fails, is let go")
  func silent() {
    let bench = Workbench(held: 1500)
    bench.order(.go(to: 1600))
    bench.answers = false
    bench.run(for: 1_000)
    #expect(bench.events.last == .held(nil, "the servo did not answer for 220 ms"))
    #expect(bench.orders.last?.order.action == .release)
    bench.order(.go(to: 1600))
    bench.run(for: 1_000)
    #expect(bench.orders.last?.order.action == .release)
    #expect(bench.bringUp.position(by: ServoPulses(closed: 1500, open: 2000)) == .unknown)
    let failing = Workbench(held: 1500)
    failing.answers = false
    failing.order(.go(to: 1600))
    failing.run(for: 20)
    failing.handle(.servo(ServoReport(failing.orders.last!.order, .failed(.failed("gone")))))
    #expect(failing.events.last == .held(nil, "gone"))
    #expect(failing.orders.last?.order.action == .release)
  }

  @Test("a program that was held up goes no further")
  func heldUp() {
    let bench = Workbench(held: 1500)
    bench.order(.go(to: 1600))
    bench.run(for: 2_000)
    let count = bench.orders.count
    bench.run(for: 900, gap: 300)
    #expect(bench.orders.count == count)
    guard case .held(_, "the program was held up for 300 ms")? = bench.events.last else {
      Issue.record("\(bench.events)")
      return
    }
  }

  @Test("the end lets it go wherever it is, and says at which end of the configuration that was")
  func ended() {
    let bench = Workbench(held: 1500)
    bench.order(.go(to: 2000))
    bench.rests()
    bench.order(.mark(.open))
    bench.handle(.ended)
    #expect(bench.events.suffix(2) == [.marked(.open, 2000), .released])
    #expect(bench.orders.last?.order.action == .release)
    #expect(bench.bringUp.position(by: ServoPulses()) == .open)
    #expect(bench.bringUp.position(by: ServoPulses(closed: 600, open: 1999)) == .unknown)
    let moving = Workbench(held: 1500)
    moving.order(.go(to: 2000))
    moving.run(for: 1_000)
    moving.handle(.ended)
    moving.order(.jog(by: 10))
    moving.run(for: 1_000)
    #expect(moving.orders.last?.order.action == .release)
    #expect(moving.bringUp.position(by: ServoPulses()) == .unknown)
  }

  @Test("an end is noted where it stands, and only there")
  func marks() {
    let bench = Workbench(held: 1500)
    bench.order(.go(to: 1300))
    bench.run(for: 500)
    bench.order(.mark(.close))
    #expect(bench.events.last == .refused("let the servo stand still at the end first"))
    bench.rests()
    bench.order(.mark(.close))
    #expect(bench.bringUp.ends == ServoPulses(closed: 1300, open: 2000))
    bench.order(.mark(.open))
    bench.order(.test)
    #expect(bench.events.last == .refused("both ends are at 1300 µs"))
  }

  /// Whatever is typed, whenever ticks come, however slow the servo and whatever inputs do.
  @Test("nothing that is typed makes it faster than the slowest motion", arguments: 1...20)
  func random(seed: Int) {
    var chance = SplitMix(UInt64(seed))
    let inputs: [SensorID] = [.clear(left), .enable, .standing, .endOpen(left), .endClosed(left)]
    let first = Int.random(in: 500...2500, using: &chance)
    let bench = Workbench(held: first, inputs: inputs)
    var hindered = false
    for _ in 0..<400 {
      let count = bench.pulses.count
      switch Int.random(in: 0..<12, using: &chance) {
      case 0: bench.order(.stop)
      case 1: bench.order(.go(to: Int.random(in: 300...2700, using: &chance)))
      case 2: bench.order(.test)
      case 3: bench.order(.mark(Bool.random(using: &chance) ? .open : .close))
      case 4: bench.order(.move(by: Int.random(in: -500...500, using: &chance)))
      case 5:
        let input = inputs.randomElement(using: &chance)!
        let level = [true, true, true, false, nil].randomElement(using: &chance)!
        bench.sense(input, input == .endOpen(left) || input == .endClosed(left) ? level == true : level)
      default:
        let key = [1, -1, 10, -10, 100, -100].randomElement(using: &chance)!
        for _ in 0..<Int.random(in: 1...40, using: &chance) { bench.order(.jog(by: key)) }
      }
      let levels = Dictionary(uniqueKeysWithValues: bench.bringUp.readout.inputs.map { ($0.sensor, $0.isActive) })
      hindered = [SensorID.clear(left), .enable, .standing].contains { levels[$0]! != true }
      let ordered = bench.pulses.count
      let gap: Int64 = [20, 20, 20, 25, 60, 190, 250].randomElement(using: &chance)!
      bench.run(for: Int64.random(in: 20...600, using: &chance), gap: gap)
      if hindered { #expect(bench.pulses.count == ordered && ordered == count, "seed \(seed)") }
    }
    bench.expectNoHaste(from: Double(first), "seed \(seed)")
    bench.handle(.ended)
    #expect(bench.orders.last?.order.action == .release, "seed \(seed)")
  }
}
