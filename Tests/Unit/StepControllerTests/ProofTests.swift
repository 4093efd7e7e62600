import Domain
import StepProtocol
import TestSupport
import Testing

@testable import StepController

/// What the controller makes of proofs: beacons whose minors rotate, tags and codes.
@Suite("Proofs") struct ProofTests {
  let bench = Bench()
  let rotating = RotatingMinor(secret: BeaconSecret(), step: left)

  init() {
    bench.policy = Policy(methods: [.beacon, .nfc, .qr], zone: .near, proofAge: 10_000, reserve: 0)
    bench.secrets.minors = [left: rotating]
    bench.start()
  }

  /// What becomes of an open command with a proof; the step is closed again.
  func refusal(_ proof: Proof, for step: StepID = left, as rider: Rider) -> RefusalCode? {
    let move = bench.move(.open, step, as: rider).with(proof: proof)
    let statements = bench.send(rider.command(step, .move(move)), to: step)
    if let refusal = statements.refusal { return refusal }
    #expect(statements.first?.phase == .moving)
    _ = bench.run(for: 1_100)
    close(step)
    return nil
  }

  /// Without a proof's help.
  private func close(_ step: StepID) {
    let rider = bench.rider()
    let proof: Proof = .code(content: StepLabel(vehicle: car.uuid, step: step).text)
    let move = bench.move(.close, step, as: rider).with(proof: proof)
    _ = bench.send(rider.command(step, .move(move)), to: step)
    _ = bench.run(for: 1_100)
  }

  func hearing(_ minor: UInt16, at step: StepID = left) -> Proof { .standing(at: step, minor: minor) }

  // MARK: - Minors that rotate

  @Test("the minor of this period and the one before are accepted, and no other, whatever the policy says of copies")
  func periods() {
    for acceptsStatic in [true, false] {
      bench.policy = Policy(
        methods: [.beacon, .qr], acceptsStatic: acceptsStatic, zone: .near, proofAge: 10_000, reserve: 0)
      bench.start()
      func heard(_ seconds: Int64) -> RefusalCode? {
        let minor = rotating.minor(at: bench.time.wall - seconds)
        let rider = bench.rider()
        let move = bench.move(.open, left, as: rider).with(proof: hearing(minor))
        let refusal = bench.send(rider.command(left, .move(move))).refusal
        _ = bench.run(for: 1_100)
        return refusal
      }
      // The fixture's clock begins at a multiple of the period.
      bench.time = ControllerTime(clock: bench.time.clock, wall: 1_800_000_000)
      #expect(heard(24) == .staleProof)
      #expect(heard(60) == .staleProof)
      #expect(heard(-16) == .staleProof)
      #expect(heard(8) == nil)
      #expect(heard(0) == nil)
    }
  }

  @Test("a step that rotates is not opened by a right minor of the other step's secret, nor by the fixed one")
  func otherSecret() {
    let other = RotatingMinor(secret: BeaconSecret(), step: left)
    bench.vehicle = try! Vehicle(
      name: car.name, uuid: car.uuid,
      steps: [Step(id: left, side: .left, major: 1), Step(id: right, side: .right, major: 2, minor: 300)])
    bench.start()
    let accepted = rotating.accepted(at: bench.time.wall)
    let wrong = other.minor(at: bench.time.wall)
    if !accepted.contains(wrong) { #expect(refusal(hearing(wrong), as: bench.rider()) == .staleProof) }
    #expect(refusal(hearing(300, at: right), for: right, as: bench.rider()) == nil)
    #expect(refusal(hearing(301, at: right), for: right, as: bench.rider()) == .wrongStep)
  }

  @Test("after three wrong minors even the right one is refused until the minute is over, for this device alone")
  func guesses() {
    let mallory = bench.rider()
    let alice = bench.rider()
    let wrong = rotating.accepted(at: bench.time.wall).max()! &+ 1
    let began = bench.time.clock
    for _ in 0..<3 { #expect(refusal(hearing(wrong), as: mallory) == .staleProof) }
    #expect(refusal(hearing(rotating.minor(at: bench.time.wall)), as: mallory) == .staleProof)
    #expect(refusal(hearing(rotating.minor(at: bench.time.wall)), as: alice) == nil)
    // Nothing of it is told: a proof of the other side looks the same.
    #expect(refusal(.standing(at: right), as: mallory) == .staleProof)
    bench.wait(59_999 - (bench.time.clock - began))
    #expect(refusal(hearing(rotating.minor(at: bench.time.wall)), as: mallory) == .staleProof)
    bench.wait(1)
    #expect(refusal(hearing(rotating.minor(at: bench.time.wall)), as: mallory) == nil)
  }

  @Test("all 65536 minors in a row do not get through, and lock nobody else out")
  func bruteForce() {
    var check = ProofCheck(vehicle: car, policy: bench.policy, secrets: bench.secrets)
    let mallory = SigningKey().verificationKey
    let alice = SigningKey().verificationKey
    func judge(_ minor: UInt16, _ device: VerificationKey, at time: ControllerTime) -> ProofCheck.Verdict {
      let move = Command.Move(
        target: .open, epoch: [], challenge: [], deadline: 0, proof: hearing(minor), proofTime: time.clock)
      return check.judge(move, for: car.step(left)!, by: device, counters: [:], at: time)
    }
    // As fast as a controller could take them: all in one second. The last two to be tried are the right ones.
    let right = rotating.accepted(at: bench.time.wall)
    for minor in (UInt16.min...UInt16.max).filter({ !right.contains($0) }) + right {
      guard case .refused(.staleProof, _) = judge(minor, mallory, at: bench.time) else {
        Issue.record("\(minor) got through")
        return
      }
    }
    #expect(judge(right[0], alice, at: bench.time) == .accepted(nil))
  }

  // MARK: - Tags and codes

  @Test("a label opens its own step, from a tag and from a code, by id and by the prototype's number")
  func labels() {
    let rider = bench.rider()
    let uid = TagUID("04A1B2C3D4E5F6")!
    let own = StepLabel(vehicle: car.uuid, step: left).text
    for content in [own, "{\"uuid\":\"\(car.uuid)\",\"stepId\":1}"] {
      #expect(refusal(.tag(uid: uid, content: content), as: rider) == nil)
      #expect(refusal(.code(content: content), as: rider) == nil)
    }
    let others = [
      StepLabel(vehicle: car.uuid, step: right).text, StepLabel(vehicle: .random(), step: left).text,
      "{\"uuid\":\"\(car.uuid)\",\"stepId\":2}", "Hello",
    ]
    for content in others {
      #expect(refusal(.tag(uid: uid, content: content), as: rider) == .wrongStep)
      #expect(refusal(.code(content: content), as: rider) == .wrongStep)
    }
    #expect(bench.servo.motions == 8)
  }

  @Test("where the vehicle knows a step's tags, another tag with the same label is refused")
  func knownTags() {
    let uid = TagUID("04A1B2C3D4E5F6")!
    bench.vehicle = try! Vehicle(
      name: car.name, uuid: car.uuid,
      steps: [
        Step(id: left, side: .left, major: 1, tags: [uid]), Step(id: right, side: .right, major: 2),
      ])
    bench.start()
    let label = StepLabel(vehicle: car.uuid, step: left).text
    #expect(refusal(.tag(uid: uid, content: label), as: bench.rider()) == nil)
    #expect(refusal(.tag(uid: TagUID("04A1B2C3D4E5F7")!, content: label), as: bench.rider()) == .wrongStep)
  }

  @Test("what the policy does not accept is refused before it is looked at")
  func policy() {
    let label = StepLabel(vehicle: car.uuid, step: left).text
    let proofs: [Proof] = [
      .standing(at: right), .tag(uid: TagUID("04A1B2C3")!, content: label),
      .tag(uid: TagUID("04A1B2C3")!, content: "x"),
      .code(content: label),
    ]
    bench.policy = Policy(
      methods: [.beacon, .nfc, .qr], acceptsStatic: false, zone: .near, proofAge: 10_000, reserve: 0)
    bench.start()
    for proof in proofs {
      #expect(refusal(proof, for: right, as: bench.rider()) == .proofNotAccepted)
    }
    for method in ProofMethod.allCases {
      bench.policy = Policy(methods: [method], zone: .near, proofAge: 10_000, reserve: 0)
      bench.start()
      for proof in proofs where proof.method != method {
        #expect(refusal(proof, as: bench.rider()) == .proofNotAccepted)
      }
    }
    #expect(bench.servo.orders.isEmpty)
  }

  @Test("a label read too long ago is stale")
  func age() {
    let rider = bench.rider()
    bench.wait(20_000)
    let move = bench.move(.open, left, as: rider)
      .with(proof: .code(content: StepLabel(vehicle: car.uuid, step: left).text), proofTime: bench.time.clock - 10_001)
    #expect(bench.send(rider.command(left, .move(move))).refusal == .staleProof)
  }

  // MARK: - Dynamic tags

  /// The message of AN12196, with the keys that a tag leaves the factory with, as this vehicle's.
  let tag = TagUID("04DE5F1EACC040")!
  let message = "stepctl:\(car.uuid)/left?e=EF963FF7828658A599F3041510671E88&c=94EED9EE65337086"

  private func withTag(of step: StepID = left, keys: [UInt8] = Array(repeating: 0, count: 16)) {
    bench.secrets.tags = [
      tag: .init(step: step, keys: DynamicTag.Keys(metaRead: keys, fileRead: keys)!)
    ]
    bench.start()
  }

  @Test("a dynamic tag's reading is good once, in this run and in the next, and where copies are not accepted")
  func dynamicTag() throws {
    bench.policy = Policy(methods: [.nfc, .qr], acceptsStatic: false, zone: .near, proofAge: 10_000, reserve: 0)
    withTag()
    let alice = bench.rider()
    let move = bench.move(.open, left, as: alice).with(proof: .tag(uid: tag, content: message))
    var counter: UInt32?
    bench.servo.atOrder = { [journal = bench.journal, tag] _ in counter = journal.medium.counters[tag] }
    #expect(bench.send(alice.command(left, .move(move))).map(\.phase) == [.moving, .moving])
    #expect(counter == 61, "on the medium before the servo is told")
    bench.servo.atOrder = { _ in }
    _ = bench.run(for: 1_100)
    for rider in [alice, bench.rider()] {
      #expect(refusal(.tag(uid: tag, content: message), as: rider) == .staleProof)
      bench.start()
      #expect(refusal(.tag(uid: tag, content: message), as: rider) == .staleProof)
    }
    #expect(bench.servo.motions == 1)
  }

  @Test("a reading is used up also by a command that moves nothing, or that finds the step moving")
  func usedUp() {
    withTag()
    let rider = bench.rider()
    let already = bench.move(.close, left, as: rider).with(proof: .tag(uid: tag, content: message))
    #expect(bench.send(rider.command(left, .move(already))).map(\.phase) == [.idle])
    #expect(refusal(.tag(uid: tag, content: message), as: rider) == .staleProof)
  }

  @Test("a reading is not used up by a command that is refused because the vehicle does not hear its device")
  func notHeard() {
    withTag()
    bench.policy = Policy(methods: [.nfc, .heard], needsHearing: true, zone: .near, proofAge: 10_000, reserve: 0)
    bench.ears = [left: -59, right: -59]
    bench.start()
    #expect(refusal(.tag(uid: tag, content: message), as: bench.rider()) == .notHeard)
    bench.policy = Policy(methods: [.nfc, .qr], zone: .near, proofAge: 10_000, reserve: 0)
    bench.start()
    #expect(refusal(.tag(uid: tag, content: message), as: bench.rider()) == nil)
  }

  @Test("a reading is not used up by a command that comes while the program ends")
  func ending() {
    withTag()
    let rider = bench.rider()
    let move = bench.move(.open, left, as: rider).with(proof: .tag(uid: tag, content: message))
    bench.handle(.ending)
    #expect(bench.send(rider.command(left, .move(move))).refusal == .unavailable)
    #expect(bench.journal.medium.counters[tag] == nil)
    bench.start()
    #expect(refusal(.tag(uid: tag, content: message), as: rider) == nil)
  }

  @Test("a step that is moving is said to be busy, and the reading is used up")
  func busy() {
    withTag()
    let (rider, bob) = (bench.rider(), bench.rider())
    let code: Proof = .code(content: StepLabel(vehicle: car.uuid, step: left).text)
    let late = bench.move(.close, left, as: bob).with(proof: .tag(uid: tag, content: message))
    let first = bench.move(.open, left, as: rider).with(proof: code)
    _ = bench.send(rider.command(left, .move(first)))
    #expect(bench.send(bob.command(left, .move(late))).refusal == .busy)
    _ = bench.run(for: 1_100)
    let again = bench.move(.close, left, as: bob).with(proof: .tag(uid: tag, content: message))
    #expect(bench.send(bob.command(left, .move(again))).refusal == .staleProof)
  }

  @Test("a reading whose use is being written is used up for every other command, and is again good where that fails")
  func writingReading() {
    withTag()
    let (alice, bob) = (bench.rider(), bench.rider())
    let proof = Proof.tag(uid: tag, content: message)
    func bobs() -> [Statement] {
      bench.send(bob.command(left, .move(bench.move(.open, left, as: bob).with(proof: proof))))
    }
    let first = bench.move(.open, left, as: alice).with(proof: proof)
    bench.journal.isSlow = true
    #expect(bench.send(alice.command(left, .move(first))).isEmpty)
    #expect(bobs().refusal == .staleProof)
    bench.journal.failure = "Input/output error"
    #expect(bench.settle().refusal == .unavailable)
    bench.journal.failure = nil
    #expect(bobs().isEmpty)
    #expect(bench.settle().isEmpty, "the reading is written, and the motion is not yet")
    #expect(bench.settle().map(\.phase) == [.moving, .moving])
    #expect(bobs().refusal == .staleProof)
  }

  @Test("without a journal a reading is not accepted, and not used up")
  func journalLost() throws {
    withTag()
    let rider = bench.rider()
    bench.journal.failure = "No space left on device"
    #expect(refusal(.tag(uid: tag, content: message), as: rider) == .unavailable)
    bench.journal.failure = nil
    #expect(refusal(.tag(uid: tag, content: message), as: rider) == nil)
    #expect(bench.servo.motions == 2)
  }

  @Test("a message that is forged, of another tag, step or vehicle, or not in its form is not this step's")
  func forgeries() {
    let rider = bench.rider()
    func refusal(_ content: String, uid: TagUID? = nil) -> RefusalCode? {
      self.refusal(.tag(uid: uid ?? tag, content: content), as: rider)
    }
    #expect(refusal(message) == .wrongStep, "no keys")
    withTag(of: right)
    #expect(refusal(message) == .wrongStep, "the other step's tag")
    withTag(keys: Array(1...16))
    #expect(refusal(message) == .wrongStep, "other keys")
    withTag()
    #expect(refusal(message, uid: TagUID("04DE5F1EACC041")!) == .wrongStep)
    for (part, replacement) in [
      ("94EED9EE65337086", "94EED9EE65337087"), ("EF963FF7", "EF963FF6"), ("EF963FF7", "ef963ff7"),
      ("5337086", "533708"),
      ("/left?", "/right?"), (car.uuid.description, UUID.random().description), ("stepctl:", "STEPCTL:"),
      ("&c=", "&d="),
    ] {
      #expect(refusal(message.replacing(part, with: replacement)) == .wrongStep, "\(replacement)")
    }
    #expect(bench.servo.orders.isEmpty)
    #expect(refusal(message) == nil)
  }
}
