import Cryptography
import Domain
import StepController
import StepProtocol
import TestSupport
import Testing

/// Who may move what under whom: stop, turn round, reservation, and how often.
@Suite("Stop and reverse") struct CommandTests {
  let bench = Bench()

  // MARK: - Stop

  @Test("any rider whose token covers the step stops it at once, without a challenge or a proof; the step is held")
  func stops() {
    let (alice, bob) = (bench.rider(), bench.rider())
    let begun = bench.open(as: alice)
    _ = bench.run(for: 500)
    let before = bench.moves
    let statements = bench.stop(as: bob)
    #expect(statements.map(\.phase) == [.idle, .idle, .idle])
    #expect(statements.map(\.position) == [.unknown, .unknown, .unknown])
    #expect(statements[0].answer == nil)
    #expect(statements[1].answer?.command == begun[0].answer?.command, "whoever moved it hears how it ended")
    #expect(statements[2].answer?.outcome == .obeyed)
    #expect(bench.run(for: 1_000).isEmpty)
    #expect(bench.moves == before && bench.servo.held[left] == before.last)
    #expect(bench.journal.medium.entries[left]?.position == .unknown)
    #expect(bench.journal.medium.entries[left]?.motion == nil)
  }

  @Test("a step that was stopped goes on from where it is held, by a new command, no faster than ever")
  func goesOn() {
    let rider = bench.rider()
    _ = bench.open(as: rider)
    _ = bench.run(for: 500)
    _ = bench.stop(as: rider)
    _ = bench.close(as: rider)
    #expect(bench.run(for: 1_100).map(\.position) == [.close, .close])
    #expect(bench.servo.longestThrow[left]! <= bench.profile.longestStride + 1e-9)
  }

  @Test("a stop of a step at rest is answered as it stands, also in a fault")
  func atRest() {
    let rider = bench.rider()
    #expect(bench.stop(as: rider).map(\.position) == [.close])
    _ = bench.open(as: rider)
    bench.start()
    #expect(bench.stop(as: rider).map(\.fault) == [.interrupted])
    #expect(bench.servo.orders.count == 1)
  }

  @Test("a stop needs the epoch of this run, is taken once, is not retained, and is for steps of the token")
  func checked() {
    let rider = bench.rider()
    _ = bench.open(as: rider)
    #expect(bench.stop(as: rider, epoch: randomBytes(16)).refusal == .expired)
    #expect(bench.stop(as: bench.rider(steps: [right])).refusal == .wrongStep)
    #expect(bench.stop(as: bench.rider(expires: 0)).refusal == .tokenExpired)
    let payload = rider.command(left, .stop(epoch: bench.epoch))
    #expect(bench.send(payload, retained: true).refusal == .retained)
    #expect(bench.send(payload).refusal == .replayed)
    #expect(bench.controller.isMoving)
    let second = rider.command(left, .stop(epoch: bench.epoch))
    #expect(bench.send(second).count == 3)
    _ = bench.open(as: rider)
    #expect(bench.send(second).refusal == .replayed, "a recorded stop holds nobody up")
    #expect(bench.controller.isMoving)
  }

  @Test("after a stop no older command moves the step, neither one on its way nor one that waits for journal or servo")
  func olderCommands() {
    let (alice, bob) = (bench.rider(), bench.rider())
    let (hers, his) = (bench.move(.open, left, as: alice), bench.move(.open, left, as: bob))
    _ = bench.stop(as: bob)
    for (rider, move) in [(alice, hers), (bob, his)] {
      #expect(bench.send(rider.command(left, .move(move))).refusal == .expired)
    }
    bench.journal.isSlow = true
    _ = bench.open(as: alice)
    #expect(bench.stop(as: bob).map { $0.answer?.refusal?.code } == [.expired, nil])
    bench.journal.isSlow = false
    _ = bench.settle()
    bench.servo.isSlow = true
    _ = bench.open(as: alice)
    #expect(bench.stop(as: bob).map { $0.answer?.refusal?.code } == [.expired, nil])
    bench.servo.isSlow = false
    _ = bench.settle()
    #expect(bench.run(for: 100).isEmpty && bench.moves.isEmpty)
    #expect(bench.handle(.connected).map(\.position) == [.close, .close], "it never moved, so its place is known")
    #expect(bench.journal.medium.entries[left]?.motion == nil)
  }

  @Test("a stop of one step leaves the other's motion and challenges alone")
  func otherStep() {
    let rider = bench.rider()
    _ = bench.open(right, as: rider)
    let move = bench.move(.close, right, as: rider)
    _ = bench.stop(left, as: rider)
    #expect(bench.send(rider.command(right, .move(move)), to: right).first?.phase == .moving)
  }

  @Test("an approach from a place that nobody knows is stopped too")
  func approach() {
    let rider = bench.rider()
    _ = bench.open(as: rider)
    _ = bench.run(for: 100)
    bench.servo.powerCut()
    bench.start()
    _ = bench.close(as: rider)
    _ = bench.run(for: 1_000)
    let before = bench.servo.orders.count
    #expect(bench.stop(as: rider).map(\.phase) == [.idle, .idle, .idle])
    #expect(bench.run(for: 2_000).isEmpty && bench.servo.orders.count == before)
  }

  @Test("a servo that does not take its last place is told, though the motion was stopped")
  func lastOrderFails() {
    let rider = bench.rider()
    _ = bench.open(as: rider)
    bench.servo.isSlow = true
    _ = bench.run(for: 20)
    _ = bench.stop(as: rider)
    bench.servo.failure = .failed("gone")
    #expect(bench.settle().map(\.fault) == [.driver])
  }

  // MARK: - Turning round

  @Test("the rider for whom a step moves turns it round: it slows down, returns, and never exceeds the profile")
  func turnsRound() {
    for time: Int64 in [20, 100, 300, 500, 800, 960] {
      let bench = Bench()
      let rider = bench.rider()
      let begun = bench.open(as: rider)
      _ = bench.run(for: time)
      let turned = bench.close(as: rider)
      #expect(turned.map(\.phase) == [.moving, .moving])
      #expect(turned.map(\.position) == [.unknown, .unknown], "it comes from neither end")
      #expect(bench.journal.medium.entries[left]?.motion == .close)
      let ended = bench.run(for: 1_500)
      #expect(ended.map(\.position) == [.close, .close, .close])
      #expect(ended.map { $0.answer?.command } == [nil, begun[0].answer?.command, turned[0].answer?.command])
      let strides = zip([0] + bench.moves, bench.moves).map { $1 - $0 }
      #expect(strides.allSatisfy { abs($0) <= bench.profile.longestStride + 1e-9 })
      // Nowhere a jerk: no stride differs from the one before by more than the ramp does.
      let top = bench.profile.longestStride * 20 / (0.25 * 1_000)
      #expect(zip(strides, strides.dropFirst()).allSatisfy { abs($1 - $0) <= top * 1.1 }, "after \(time) ms")
      #expect(bench.moves.max()! <= 1 && bench.moves.last == 0)
    }
  }

  @Test("a motion that was turned round can be turned round again, also while it still slows down")
  func turnsTwice() {
    let rider = bench.rider()
    _ = bench.open(as: rider)
    _ = bench.run(for: 400)
    _ = bench.close(as: rider)
    _ = bench.run(for: 40)
    _ = bench.open(as: rider)
    let ended = bench.run(for: 1_500)
    #expect(ended.map(\.position) == [.open, .open, .open, .open])
    #expect(zip(bench.moves, bench.moves.dropFirst()).allSatisfy { $1 >= $0 }, "it never went back")
  }

  @Test("from another device, or to the same end, it is busy")
  func busy() {
    let (alice, bob) = (bench.rider(), bench.rider())
    _ = bench.open(as: alice)
    _ = bench.run(for: 300)
    #expect(bench.close(as: bob).refusal == .busy)
    #expect(bench.open(as: alice).refusal == .busy)
    #expect(bench.run(for: 800).map(\.position) == [.open, .open])
  }

  @Test("a motion that is turned round and cut by a crash is interrupted, and its command is used up")
  func crash() {
    let rider = bench.rider()
    _ = bench.open(as: rider)
    _ = bench.run(for: 300)
    let payload = rider.command(left, .move(bench.move(.close, left, as: rider)))
    _ = bench.send(payload)
    bench.start()
    #expect(bench.handle(.connected)[0].fault == .interrupted)
    #expect(bench.send(payload).refusal == .replayed)
  }

  @Test("a step in an approach is turned round as well")
  func turnsApproach() {
    let rider = bench.rider()
    _ = bench.open(as: rider)
    bench.servo.powerCut()
    bench.start()
    _ = bench.open(as: rider)
    _ = bench.run(for: 1_000)
    _ = bench.close(as: rider)
    #expect(bench.run(for: Inching.duration + 40).map(\.position) == [.close, .close, .close])
  }

  // MARK: - Who may close

  @Test("nobody but the rider who opened a step closes it in the first 30 seconds")
  func reserved() {
    let (alice, bob) = (bench.rider(), bench.rider())
    _ = bench.open(as: alice)
    _ = bench.run(for: 1_100)
    #expect(bench.close(as: bob).refusal == .reserved)
    bench.wait(29_000)
    #expect(bench.close(as: bob).refusal == .reserved)
    bench.wait(1_000)
    #expect(bench.close(as: bob).map(\.phase) == [.moving, .moving])

    _ = bench.run(for: 1_100)
    _ = bench.open(as: alice)
    _ = bench.run(for: 1_100)
    #expect(bench.close(as: alice).map(\.phase) == [.moving, .moving], "the rider who opened it may")
  }

  @Test("the policy says for how long; a stop is never reserved, nor is a step that did not reach its end")
  func reserve() {
    bench.policy = Policy(methods: [.beacon], zone: .near, proofAge: 10_000, reserve: 0)
    bench.start()
    let (alice, bob) = (bench.rider(), bench.rider())
    _ = bench.open(as: alice)
    _ = bench.run(for: 1_100)
    #expect(bench.close(as: bob).map(\.phase) == [.moving, .moving])
    _ = bench.run(for: 100)
    bench.policy = Policy(methods: [.beacon], zone: .near, proofAge: 10_000, reserve: 600_000)
    bench.start()
    _ = bench.open(as: alice)
    _ = bench.run(for: 300)
    _ = bench.stop(as: bob)
    #expect(bench.close(as: bob).map(\.phase) == [.moving, .moving])
  }

  @Test("after a restart nobody holds a reservation")
  func restart() {
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 1_100)
    bench.start()
    #expect(bench.close(as: bench.rider()).map(\.phase) == [.moving, .moving])
  }

  @Test("a device has ten motions a minute; another's are its own, and a stop does not count")
  func tooOften() {
    bench.profile = MotionProfile(travel: 200, limit: 3_000)
    bench.start()
    let (alice, bob) = (bench.rider(), bench.rider())
    for index in 0..<10 {
      #expect((index % 2 == 0 ? bench.open(as: alice) : bench.close(as: alice)).count == 2)
      _ = bench.run(for: 240)
    }
    #expect(bench.open(as: alice).refusal == .tooOften)
    #expect(bench.stop(as: alice).map(\.phase) == [.idle])
    #expect(bench.open(as: bob).count == 2)
    _ = bench.run(for: 240)
    bench.wait(60_000)
    #expect(bench.close(as: alice).count == 2)
  }

  // MARK: - A journal that hangs

  @Test("a journal that does not answer within a second: refused, nothing moves, and what it says later moves nothing")
  func hungJournal() {
    let rider = bench.rider()
    bench.journal.isSlow = true
    #expect(bench.open(as: rider).isEmpty)
    #expect(bench.run(for: 980).isEmpty)
    #expect(bench.run(for: 20).refusal == .unavailable)
    #expect(bench.events.contains(.notJournaled(left, "it has not answered for 1000 ms")))
    #expect(!bench.controller.needsTicks && !bench.controller.isAtRest)
    bench.journal.isSlow = false
    #expect(bench.settle().isEmpty)
    #expect(bench.controller.isAtRest && bench.servo.orders.isEmpty)
    #expect(bench.journal.medium.entries[left]?.motion == nil)
    #expect(bench.open(as: rider).count == 2)
  }
}
