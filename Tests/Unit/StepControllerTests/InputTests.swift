import Domain
import StepController
import StepProtocol
import TestSupport
import Testing

/// Inputs of the vehicle: obstruction, ends, a vehicle that moves, a stop button; and each of them lost.
@Suite("Inputs") struct InputTests {
  let bench = Bench()

  private var state: Statement { bench.handle(.connected)[0] }

  private func opened(by rider: Rider) {
    _ = bench.open(as: rider)
    _ = bench.run(for: 1_000)
    bench.sense(.endClosed(left), false)
    bench.sense(.endOpen(left), true)
    _ = bench.run(for: 100)
  }

  // MARK: - Obstruction

  @Test("obstructed: no pulse goes on that way, the step backs off a little and slowly, is held, and says so at rest")
  func obstructed() {
    bench.wire(.clear(left))
    let rider = bench.rider()
    for target in [Command.Move.Target.open, .close] {
      _ = bench.send(rider.command(left, .move(bench.move(target, left, as: rider))))
      _ = bench.run(for: 500)
      let place = bench.moves.last!
      let before = bench.moves.count
      #expect(bench.sense(.clear(left), false).isEmpty, "it still moves")
      #expect(bench.controller.isMoving)
      #expect(bench.failure(.obstructed) == "something is in the way", "the log has it at once")
      let statements = bench.run(for: 300)
      #expect(statements.map(\.fault) == [.obstructed, .obstructed])
      #expect(statements.map(\.position) == [.unknown, .unknown])
      let retreat = [place] + bench.moves.dropFirst(before)
      let sign: Double = target == .open ? -1 : 1
      let strides = zip(retreat, retreat.dropFirst()).map { ($1 - $0) * sign }
      #expect(strides.allSatisfy { $0 > 0 && $0 < bench.profile.longestStride / 2 })
      #expect(abs(retreat.last! - place - sign * 0.05) < 1e-9)
      #expect(bench.servo.held[left] == retreat.last)
      #expect(bench.run(for: 1_000).isEmpty, "it is not tried again")

      #expect(bench.close(as: rider).refusal == .obstructed)
      bench.sense(.clear(left), true)
      #expect(bench.run(for: 1_000).isEmpty, "not even when nothing is in the way any more")
      #expect(state.fault == .obstructed)
      _ = bench.open(as: rider)
      #expect(bench.run(for: 1_100).map(\.position) == [.open, .open])
    }
  }

  @Test("it does not back off past where it began, and from nowhere it does not back off")
  func retreatIsBounded() {
    bench.wire(.clear(left))
    let rider = bench.rider()
    _ = bench.open(as: rider)
    _ = bench.run(for: 60)
    bench.sense(.clear(left), false)
    _ = bench.run(for: 300)
    #expect(bench.moves.last == 0 && bench.moves.min() == 0)
    bench.sense(.clear(left), true)
    _ = bench.open(as: rider)
    let before = bench.moves.count
    #expect(bench.sense(.clear(left), false).map(\.fault) == [.obstructed, .obstructed])
    #expect(bench.run(for: 300).isEmpty && bench.moves.count == before)
  }

  @Test("while it turns round it backs off from what is in the way as well")
  func obstructedInTurn() {
    bench.wire(.clear(left))
    let rider = bench.rider()
    _ = bench.open(as: rider)
    _ = bench.run(for: 500)
    _ = bench.close(as: rider)
    _ = bench.run(for: 40)
    let place = bench.moves.last!
    bench.sense(.clear(left), false)
    #expect(bench.run(for: 300).map(\.fault) == [.obstructed, .obstructed, .obstructed])
    #expect(bench.moves.max() == place)
  }

  @Test("something in the way in an approach: no more pulses, and the servo is let go, because nobody knows the place")
  func obstructedApproach() {
    let rider = bench.rider()
    _ = bench.open(as: rider)
    bench.servo.powerCut()
    bench.wire(.clear(left))
    _ = bench.close(as: rider)
    _ = bench.run(for: 1_000)
    #expect(bench.sense(.clear(left), false).map(\.fault) == [.obstructed, .obstructed])
    #expect(bench.servo.orders.last?.action == .release)
    #expect(bench.run(for: 1_000).isEmpty)
  }

  @Test("a command while it backs off is busy, and a stop ends that too, in the same fault")
  func stopInRetreat() {
    bench.wire(.clear(left))
    let rider = bench.rider()
    _ = bench.open(as: rider)
    _ = bench.run(for: 500)
    bench.sense(.clear(left), false)
    _ = bench.run(for: 40)
    #expect(bench.close(as: rider).refusal == .busy)
    #expect(bench.stop(as: rider).map(\.fault) == [.obstructed, .obstructed, .obstructed])
    let before = bench.moves
    #expect(bench.run(for: 300).isEmpty && bench.moves == before)
  }

  @Test("an input that was not read yet, or is lost, counts as inactive; a lost one is told")
  func notRead() {
    let rider = bench.rider()
    for sensor in [SensorID.clear(left), .enable, .standing] {
      bench.inputs = Inputs(wirings: [sensor: InputWiring(.file("/dev/null"))])
      bench.start()
      let code: RefusalCode = sensor == .enable ? .stopped : sensor == .standing ? .vehicleMoving : .obstructed
      #expect(bench.open(as: rider).refusal == code)
      bench.sense(sensor, true)
      #expect(bench.open(as: rider).count == 2)
      _ = bench.run(for: 500)
      bench.sense(sensor, nil)
      #expect(bench.events.contains(.lost(sensor)))
      _ = bench.run(for: 300)
      #expect(!bench.controller.isMoving)
      #expect(state.fault == (sensor == .standing ? .vehicleMoving : .sensor))
      #expect(bench.open(as: rider).refusal == code)
      bench.sense(sensor, true)
      _ = bench.close(as: rider)
      #expect(bench.run(for: 1_100).map(\.position) == [.close, .close])
    }
    #expect(bench.sense(.clear(right), false).isEmpty, "one that is not wired says nothing")
  }

  // MARK: - Ends

  @Test("with switches a motion has ended when its end is seen, and early if that is seen early")
  func ends() {
    bench.wire(.endOpen(left), .endClosed(left))
    #expect(state.position == .close)
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 700)
    bench.sense(.endClosed(left), false)
    let place = bench.moves.last!
    #expect(bench.sense(.endOpen(left), true).map(\.position) == [.open, .open])
    #expect(bench.run(for: 500).isEmpty)
    #expect(bench.moves.last == place && bench.servo.held[left] == place)
  }

  @Test("an end that is not seen within 500 ms is missed; the step is held")
  func endMissed() {
    bench.wire(.endOpen(left), .endClosed(left))
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 500)
    bench.sense(.endClosed(left), false)
    #expect(bench.run(for: 1_000).isEmpty, "it still waits")
    let statements = bench.run(for: 60)
    #expect(statements.map(\.fault) == [.endMissed, .endMissed])
    #expect(statements.map(\.position) == [.unknown, .unknown])
    #expect(bench.servo.held[left] == 1)
  }

  @Test("an end that is seen while the step waits for it is not missed")
  func endSeenLate() {
    bench.wire(.endOpen(left), .endClosed(left))
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 1_300)
    bench.sense(.endClosed(left), false)
    #expect(bench.sense(.endOpen(left), true).map(\.position) == [.open, .open])
  }

  @Test("where one end alone has a switch, a step that does not leave it has not moved")
  func stuck() {
    bench.wire(.endClosed(left))
    _ = bench.open(as: bench.rider())
    let statements = bench.run(for: 1_600)
    #expect(statements.map(\.fault) == [.endMissed, .endMissed])
    #expect(statements.map(\.position) == [.close, .close])
  }

  @Test("both ends at once: the motion stops, the fault is told as long as it is so, and nothing begins")
  func bothEnds() {
    bench.wire(.endOpen(left), .endClosed(left))
    let rider = bench.rider()
    _ = bench.open(as: rider)
    _ = bench.run(for: 400)
    let before = bench.moves
    #expect(bench.sense(.endOpen(left), true).map(\.fault) == [.sensor, .sensor])
    #expect(bench.failure(.sensor) == "the step is seen at both ends")
    #expect(bench.run(for: 100).isEmpty && bench.moves == before)
    #expect(state.position == .unknown)
    #expect(bench.close(as: rider).refusal == .unavailable)
    bench.sense(.endOpen(left), false)
    _ = bench.close(as: rider)
    #expect(bench.run(for: 40).map(\.position) == [.close, .close], "the switch sees it there already")
  }

  @Test(
    "at rest: a step that leaves its end is nowhere, one that comes back is there, both ends or a lost one is a fault")
  func atRest() {
    bench.wire(.endOpen(left), .endClosed(left))
    #expect(bench.sense(.endClosed(left), false).map(\.position) == [.unknown])
    #expect(state.phase == .idle)
    #expect(bench.journal.medium.entries[left]?.position == .unknown, "also after a restart")
    #expect(bench.sense(.endClosed(left), true).map(\.position) == [.close])
    #expect(bench.sense(.endClosed(left), true).isEmpty, "what does not change is not told again")
    #expect(bench.sense(.endOpen(left), true).map(\.fault) == [.sensor])
    #expect(bench.sense(.endOpen(left), false).map(\.phase) == [.idle])
    let lost = bench.sense(.endClosed(left), nil)
    #expect(lost.map(\.fault) == [.sensor])
    #expect(lost.map(\.position) == [.unknown])
    #expect(bench.open(as: bench.rider()).refusal == .unavailable)
    #expect(bench.sense(.endClosed(left), true).map(\.position) == [.close])
  }

  @Test("after a crash in a motion the switches say where the step is, and a step known to be there is not thrown")
  func afterCrash() {
    let rider = bench.rider()
    _ = bench.open(as: rider)
    _ = bench.run(for: 100)
    bench.servo.powerCut()
    bench.servo.places[left] = 0
    bench.wire(.endOpen(left), .endClosed(left))
    #expect(state.position == .close && state.fault == .interrupted)
    _ = bench.open(as: rider)
    _ = bench.run(for: 200)
    #expect(bench.servo.longestThrow[left]! <= bench.profile.longestStride + 1e-9)
  }

  @Test("a journal does not outvote a switch: what was moved by hand while the controller was off is seen")
  func movedByHand() {
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 1_100)
    bench.wire(.endOpen(left), .endClosed(left))
    #expect(state.position == .close)
  }

  // MARK: - The vehicle moves

  @Test("a vehicle that moves: no step opens, one that opens stops, and closing is allowed")
  func interlock() {
    bench.wire(.standing, .clear(left))
    let rider = bench.rider()
    _ = bench.open(as: rider)
    _ = bench.run(for: 500)
    let place = bench.moves.last!
    #expect(bench.sense(.standing, false).map(\.fault) == [.vehicleMoving, .vehicleMoving])
    #expect(bench.run(for: 500).isEmpty && bench.moves.last == place && bench.servo.held[left] == place)
    #expect(bench.open(as: rider).refusal == .vehicleMoving)
    #expect(bench.open(right, as: rider).refusal == .vehicleMoving)
    _ = bench.close(as: rider)
    #expect(bench.run(for: 1_100).map(\.phase) == [.idle, .idle])
    #expect(bench.sense(.standing, true).isEmpty)
  }

  @Test("warn: the fault is told for a step that is out, until the vehicle stands")
  func warns() {
    bench.wire(.standing)
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 1_100)
    let statements = bench.sense(.standing, false)
    #expect(statements.map(\.step) == [left], "the other one is closed")
    #expect(statements.map(\.fault) == [.vehicleMoving] && statements[0].position == .open)
    #expect(bench.run(for: 2_000).isEmpty && bench.servo.motions == 1)
    #expect(bench.sense(.standing, true).map(\.phase) == [.idle])
  }

  @Test("a motion that was ended because the vehicle moved: the fault goes when the vehicle stands")
  func warnsAfterStop() {
    bench.wire(.standing, .endClosed(left))
    _ = bench.open(as: bench.rider())
    #expect(bench.sense(.standing, false).map(\.fault) == [.vehicleMoving, .vehicleMoving])
    #expect(bench.sense(.standing, true).map(\.phase) == [.idle])
  }

  @Test("retract: the controller closes what is out, whoever opened it, and stops for what is in the way")
  func retracts() {
    bench.wire(.standing, .clear(left), .enable, interlock: Interlock(onMoving: .retract))
    let rider = bench.rider()
    _ = bench.open(as: rider)
    _ = bench.run(for: 1_100)
    #expect(bench.sense(.standing, false).map(\.phase) == [.fault, .moving])
    #expect(bench.events.contains(.retracts(left)))
    #expect(bench.close(as: rider).refusal == .busy && bench.open(as: rider).refusal == .busy)
    #expect(bench.run(for: 1_100).map(\.position) == [.close])
    #expect(bench.servo.motions == 2)

    bench.sense(.standing, true)
    _ = bench.open(as: rider)
    _ = bench.run(for: 1_100)
    bench.sense(.standing, false)
    _ = bench.run(for: 300)
    bench.sense(.clear(left), false)
    #expect(bench.run(for: 400).map(\.fault) == [.vehicleMoving])
    bench.sense(.clear(left), true)
    #expect(bench.run(for: 1_000).isEmpty, "what was in the way once is not tried again but by a command")
    _ = bench.close(as: rider)
    #expect(bench.run(for: 1_100).map(\.position) == [.close, .close])
  }

  @Test("retract: an opening motion ends, its rider hears of it, and the step is closed")
  func retractsOpening() {
    bench.wire(.standing, interlock: Interlock(onMoving: .retract))
    let begun = bench.open(as: bench.rider())
    _ = bench.run(for: 500)
    let statements = bench.sense(.standing, false)
    #expect(statements.map(\.phase) == [.fault, .fault, .moving])
    #expect(statements[1].answer?.command == begun[0].answer?.command)
    #expect(bench.run(for: 1_100).map(\.position) == [.close])
    #expect(bench.servo.longestThrow[left]! <= bench.profile.longestStride + 1e-9)
  }

  @Test("retract waits for what hinders it, and a rider's stop ends it for as long as the vehicle moves")
  func retractWaits() {
    bench.wire(.standing, .clear(left), .enable, interlock: Interlock(onMoving: .retract))
    let rider = bench.rider()
    _ = bench.open(as: rider)
    _ = bench.run(for: 1_100)
    bench.sense(.clear(left), false)
    bench.sense(.enable, false)
    #expect(bench.sense(.standing, false).map(\.fault) == [.vehicleMoving])
    #expect(bench.sense(.enable, true).isEmpty)
    #expect(bench.sense(.clear(left), true).map(\.phase) == [.moving])
    _ = bench.run(for: 300)
    #expect(bench.stop(as: rider).map(\.fault) == [.vehicleMoving, .vehicleMoving])
    bench.sense(.clear(left), false)
    bench.sense(.clear(left), true)
    #expect(bench.run(for: 1_000).isEmpty)
  }

  @Test("retract: a vehicle that stands again before the step moves leaves it where it is; one that moves goes on")
  func standsAgain() {
    bench.wire(.standing, interlock: Interlock(onMoving: .retract))
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 1_100)
    bench.servo.isSlow = true
    bench.sense(.standing, false)
    bench.sense(.standing, true)
    bench.servo.isSlow = false
    #expect(bench.settle().isEmpty)
    #expect(state.position == .open && !bench.controller.needsTicks)
    bench.sense(.standing, false)
    _ = bench.run(for: 300)
    #expect(bench.sense(.standing, true).isEmpty)
    #expect(bench.run(for: 1_000).map(\.position) == [.close])
  }

  @Test("retract: nothing moves at the start, even if the vehicle moves then")
  func retractAtStart() {
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 1_100)
    bench.inputs = Inputs(
      wirings: [.standing: InputWiring(.file("/dev/null"))], interlock: Interlock(onMoving: .retract))
    bench.start()
    bench.handle(.connected)
    bench.sense(.standing, false)
    #expect(bench.run(for: 1_000).isEmpty && bench.servo.motions == 1)
    #expect(state.fault == .vehicleMoving)
    bench.sense(.standing, true)
    #expect(bench.sense(.standing, false).map(\.phase) == [.fault, .moving])
  }

  @Test("retract: without a journal nothing moves, and that is tried once")
  func retractWithoutJournal() {
    bench.wire(.standing, interlock: Interlock(onMoving: .retract))
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 1_100)
    bench.journal.failure = "No space left on device"
    #expect(bench.sense(.standing, false).map(\.fault) == [.vehicleMoving])
    #expect(bench.controller.isAtRest && bench.servo.motions == 1)
    bench.journal.failure = nil
    bench.sense(.standing, true)
    #expect(bench.sense(.standing, false).map(\.phase) == [.fault, .moving])
  }

  @Test("a rider's command that waits for the journal when the vehicle begins to move is refused")
  func movesWhileCommitting() {
    bench.wire(.standing)
    let rider = bench.rider()
    bench.journal.isSlow = true
    _ = bench.open(as: rider)
    bench.sense(.standing, false)
    bench.journal.isSlow = false
    #expect(bench.settle().refusal == .vehicleMoving)
    #expect(bench.moves.isEmpty)
  }

  @Test("a lost signal counts as moving, unless it is configured otherwise", arguments: [true, false])
  func lostStanding(countsAsMoving: Bool) {
    bench.wire(.standing, interlock: Interlock(countsLostAsMoving: countsAsMoving))
    let rider = bench.rider()
    bench.sense(.standing, nil)
    #expect(bench.events.contains(.lost(.standing)))
    #expect(bench.open(as: rider).refusal == (countsAsMoving ? .vehicleMoving : nil))
  }

  // MARK: - The stop input

  @Test("a stop input ends every motion at once, the steps are held, and nothing begins until it allows it")
  func enable() {
    bench.wire(.enable)
    let rider = bench.rider()
    _ = bench.open(left, as: rider)
    _ = bench.open(right, as: rider)
    _ = bench.run(for: 500)
    let before = bench.moves
    #expect(bench.sense(.enable, false).map(\.fault) == [.stopped, .stopped, .stopped, .stopped])
    #expect(bench.run(for: 500).isEmpty && bench.moves == before)
    #expect(bench.servo.held[left] == bench.servo.places[left])
    #expect(bench.close(as: rider).refusal == .stopped)
    #expect(bench.sense(.enable, true).isEmpty)
    #expect(bench.run(for: 500).isEmpty && state.fault == .stopped, "and then by a new command only")
    _ = bench.close(as: rider)
    #expect(bench.run(for: 1_100).map(\.position) == [.close, .close])
  }

  @Test("a stop input ends a retreat from an obstacle too")
  func enableInRetreat() {
    bench.wire(.enable, .clear(left))
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 500)
    bench.sense(.clear(left), false)
    _ = bench.run(for: 40)
    #expect(bench.sense(.enable, false).map(\.fault) == [.stopped, .stopped])
  }

  // MARK: - Clocks

  @Test("a wall clock that is set in a motion changes nothing of it")
  func wallClock() {
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 300)
    bench.time = ControllerTime(clock: bench.time.clock, wall: 0)
    _ = bench.run(for: 300)
    bench.time = ControllerTime(clock: bench.time.clock, wall: 4_000_000_000)
    #expect(bench.run(for: 500).map(\.position) == [.open, .open])
    #expect(bench.servo.longestThrow[left]! <= bench.profile.longestStride + 1e-9)
  }
}
