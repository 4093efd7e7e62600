import Cryptography
import Domain
import StepController
import StepProtocol
import TestSupport
import Testing

@Suite("Controller") struct ControllerTests {
  let bench = Bench()

  @Test("opens a step: challenge, moving, idle, each retained as a change of state and answered to the rider")
  func opens() {
    let rider = bench.rider()
    let begun = bench.open(as: rider)
    #expect(begun.map(\.phase) == [.moving, .moving])
    #expect(begun.map { $0.answer != nil } == [true, false])
    let ended = bench.run(for: 1_100)
    #expect(ended.map(\.phase) == [.idle, .idle])
    #expect(ended.map(\.position) == [.open, .open])
    #expect(ended[1].answer?.command == begun[0].answer?.command)
    #expect(bench.servo.motions == 1)
    #expect(begun[0].sequence < ended[1].sequence)
  }

  @Test("the servo follows a ramp that neither jumps nor overshoots")
  func ramp() {
    _ = bench.open(as: bench.rider())
    _ = bench.run(for: 1_100)
    var places: [Double] = [0]
    for case .move(let place) in bench.servo.orders.map(\.action) { places.append(place) }
    #expect(places.last == 1)
    #expect(zip(places, places.dropFirst()).allSatisfy { $1 >= $0 && $1 - $0 < 0.03 })
    // Slow at both ends, fast between.
    #expect(places[2] - places[1] < 0.005)
    #expect(places[26] - places[25] > 0.025)
  }

  @Test("nothing moves at start, whatever the journal says")
  func nothingAtStart() {
    _ = bench.open(as: bench.rider())
    bench.start()
    _ = bench.handle(.connected)
    _ = bench.run(for: 2_000)
    #expect(bench.servo.motions == 1)
  }

  @Test("a motion cut by a crash is reported and not repeated, and the next command can move again")
  func interrupted() {
    let rider = bench.rider()
    _ = bench.open(as: rider)
    _ = bench.run(for: 300)
    bench.start()
    let status = bench.handle(.connected)
    #expect(status[0].position == .unknown)
    #expect(status[0].phase == .fault)
    #expect(status[0].fault == .interrupted)
    #expect(status[1].position == .close)
    _ = bench.open(as: rider)
    #expect(bench.run(for: 1_100).last?.position == .open)
    #expect(bench.servo.motions == 2)
  }

  @Test("the journal is on the medium, with the challenge, before the servo is told")
  func journalFirst() {
    let rider = bench.rider()
    let move = bench.move(.open, left, as: rider)
    var seen: [Journal.Entry?] = []
    bench.servo.atOrder = { [journal = bench.journal] order in seen.append(journal.medium.entries[order.step]) }
    _ = bench.send(rider.command(left, .move(move)))
    #expect(seen == [Journal.Entry(position: .close, motion: .open, challenge: move.challenge)])
  }

  @Test("without a journal nothing moves")
  func journalLost() {
    let rider = bench.rider()
    bench.journal.failure = "No space left on device"
    #expect(bench.open(as: rider).refusal == .unavailable)
    #expect(bench.servo.orders.isEmpty)
    #expect(bench.events.contains(.notJournaled(left, "No space left on device")))
    bench.journal.failure = nil
    #expect(bench.open(as: rider).count == 2)
  }

  @Test("a recorded command is refused, in this run and in the next")
  func replayed() {
    let rider = bench.rider()
    let payload = rider.command(left, .move(bench.move(.open, left, as: rider)))
    #expect(bench.send(payload).count == 2)
    _ = bench.run(for: 1_100)
    #expect(bench.send(payload).refusal == .replayed)
    bench.start()
    #expect(bench.send(payload).refusal == .replayed)
    #expect(bench.servo.motions == 1)
  }

  @Test("a command that was refused is not obeyed when it is delivered again: whoever was told so can rely on it")
  func refusedForGood() {
    let alice = bench.rider()
    let early = Rider(
      device: alice.device, token: bench.rider(notBefore: 32, device: alice.device).token, controller: alice.controller)
    // For what does not stand in it, or not for ever: retained, on another step's topic, before its token's time.
    let retained = alice.command(left, .move(bench.move(.open, left, as: alice)))
    #expect(bench.send(retained, retained: true).refusal == .retained)
    let misdirected = alice.command(left, .move(bench.move(.open, left, as: alice)))
    #expect(bench.send(misdirected, to: right).refusal == .wrongStep)
    let premature = early.command(left, .move(bench.move(.open, left, as: alice)))
    #expect(bench.send(premature).refusal == .tokenNotYetValid)
    bench.wait(2_000)
    for command in [retained, misdirected, premature] { #expect(bench.send(command).refusal == .replayed) }
    #expect(bench.servo.orders.isEmpty)
  }

  @Test("a second copy of a command that was obeyed is refused as nothing but replayed: another refusal would deny it")
  func obeyedForGood() {
    let alice = bench.rider()
    let short = Rider(
      device: alice.device, token: bench.rider(expires: 2, device: alice.device).token, controller: alice.controller)
    let opened = short.command(left, .move(bench.move(.open, left, as: short)))
    #expect(bench.send(opened).map(\.phase) == [.moving, .moving])
    let stopped = short.command(left, .stop(epoch: bench.epoch))
    _ = bench.run(for: 100)
    #expect(bench.send(stopped).refusal == nil)
    // The broker says that it had kept them, delivers them on another topic, or waits until the token has ended.
    for payload in [opened, stopped] {
      #expect(bench.send(payload, retained: true).refusal == .replayed)
      #expect(bench.send(payload, to: right).refusal == .replayed)
    }
    bench.wait(2_000)
    for payload in [opened, stopped] { #expect(bench.send(payload).refusal == .replayed) }
    #expect(bench.send(short.command(left, .status)).refusal == .tokenExpired)
    #expect(bench.servo.motions == 1)
  }

  @Test("a recorded status request is answered once, and gives an attacker no second challenge")
  func replayedStatus() {
    let payload = bench.rider().command(left, .status)
    #expect(bench.send(payload).refusal == nil)
    #expect(bench.send(payload).refusal == .replayed)
  }

  @Test("a challenge is good once, for its device, its step, its epoch and 10 seconds")
  func challenges() {
    let alice = bench.rider()
    let bob = bench.rider()
    let move = bench.move(.open, left, as: alice)

    #expect(bench.send(bob.command(left, .move(move))).refusal == .expired)
    #expect(bench.send(alice.command(left, .move(move.with(challenge: randomBytes(16))))).refusal == .expired)
    #expect(bench.send(alice.command(left, .move(move.with(epoch: randomBytes(16))))).refusal == .expired)
    // None of these used it up; a wrong step does.
    let other = move.with(proof: .standing(at: right))
    #expect(bench.send(alice.command(right, .move(other)), to: right).refusal == .expired)
    #expect(bench.send(alice.command(left, .move(move))).refusal == .replayed)

    let late = bench.move(.open, left, as: alice)
    bench.wait(10_000)
    #expect(bench.send(alice.command(left, .move(late.with(deadline: bench.time.clock + 1_000)))).refusal == .expired)
    #expect(bench.servo.orders.isEmpty)
  }

  @Test("a flood of status requests by one rider leaves another's challenge alone")
  func flood() {
    let alice = bench.rider()
    let mallory = bench.rider()
    let move = bench.move(.open, left, as: alice)
    for _ in 0..<300 { _ = bench.send(mallory.command(left, .status)) }
    #expect(bench.send(alice.command(left, .move(move))).count == 2)
  }

  @Test("33 riders with eight questions each leave another's challenge alone")
  func crowd() {
    let alice = bench.rider()
    let move = bench.move(.open, left, as: alice)
    for _ in 0..<33 {
      let stranger = bench.rider()
      for _ in 0..<8 { _ = bench.send(stranger.command(left, .status)) }
    }
    #expect(bench.send(alice.command(left, .move(move))).count == 2)
  }

  @Test("a deadline that has passed, or is too far ahead, is refused")
  func deadlines() {
    let rider = bench.rider()
    let now = bench.time.clock
    #expect(
      bench.send(rider.command(left, .move(bench.move(.open, left, as: rider).with(deadline: now)))).refusal == .expired
    )
    let far = bench.move(.open, left, as: rider).with(deadline: now + 10_001)
    #expect(bench.send(rider.command(left, .move(far))).refusal == .expired)
    let edge = bench.move(.open, left, as: rider).with(deadline: now + 10_000)
    #expect(bench.send(rider.command(left, .move(edge))).refusal == nil)
  }

  @Test("a deadline that passes while the journal is written is one that has passed: nothing moves, and that is kept")
  func slowMedium() {
    let rider = bench.rider()
    let move = bench.move(.open, left, as: rider)
    bench.journal.isSlow = true
    #expect(bench.send(rider.command(left, .move(move))).isEmpty)
    bench.wait(5_000)
    #expect(bench.settle().refusal == .expired)
    _ = bench.settle()
    #expect(bench.servo.orders.isEmpty)
    #expect(bench.controller.isAtRest)
    #expect(bench.journal.medium.entries[left] == Journal.Entry(position: .close, challenge: move.challenge))
  }

  @Test("while a step's journal is written the step is busy, and the other step moves and is answered")
  func committing() {
    let (alice, bob) = (bench.rider(), bench.rider())
    _ = bench.open(right, as: alice)
    _ = bench.run(for: 500)
    let moves = (bench.move(.open, left, as: alice), bench.move(.open, left, as: bob))
    bench.journal.isSlow = true
    #expect(bench.send(alice.command(left, .move(moves.0))).isEmpty)
    #expect(bench.send(bob.command(left, .move(moves.1))).refusal == .busy)
    #expect(bench.send(bob.command(left, .status)).map(\.phase) == [.idle])
    #expect(bench.run(for: 600).map(\.position) == [.open, .open])
    #expect(bench.settle().map(\.phase) == [.moving, .moving])
    #expect(bench.run(for: 1_100).map(\.position) == [.open, .open])
  }

  @Test("a journal that cannot be written for one step says nothing of it when it is written for the other")
  func otherCommit() {
    let rider = bench.rider()
    let moves = [left, right].map { ($0, bench.move(.open, $0, as: rider)) }
    bench.journal.isSlow = true
    for (step, move) in moves { _ = bench.send(rider.command(step, .move(move)), to: step) }
    bench.journal.failure = "Input/output error"
    #expect(bench.settle().map { $0.answer?.refusal?.code } == [.unavailable, .unavailable])
    bench.journal.failure = nil
    _ = bench.settle()
    #expect(bench.journal.medium.entries.values.allSatisfy { $0.motion == nil })
  }

  @Test("once the program is to end nothing begins, and what moves comes to its end")
  func ending() {
    let rider = bench.rider()
    let other = bench.move(.open, right, as: rider)
    _ = bench.open(as: rider)
    bench.journal.isSlow = true
    _ = bench.send(rider.command(right, .move(other)), to: right)
    bench.handle(.ending)
    #expect(!bench.controller.isAtRest)
    #expect(bench.settle().refusal == .unavailable)
    #expect(bench.run(for: 1_100).map(\.position) == [.open, .open])
    _ = bench.settle()
    #expect(bench.controller.isAtRest)
    #expect(bench.journal.medium.entries.mapValues(\.position) == [left: .open, right: .close])
    #expect(bench.journal.medium.entries[right]?.motion == nil)
  }

  @Test("while the program ends a step that moves can be stopped, and whoever wants to move one is told that it cannot")
  func stopWhileEnding() {
    let (alice, bob) = (bench.rider(), bench.rider())
    let other = bench.move(.open, right, as: alice)
    _ = bench.open(as: alice)
    _ = bench.run(for: 300)
    bench.handle(.ending)
    #expect(bench.send(alice.command(right, .move(other)), to: right).refusal == .unavailable)
    #expect(bench.close(as: alice).refusal == .unavailable, "nor does it turn round")
    let moves = bench.moves.count
    #expect(bench.stop(as: bob).map(\.position) == [.unknown, .unknown, .unknown])
    #expect(bench.controller.isAtRest)
    _ = bench.run(for: 1_100)
    #expect(bench.moves.count == moves)
  }

  @Test("tokens are judged by operator, vehicle, step and time")
  func tokens() {
    func refusal(_ rider: Rider) -> RefusalCode? { bench.send(rider.command(left, .status)).refusal }
    #expect(refusal(bench.rider(vehicle: .random())) == .wrongVehicle)
    #expect(refusal(bench.rider(steps: [right])) == .wrongStep)
    #expect(refusal(bench.rider(notBefore: 31)) == .tokenNotYetValid)
    #expect(refusal(bench.rider(notBefore: 30)) == nil)
    #expect(refusal(bench.rider(notBefore: -60, expires: 0)) == .tokenExpired)
    #expect(refusal(bench.rider(notBefore: -60, expires: 1)) == nil)
  }

  @Test("whoever cannot sign gets no answer: another operator, another device, no key at all")
  func unauthenticated() {
    #expect(bench.send(bench.rider(signedBy: SigningKey()).command(left, .status)).isEmpty)
    #expect(bench.send(bench.rider(device: SigningKey()).command(left, .status)).isEmpty)
    let foreign = Rider(device: SigningKey(), token: bench.rider().token, controller: DecryptionKey().encryptionKey)
    #expect(bench.send(foreign.command(left, .status)).isEmpty)
    for payload: [UInt8] in [[], [0], Array(repeating: 0x41, count: 1 << 20), Array("{}".utf8), Array("a.b..c.".utf8)] {
      #expect(bench.send(payload).isEmpty)
    }
    #expect(bench.servo.orders.isEmpty)
  }

  @Test("a command for another vehicle or step, or one that was retained, is refused")
  func misdirected() {
    let rider = bench.rider()
    #expect(bench.send(rider.command(left, .status, vehicle: .random())).refusal == .wrongVehicle)
    #expect(bench.send(rider.command(right, .status), to: left).refusal == .wrongStep)
    #expect(bench.send(rider.command(left, .status), retained: true).refusal == .retained)
    let move = bench.move(.open, left, as: rider)
    #expect(bench.send(rider.command(left, .move(move)), retained: true).refusal == .retained)
    #expect(bench.servo.orders.isEmpty)
  }

  @Test("proofs are judged by age, by side, and by whether the rider is located")
  func proofs() {
    let rider = bench.rider()
    func refusal(_ proof: Proof, age: Int64 = 0) -> RefusalCode? {
      bench.wait(20_000)
      let move = bench.move(.open, left, as: rider).with(proof: proof, proofTime: bench.time.clock - age)
      return bench.send(rider.command(left, .move(move))).refusal
    }
    #expect(refusal(.standing(at: left), age: 10_001) == .staleProof)
    #expect(refusal(.standing(at: left), age: -1) == .staleProof)
    #expect(refusal(.standing(at: right)) == .wrongStep)
    #expect(
      refusal(
        .beacon(
          zone: .near, isLocated: true,
          beacons: [HeardBeacon(major: 2, minor: 0, rssi: -50, measuredPower: -59, packets: 9)]))
        == .wrongStep)
    for zone in Zone.allCases {
      #expect(refusal(.standing(at: left, zone: zone, isLocated: false)) == .notNear)
    }
    #expect(bench.servo.orders.isEmpty)
    // Between two zones the estimator says unknown, of somebody who is in reach.
    #expect(refusal(.standing(at: left, zone: .unknown), age: 10_000) == nil)
  }

  @Test("where the policy asks for the nearest zone, located in another zone is not enough", arguments: Zone.allCases)
  func nearestZone(zone: Zone) {
    bench.policy = Policy(methods: [.beacon], zone: .immediate, proofAge: 10_000)
    bench.start()
    let rider = bench.rider()
    let move = bench.move(.open, left, as: rider).with(proof: .standing(at: left, zone: zone))
    #expect(bench.send(rider.command(left, .move(move))).refusal == (zone == .immediate ? nil : .notNear))
  }

  @Test("a rider is told with the challenge which proofs the vehicle accepts")
  func tellsPolicy() {
    bench.policy = Policy(methods: [.nfc, .beacon], acceptsStatic: false, zone: .immediate, proofAge: 10_000)
    bench.start()
    let statement = bench.send(bench.rider().command(left, .status))[0]
    guard case .challenge(let challenge)? = statement.answer?.outcome else {
      Issue.record("no challenge")
      return
    }
    #expect(challenge.policy == PresencePolicy(methods: [.nfc, .beacon], zone: .immediate, acceptsStatic: false))
  }

  @Test("what it says of itself is told to whoever asks for it, and not unasked")
  func tellsAbout() {
    func about(_ asks: Bool, from rider: Rider) -> About? {
      let statement = bench.send(rider.command(left, .status, asksAbout: asks))[0]
      guard case .challenge(let challenge)? = statement.answer?.outcome else { return nil }
      return challenge.about
    }
    bench.time = ControllerTime(clock: bench.time.clock, wallMilliseconds: 1_800_000_000_250)
    let alice = bench.rider()
    #expect(about(true, from: alice) == About(version: "1.2.3", time: 1_800_000_000_250))
    #expect(about(false, from: alice) == nil)
    // A command to move says nothing of it, whatever it asks.
    let move = bench.move(.open, left, as: alice)
    #expect(bench.send(alice.command(left, .move(move), asksAbout: true))[0].answer?.outcome == .obeyed)
    // Whoever is refused learns nothing.
    let expired = bench.rider(expires: -1)
    #expect(bench.send(expired.command(left, .status, asksAbout: true)).refusal == .tokenExpired)
  }

  @Test("the log is told who asked by the token, and how far the rider was by the proof")
  func tellsAsker() throws {
    let alice = bench.rider()
    _ = bench.open(as: alice)
    let asker = try #require(
      bench.events.compactMap { if case .began(_, _, let asker) = $0 { asker } else { nil } }.first)
    #expect(asker.rider == "alice" && asker.method == .beacon && asker.zone == .immediate)
    // 7 dB above the level at 1 m, in free space.
    #expect(abs(try #require(asker.distance) - 0.45) < 0.01)
    _ = bench.run(for: 2_000)
    #expect(bench.events.contains(.ended(left, .open, by: asker)))
  }

  @Test("two riders at once: the second is told that the step is busy, and the other step moves on its own")
  func busy() {
    let alice = bench.rider()
    let bob = bench.rider()
    let his = bench.move(.close, left, as: bob)
    _ = bench.open(as: alice)
    #expect(bench.send(bob.command(left, .move(his))).refusal == .busy)
    #expect(bench.open(right, as: bob).count == 2)
    _ = bench.run(for: 1_100)
    #expect(bench.servo.motions == 2)
  }

  @Test("a step that is where it should be is not moved, and the answer says so at once")
  func already() {
    let rider = bench.rider()
    let statements = bench.send(rider.command(left, .move(bench.move(.close, left, as: rider))))
    #expect(statements.count == 1)
    #expect(statements[0].answer?.outcome == .obeyed)
    #expect(statements[0].phase == .idle)
    #expect(bench.servo.orders.isEmpty)
  }

  @Test("something in the way of the servo before the motion is a refusal; during it, a fault, and the step is held")
  func obstructed() {
    let rider = bench.rider()
    bench.servo.failure = .obstructed
    #expect(bench.open(as: rider).refusal == .obstructed)
    bench.servo.failure = nil
    _ = bench.open(as: rider)
    bench.servo.failure = .obstructed
    let statements = bench.run(for: 40)
    #expect(statements.map(\.fault) == [.obstructed, .obstructed])
    #expect(statements.map(\.position) == [.unknown, .unknown])
    #expect(!bench.servo.orders.contains { $0.action == .release })
  }

  @Test("any byte of a command changed, and nobody answers")
  func mutations() {
    let rider = bench.rider()
    let payload = rider.command(left, .move(bench.move(.open, left, as: rider)))
    for index in stride(from: 0, to: payload.count, by: 3) {
      var changed = payload
      changed[index] ^= 1
      #expect(bench.send(changed).isEmpty, "byte \(index)")
    }
    #expect(bench.servo.orders.isEmpty)
    #expect(bench.send(payload).count == 2)
  }
}
