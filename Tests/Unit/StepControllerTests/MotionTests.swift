import Domain
import StepController
import StepProtocol
import TestSupport
import Testing

/// Motions that something goes wrong with: every single fault leads to a safe state, and is told.
@Suite("Motion") struct MotionTests {
  let bench = Bench()

  private var moves: [Double] { bench.moves }

  private func failure(_ fault: Fault) -> String? { bench.failure(fault) }

  // MARK: - Stalls

  @Test("a controller that was held up for long ends the motion in a fault, and the servo has not moved on")
  func heldUp() {
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 400)
    let before = moves
    bench.wait(221)
    let statements = bench.handle(.tick)
    #expect(statements.map(\.fault) == [.timeout, .timeout])
    #expect(failure(.timeout) == "the controller was held up for 221 ms")
    #expect(moves == before)
    #expect(!bench.servo.orders.contains { $0.action == .release }, "whoever stands on the step must not fall")
  }

  @Test("ticks that come late cost time, and never a longer stride", arguments: [21, 60, 199] as [Int64])
  func late(delay: Int64) {
    _ = bench.open(as: bench.rider())
    while bench.controller.isMoving {
      bench.wait(delay)
      bench.handle(.tick)
    }
    let strides = zip([0] + moves, moves).map { $1 - $0 }
    #expect(strides.allSatisfy { $0 >= 0 && $0 <= bench.profile.longestStride + 1e-9 })
    // A motion of 50 strides at 60 ms lasts its 3 s; with longer ones it is given up.
    #expect(failure(.timeout) == (delay == 199 ? "the motion took longer than 3000 ms" : nil))
  }

  @Test("ticks that come early are no reason to be faster")
  func early() {
    _ = bench.open(as: bench.rider())
    for _ in 0..<100 {
      bench.wait(5)
      bench.handle(.tick)
    }
    #expect(moves.count == 100)
    #expect(zip(moves, moves.dropFirst(4)).allSatisfy { $1 - $0 <= bench.profile.longestStride + 1e-9 })
  }

  @Test("the servo gets no position before it has taken the last one, and one that is silent for long is a fault")
  func silentServo() {
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 100)
    bench.servo.isSlow = true
    let before = moves.count
    #expect(bench.run(for: 200).isEmpty)
    #expect(moves.count == before + 1)
    #expect(bench.run(for: 40).map(\.fault) == [.driver, .driver])
    #expect(failure(.driver) == "the servo did not answer for 220 ms")
    #expect(bench.servo.orders.last?.action == .release)
    #expect(!bench.controller.isAtRest, "it is not let go yet")
    #expect(bench.settle().isEmpty)
    #expect(bench.controller.isAtRest)
  }

  @Test("a slow servo of one step does not slow down the other's")
  func otherStep() {
    let rider = bench.rider()
    _ = bench.open(right, as: rider)
    bench.servo.slowSteps = [left]
    #expect(bench.open(left, as: rider).isEmpty)
    let ended = bench.run(for: 1_100)
    #expect(ended.filter { $0.step == right }.map(\.position) == [.open, .open])
  }

  @Test("a servo that is not ready before the deadline is given up, and what it says later moves nothing")
  func notReady() {
    let rider = bench.rider()
    bench.servo.isSlow = true
    #expect(bench.open(as: rider).isEmpty)
    #expect(bench.run(for: 4_980).isEmpty)
    #expect(bench.run(for: 20).refusal == .expired)
    #expect(failure(.driver) == "the servo was not ready before the command's deadline")
    #expect(bench.settle().isEmpty)
    #expect(!bench.controller.needsTicks)
    #expect(bench.journal.medium.entries[left]?.motion == nil)
  }

  @Test("a servo that cannot be let go is told")
  func cannotRelease() {
    _ = bench.open(as: bench.rider())
    bench.servo.failure = .failed("cannot write duty_cycle: Input/output error")
    bench.servo.releaseFailure = .failed("cannot write enable: Input/output error")
    let statements = bench.run(for: 20)
    #expect(statements.map(\.fault) == [.driver, .driver, .driver])
    #expect(failure(.driver) == "the servo is still driven: cannot write enable: Input/output error")
    #expect(bench.journal.medium.entries[left]?.fault == .driver)
    #expect(bench.controller.isAtRest)
  }

  // MARK: - Guards

  private let traffic = BlockReason(refusal: Refusal(.other("traffic"), retryCanHelp: true), "a tram comes")

  @Test("a guard is asked before a motion and at every tick, and what it holds or stops does not begin")
  func heldBack() {
    let rider = bench.rider()
    for clearance in [Clearance.hold(traffic), .stop(traffic)] {
      bench.motionGuard.clearance = clearance
      let refused = bench.open(as: rider)
      #expect(refused.map { $0.answer?.refusal } == [traffic.refusal])
    }
    #expect(moves.isEmpty)
    #expect(failure(.obstructed) == "a tram comes")
    #expect(bench.journal.medium.entries[left]?.motion == nil)
    bench.motionGuard.clearance = .clear
    _ = bench.open(as: rider)
    _ = bench.run(for: 100)
    // When it holds: by the request; when it stops or clears: by the request and before the motion; then by each tick.
    let asked = Array(repeating: false, count: 1 + 2 + 2) + Array(repeating: true, count: 5)
    #expect(bench.motionGuard.asked.map(\.hasBegun) == asked)
    #expect(bench.motionGuard.asked.allSatisfy { $0.step == left && $0.target == .open })
  }

  @Test("a motion that a guard stops for what is in the way gets no further pulse that way, backs off and is held")
  func stopped() {
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 500)
    bench.motionGuard.clearance = .stop(BlockReason("a foot"))
    let place = moves.last!
    #expect(bench.run(for: 300).map(\.fault) == [.obstructed, .obstructed])
    #expect(failure(.obstructed) == "a foot")
    #expect(moves.max() == place && abs(moves.last! - (place - 0.05)) < 1e-9)
    #expect(bench.servo.held[left] == moves.last)
  }

  @Test("a motion that a guard stops for another reason ends at the same tick, and is held")
  func stoppedForTraffic() {
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 500)
    bench.motionGuard.clearance = .stop(BlockReason(refusal: traffic.refusal, fault: .other("traffic"), "a tram comes"))
    let before = moves
    #expect(bench.run(for: 20).map(\.fault) == [.other("traffic"), .other("traffic")])
    #expect(moves == before && bench.servo.held[left] == before.last)
  }

  @Test("a motion that is held stands still and then goes on from there; one that is held for too long is given up")
  func held() {
    let rider = bench.rider()
    _ = bench.open(as: rider)
    _ = bench.run(for: 500)
    bench.motionGuard.clearance = .hold(traffic)
    let before = moves
    #expect(bench.run(for: 1_000).isEmpty)
    #expect(moves == before)
    bench.motionGuard.clearance = .clear
    #expect(bench.run(for: 600).map(\.position) == [.open, .open])
    #expect(zip(moves, moves.dropFirst()).allSatisfy { $1 - $0 <= bench.profile.longestStride + 1e-9 })

    _ = bench.close(as: rider)
    bench.motionGuard.clearance = .hold(traffic)
    #expect(bench.run(for: 3_020).map(\.fault) == [.timeout, .timeout])
  }

  // MARK: - A place that nobody knows

  @Test("after a crash a servo that is still held goes on from there")
  func readBack() {
    let rider = bench.rider()
    _ = bench.open(as: rider)
    _ = bench.run(for: 100)
    let place = moves.last!
    #expect(place > 0 && place < 0.1)
    bench.start()
    _ = bench.close(as: rider)
    #expect(bench.run(for: 1_100).map(\.position) == [.close, .close])
    #expect(bench.servo.longestThrow[left]! <= bench.profile.longestStride)
    #expect(moves.max() == place, "never thrown out")
  }

  @Test("after a power cut the step is turned by single pulses to the end that the rider wants, and never thrown")
  func approach() {
    let rider = bench.rider()
    for place in [0, 0.04, 0.5, 1] {
      _ = bench.open(as: rider)
      _ = bench.run(for: 100)
      bench.servo.powerCut()
      bench.servo.places[left] = place
      bench.start()
      #expect(bench.handle(.connected)[0].fault == .interrupted)
      let throwBefore = bench.servo.longestThrow[left]!
      let ordersBefore = bench.servo.orders.count
      _ = bench.close(as: rider)
      #expect(bench.run(for: Inching.duration - 20).isEmpty)
      #expect(bench.servo.orders.dropFirst(ordersBefore + 1).allSatisfy { $0.action == .inch(toward: 0) })
      #expect(bench.servo.orders.count - ordersBefore - 1 == Int(Inching.pulses))
      #expect(bench.run(for: 40).map(\.position) == [.close, .close])
      #expect(bench.servo.longestThrow[left]! <= max(throwBefore, bench.servo.inch) + 1e-9)
      #expect(bench.servo.places[left] == 0)
    }
  }

  @Test("a journal that was lost makes the place unknown")
  func lostJournal() {
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 1_100)
    bench.controller = Controller(
      vehicle: car,
      keys: .init(
        decryption: bench.decryption, signing: bench.signing, operatorKey: bench.operatorKey.verificationKey),
      policy: bench.policy, profile: bench.profile, journal: Journal())
    #expect(bench.handle(.connected).map(\.position) == [.unknown, .unknown])
    #expect(bench.handle(.connected).map(\.fault) == [.interrupted, .interrupted])
  }
}
