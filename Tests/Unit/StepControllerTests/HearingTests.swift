import Domain
import Foundation
import StepProtocol
import TestSupport
import Testing

@testable import StepController

/// What the vehicle's own adapters make of riders' devices, and of those that are none.
@Suite("Hearing") struct HearingTests {
  let bench = Bench()

  init() { start(both: true) }

  private func start(
    _ methods: Set<ProofMethod> = [.beacon, .heard], both: Bool = false, link: Int8? = nil, zone: Zone = .near
  ) {
    bench.policy = Policy(
      methods: methods, needsHearing: both, leastLinkLevel: link, zone: zone, proofAge: 10_000, reserve: 0)
    bench.ears = [left: -59, right: -59]
    bench.start()
  }

  /// A device that asked, and calls as it was told to.
  struct Device {
    let rider: Rider
    let step: StepID
    let key: CallKey
    let call: CallRequest
    let challenge: [UInt8]
    let epoch: [UInt8]
    let begun: Int64

    /// What it sends at a moment of the controller's clock, where the answer took a while to arrive.
    func frame(at clock: Int64, late: Int64 = 0) -> UUID? {
      let slot = Int((clock - late - begun) / call.slot)
      return clock >= begun + late && slot < call.slots ? key.frame(ofSlot: slot, challenge: challenge) : nil
    }
  }

  /// - Parameter question: an older one, sent again.
  private func asks(_ rider: Rider? = nil, at step: StepID = left, again question: SealedCommand? = nil) -> Device {
    let rider = rider ?? bench.rider()
    let sealed =
      question
      ?? Command(vehicle: car.uuid, step: step, request: .status, token: rider.token)
      .sealed(by: rider.device, to: rider.controller)
    let statement = bench.send(sealed.bytes, to: step)[0]
    guard case .challenge(let challenge)? = statement.answer?.outcome, let call = challenge.call else {
      fatalError("no call")
    }
    return Device(
      rider: rider, step: step, key: sealed.callKey, call: call, challenge: challenge.bytes, epoch: statement.epoch,
      begun: bench.time.clock)
  }

  /// The RSSI at each ear, dBm; nil where it is not heard.
  typealias Levels = (left: Int8?, right: Int8?)
  static let atLeft: Levels = (-57, -78)
  static let atRight: Levels = (-78, -57)

  /// Time passes, and devices call ten times a second.
  ///
  /// - Returns: what was published.
  @discardableResult
  private func pass(_ milliseconds: Int64, _ devices: [(Device, () -> Levels)], late: Int64 = 0) -> [Statement] {
    var statements: [Statement] = []
    for time in stride(from: Int64(0), to: milliseconds, by: 100) {
      bench.wait(100)
      for (device, levels) in devices {
        guard let frame = device.frame(at: bench.time.clock, late: late) else { continue }
        hear(frame, levels())
      }
      if time % Hearing.interval == 0, bench.controller.awaitsCalls { statements += bench.handle(.listened) }
    }
    return statements
  }

  private func hear(_ frame: UUID, _ levels: Levels, at clock: Int64? = nil) {
    let clock = clock ?? bench.time.clock
    for (ear, rssi) in [(left, levels.left), (right, levels.right)] {
      if let rssi { bench.handle(.heard(HeardFrame(frame, at: ear, rssi: rssi, clock: clock))) }
    }
  }

  /// What becomes of an open command with the device's challenge.
  ///
  /// - Parameter level: how strong the link is on which it comes; nil if it comes by the broker.
  private func refusal(_ device: Device, _ proof: Proof? = nil, level: Int8?? = nil) -> RefusalCode? {
    let move = Command.Move(
      target: .open, epoch: device.epoch, challenge: device.challenge, deadline: bench.time.clock + 5_000,
      proof: proof ?? .standing(at: device.step), proofTime: bench.time.clock - 100)
    let command = device.rider.sealed(device.step, .move(move))
    let origin = level.map { LinkOrigin(link: 1, key: command.answerKey, level: $0) }
    return bench.handle(.request(Request(command.bytes, on: device.step, isRetained: false, from: origin))).refusal
  }

  private func heard(_ statements: [Statement]) -> [StepID?] {
    statements.compactMap { statement in
      guard case .challenge(let challenge)? = statement.answer?.outcome else { return nil }
      return challenge.call.map(\.heard)
    }
  }

  // MARK: - Heard

  @Test("a device that calls in front of a step is told so once, and then its command is obeyed")
  func located() {
    let device = asks()
    #expect(device.call.heard == nil)
    let told = pass(2_000, [(device, { Self.atLeft })])
    #expect(heard(told) == [left])
    #expect(told.map(\.answer?.command) == [told[0].answer?.command])
    #expect(refusal(device) == nil)
    #expect(bench.controller.isMoving)
  }

  @Test("before it was heard it is refused for that, and can try again")
  func early() {
    let device = asks()
    #expect(refusal(device) == .notHeard)
    #expect(Refusal(.notHeard).retryCanHelp)
    let again = asks(device.rider)
    pass(2_000, [(again, { Self.atLeft })])
    #expect(refusal(again) == nil)
  }

  @Test(
    "a link that is too weak, or that nobody could measure, is refused although the device is heard",
    arguments: [(-75, nil), (-76, .notHeard), (nil, .notHeard)] as [(Int8?, RefusalCode?)])
  func weakLink(level: Int8?, expected: RefusalCode?) {
    start(both: true, link: -75)
    let device = asks()
    pass(2_000, [(device, { Self.atLeft })])
    #expect(refusal(device, level: .some(level)) == expected)
  }

  @Test("a strong link does not stand in for being heard, and a command by the broker has none")
  func strongLink() {
    start(both: true, link: -75)
    let device = asks()
    #expect(refusal(device, level: .some(-30)) == .notHeard)
    let again = asks(device.rider)
    pass(2_000, [(again, { Self.atLeft })])
    #expect(refusal(again) == nil)
  }

  @Test("another question goes on where the one before was, so nobody waits twice")
  func continued() {
    let device = asks()
    pass(2_000, [(device, { Self.atLeft })])
    let again = asks(device.rider)
    #expect(again.call.heard == left)
    #expect(refusal(again) == nil)
  }

  @Test("a device that goes away is told that too")
  func leaves() {
    let device = asks()
    #expect(heard(pass(2_000, [(device, { Self.atLeft })])) == [left])
    #expect(heard(pass(4_000, [(device, { (-80, -84) })])) == [nil])
    #expect(refusal(device) == .notHeard)
  }

  @Test("it is told at which step it is heard, whichever it asked for")
  func otherStep() {
    let device = asks(at: left)
    #expect(heard(pass(2_000, [(device, { Self.atRight })])) == [right])
    #expect(refusal(device) == .notHeard)
  }

  @Test("heard alone is a proof where the policy says so, and beside another it is none")
  func alone() {
    start([.heard])
    let device = asks()
    #expect(refusal(device, .standing(at: left)) == .proofNotAccepted)
    let again = asks(device.rider)
    #expect(refusal(again, .heard) == .notHeard)
    let third = asks(device.rider)
    pass(2_000, [(third, { Self.atLeft })])
    #expect(refusal(third, .heard) == nil)

    start(both: true)
    let other = asks()
    pass(2_000, [(other, { Self.atLeft })])
    #expect(refusal(other, .heard) == .proofNotAccepted)
  }

  @Test("either is enough where both are not asked for")
  func either() {
    start([.beacon, .heard])
    #expect(refusal(asks()) == nil)
    start([.beacon, .heard])
    let device = asks()
    pass(2_000, [(device, { Self.atLeft })])
    #expect(refusal(device, .heard) == nil)
  }

  @Test("the nearest zone is asked of the vehicle's ears where nothing else shows it")
  func zone() {
    start([.heard], zone: .immediate)
    let device = asks()
    pass(2_000, [(device, { (-60, -80) })])
    #expect(refusal(device, .heard) == .notNear)
    let near = asks(device.rider)
    pass(8_000, [(near, { (-50, -72) })])
    #expect(refusal(near, .heard) == nil)
  }

  @Test("without ears nobody is asked to call")
  func without() {
    bench.ears = [:]
    bench.start()
    let statement = bench.send(bench.rider().command(left, .status))[0]
    guard case .challenge(let challenge)? = statement.answer?.outcome else {
      Issue.record("no challenge")
      return
    }
    #expect(challenge.call == nil && !bench.controller.awaitsCalls && bench.awaited.isEmpty)
  }

  @Test("with an ear that does not listen nobody is heard, and afterwards all begin anew")
  func deaf() {
    let device = asks()
    pass(2_000, [(device, { Self.atLeft })])
    bench.handle(.ear(right, isListening: false))
    #expect(heard(pass(500, [(device, { (-50, nil) })])) == [nil])
    pass(2_000, [(device, { (-50, nil) })])
    #expect(refusal(device) == .notHeard)
    bench.handle(.ear(right, isListening: true))
    let again = asks(device.rider)
    #expect(refusal(again) == .notHeard)
    let third = asks(device.rider)
    pass(2_000, [(third, { Self.atLeft })])
    #expect(refusal(third) == nil)
  }

  // MARK: - Attacks

  @Test("a copy of a frame a second later counts for nothing, however loud it is")
  func copied() {
    // The rider is away; the copier stands at the left step and repeats what it heard a second ago.
    let device = asks()
    for _ in 0..<60 {
      bench.wait(100)
      if let frame = device.frame(at: bench.time.clock) { hear(frame, (-85, -86)) }
      if let frame = device.frame(at: bench.time.clock - 1_000) { hear(frame, (-30, -60)) }
      #expect(heard(bench.handle(.listened)).isEmpty)
    }
    #expect(refusal(device) == .notHeard)
  }

  @Test("a frame counts from its slot's beginning until less than a second after it, and at no other time")
  func slots() {
    let cases: [(Int64, Bool)] = [(-1, false), (0, true), (299, true), (799, true), (800, false), (1_000, false)]
    for (offset, counts) in cases {
      start(both: true)
      let device = asks()
      for slot in 4..<20 {
        let frame = device.key.frame(ofSlot: slot, challenge: device.challenge)
        bench.time = ControllerTime(
          clock: device.begun + Int64(slot) * device.call.slot + offset, wall: bench.time.wall)
        for _ in 0..<3 { hear(frame, Self.atLeft) }
      }
      #expect((refusal(device) == nil) == counts, "\(offset)")
    }
  }

  @Test(
    "after a restart an old question has new frames: a recording of the old ones counts for nothing",
    arguments: [true, false])
  func recording(isOld: Bool) {
    start(both: true)
    let rider = bench.rider()
    let question = Command(vehicle: car.uuid, step: left, request: .status, token: rider.token)
      .sealed(by: rider.device, to: rider.controller)
    let old = asks(rider, again: question)
    start(both: true)
    let new = asks(rider, again: question)
    #expect(old.key == new.key && old.challenge != new.challenge)
    for slot in 4..<20 {
      bench.time = ControllerTime(clock: new.begun + Int64(slot) * new.call.slot, wall: bench.time.wall)
      let frame = new.key.frame(ofSlot: slot, challenge: isOld ? old.challenge : new.challenge)
      for _ in 0..<3 { hear(frame, Self.atLeft) }
    }
    #expect(refusal(new) == (isOld ? .notHeard : nil))
  }

  @Test("a frame that is told late or for the future counts for nothing")
  func told() {
    let device = asks()
    bench.wait(3_000)
    // Slot 5 was over 1.2 s ago.
    for slot in 0..<6 {
      let clock = device.begun + Int64(slot) * device.call.slot
      hear(device.key.frame(ofSlot: slot, challenge: device.challenge), Self.atLeft, at: clock)
    }
    for slot in 11..<30 {
      hear(
        device.key.frame(ofSlot: slot, challenge: device.challenge), Self.atLeft,
        at: device.begun + Int64(slot) * device.call.slot)
    }
    #expect(refusal(device) == .notHeard)
  }

  @Test("who reads every question and every answer cannot call")
  func stranger() {
    let device = asks()
    let others = (0..<50).map { _ in asks() }
    // Frames of other questions, and whatever else has the form.
    pass(3_000, others.map { other in (other, { Self.atLeft }) })
    var random = SplitMix(1)
    for _ in 0..<1_000 { hear(UUID(high: random.next(), low: random.next()), Self.atLeft) }
    #expect(refusal(device) == .notHeard)
  }

  @Test("copies within a slot do not crowd out the device, and at the other side they only spoil it")
  func burst() {
    let device = asks()
    for _ in 0..<30 {
      bench.wait(100)
      guard let frame = device.frame(at: bench.time.clock) else { break }
      // A copier as loud at the right as the rider is at the left, a hundred times as often.
      for _ in 0..<100 { bench.handle(.heard(HeardFrame(frame, at: right, rssi: -57, clock: bench.time.clock))) }
      hear(frame, Self.atLeft)
      #expect(heard(bench.handle(.listened)).allSatisfy { $0 != right })
    }
    #expect(refusal(device) == .notHeard)
  }

  @Test("fifty devices that call at once are each heard where they are, and each no longer than it calls")
  func crowd() {
    let crowd = (0..<50).map { number in (asks(at: number % 2 == 0 ? left : right), number % 2 == 0) }
    #expect(bench.awaited.count == 50 * Hearing.slots)
    let told = pass(
      2_500, crowd.map { device, isLeft in (device, { isLeft ? Self.atLeft : Self.atRight }) })
    #expect(heard(told).count == 50)
    for statement in told {
      guard case .challenge(let challenge)? = statement.answer?.outcome else { continue }
      #expect(challenge.call?.heard == statement.step)
    }
    pass(20_000, [])
    #expect(bench.awaited.isEmpty && !bench.controller.awaitsCalls)
  }

  @Test("a device that asks without end has two calls, and takes no other device's place")
  func flood() {
    let device = asks()
    let mallory = bench.rider()
    for _ in 0..<300 { _ = asks(mallory) }
    #expect(bench.awaited.count == 3 * Hearing.slots)
    pass(2_000, [(device, { Self.atLeft })])
    #expect(refusal(device) == nil)
    for _ in 0..<200 { _ = asks() }
    #expect(bench.awaited.count == Hearing.mostDevices * Hearing.slots)
  }

  /// A rider in front of a step by the model of RANGING.md, turned round, who claims to be at the other: levels at both
  /// ears for a while.
  private func levels(_ random: inout SplitMix, isLeft: Bool, louder: Double) -> () -> Levels {
    func uniform(_ low: Double, _ high: Double) -> Double { Double.random(in: low...high, using: &random) }
    func normal(_ deviation: Double) -> Double {
      deviation * (-2 * log(uniform(1e-12, 1))).squareRoot() * cos(2 * .pi * uniform(0, 1))
    }
    let out = uniform(0.25, 2)
    let along = out * tan(uniform(-0.7, 0.7))
    let exponent = uniform(1.8, 2.6)
    let shadow = uniform(4, 6)
    let metal = uniform(4, 20)
    let body = Bool.random(using: &random) ? uniform(0, 12) : 0
    let power = -59 + normal(1.5) + normal(4) + louder
    func mean(_ across: Double) -> Double {
      power - 10 * exponent * log10((along * along + across * across + 0.36).squareRoot()) + normal(shadow) - body
    }
    let own = mean(out)
    let other = mean(out + 1.9) - metal
    var noise = SplitMix(random.next())
    return {
      func level(_ mean: Double) -> Int8? {
        let fading = Double.random(in: -4...4, using: &noise)
        let lost = Double.random(in: 0...1, using: &noise) < 0.3
        return lost || mean + fading < -95 ? nil : Int8(max(-127, min(-1, mean + fading)))
      }
      let (a, b) = (level(own), level(other))
      return isLeft ? (a, b) : (b, a)
    }
  }

  @Test("who claims the other side is refused, every time, and however loud", arguments: [0.0, 6, 12, 20])
  func liars(louder: Double) {
    var random = SplitMix(UInt64(louder) + 7)
    var opened = 0
    for run in 0..<60 {
      start(both: true)
      let isLeft = run % 2 == 0
      let levels = levels(&random, isLeft: isLeft, louder: louder)
      let liar = asks(at: isLeft ? right : left)
      var isRefused = true
      for _ in 0..<16 {
        pass(500, [(liar, levels)])
        if let place = bench.controller.hearing?.place(of: liar.rider.device.verificationKey, at: bench.time.clock) {
          if place.step == liar.step { isRefused = false } else { opened += 1 }
        }
      }
      #expect(isRefused && refusal(liar) == .notHeard, "run \(run)")
    }
    // The model is not so hard that nobody is heard anywhere.
    #expect(opened > 60 * 16 / 3)
  }
}
