import Bluetooth
import Domain
import MQTT
import Ranging
import Rider
import StepProtocol
import SystemIO
import Testing

/// What an approach does with what the searches, the vehicle and the rider do: its effects, in order, as words.
@Suite("An approach to a step") struct ApproachTests {
  private let left = World.vehicle.steps[0]
  private let right = World.vehicle.steps[1]
  private let undecided = Finding.undecided(Location(of: World.vehicle.steps, at: 0), .hci(0))
  private let delayed = RiderError.refused(
    Refusal(.approaching, oncoming: Oncoming(category: "bicycle", arrival: 3_000)), of: nil)

  /// An approach, and the time, in milliseconds.
  private struct Script {
    var approach: Approach
    var clock: Int64 = 0

    init(_ goal: Approach.Goal, searches: Int = 1) { approach = Approach(goal, searches: searches) }

    mutating func callAsFunction(_ input: Approach.Input) -> [String] {
      approach.handle(input, at: World.instant(clock)).map { word($0) }
    }

    mutating func pass(_ inputs: Approach.Input...) { for input in inputs { _ = self(input) } }

    private func word(_ effect: Approach.Effect) -> String {
      switch effect {
      case .connect: "connect"
      case .expect: "expect"
      case .ask(let steps): "ask \(steps.map(\.description).joined(separator: " "))"
      case .startSearches: "search"
      case .stopSearches: "stop searches"
      case .present(let sighting, let target):
        "present \(sighting.step.id) \(sighting.method.rawValue) \(target.rawValue)"
      case .stop: "stop"
      case .call: "call"
      case .stopCalling: "stop calling"
      case .interruptRequests: "interrupt"
      case .close: "close"
      case .schedule(let timer, let time): "\(timer) until \(World.milliseconds(time))"
      case .cancel(let timer): "no \(timer)"
      case .report(let event): word(event)
      case .end(.success(.moved(let sighting, _))): "end: moved \(sighting.step.id)"
      case .end(.success(.undecided)): "end: undecided"
      case .end(.success(.lacking(let sighting, let shortfall))): "end: \(sighting.step.id) lacks \(shortfall)"
      case .end(.success(.stopped(let statements, let step))):
        "end: stopped \(statements.map { "\($0.step) \($0.position.rawValue)" }.joined(separator: " "))"
          + (step.map { ", after a command to \($0.step.id)" } ?? "")
      case .end(.success(.quit)): "end: quit"
      case .end(.failure(let error)): "end: \(error)"
      }
    }

    private func word(_ event: Approach.Event) -> String {
      switch event {
      case .search(let method, .ended): "- \(method.rawValue) ended"
      case .search(let method, _): "- \(method.rawValue)"
      case .accepts: "- accepts"
      case .asks(let sighting): "- asks \(sighting.step.id)"
      case .lacks(let sighting, let shortfall): "- \(sighting.step.id) lacks \(shortfall)"
      case .sighted(let sighting, _, let isAgain): "- sighted \(sighting.step.id)\(isAgain ? " again" : "")"
      case .commanded(let step, let target): "- commanded \(step) \(target.rawValue)"
      case .waits(let step, _, let isNew): "- \(step) waits\(isNew ? ", news" : "")"
      case .moving(let step): "- moving \(step)"
      case .done(let statement): "- done \(statement.step)"
      case .stops: "- stops"
      case .stopped(let statements): "- stopped \(statements.map(\.step.description).joined(separator: " "))"
      case .failed(let error): "- failed: \(error)"
      case .notConnected: "- not connected"
      case .calling: "- calling"
      case .cannotCall: "- cannot call"
      }
    }
  }

  private func goal(
    side: Side? = nil, isReplay: Bool = false, asksFirst: Bool = false, goesOn: Bool = false,
    calling: RadioSpec? = nil, wait: Duration = .zero
  ) -> Approach.Goal {
    Approach.Goal(
      World.vehicle, side: side, isReplay: isReplay, asksFirst: asksFirst, goesOn: goesOn, calling: calling, wait: wait)
  }

  private func statement(_ step: Step, _ position: Position = .open) -> Statement {
    Statement(
      vehicle: World.vehicle.uuid, step: step.id, position: position, phase: .idle, fault: nil, sequence: 1,
      epoch: [UInt8](repeating: 7, count: Statement.epochSize), clock: 1000, answer: nil)
  }

  private func answer(
    _ step: Step, _ methods: Set<ProofMethod> = [.nfc, .qr], needsHearing: Bool = false
  ) -> Approach.Input {
    let policy = PresencePolicy(methods: methods, zone: .near, acceptsStatic: true, needsHearing: needsHearing)
    return .request(.answered(Answer(statement: statement(step), received: World.epoch), policy), of: step.id)
  }

  private func tag(_ step: Step) -> Approach.Input { .search(.nfc, .ended(.success(.sighted(World.sighting(step))))) }

  private func decision(_ sighting: Sighting?) -> Approach.Input {
    .search(.beacon, .decided(Location(of: World.vehicle.steps, at: 0), sighting))
  }

  private func failed(_ error: RiderError, _ step: Step) -> Approach.Input { .request(.failed(error), of: step.id) }

  private func done(_ step: Step) -> Approach.Input { .request(.done(statement(step)), of: step.id) }

  private func lacks(_ step: Step, _ shortfall: Shortfall) -> String { "\(step.id) lacks \(shortfall)" }

  /// An approach whose command is under way, by a tag.
  private func commanding(_ goal: Approach.Goal, searches: Int = 2) -> Script {
    var script = Script(goal, searches: searches)
    script.pass(.begin(.open), .connected, answer(left), answer(right), tag(left))
    return script
  }

  @Test("proof, command, answer: the vehicle is asked while the searches run, and the last statement ends it")
  func order() {
    var script = Script(goal(), searches: 2)
    #expect(script(.begin(.open)) == ["connect"])
    #expect(script(.connected) == ["search", "ask left right"])
    #expect(script(answer(right)) == ["- accepts"])
    #expect(script(.search(.nfc, .waiting(left: .seconds(3)))) == ["- nfc"])
    // Nobody waits for the vehicle's answer before.
    #expect(script(tag(left)) == ["expect", "- asks left"])
    #expect(script.approach.pending == .open)
    #expect(
      script(answer(left)) == ["- accepts", "- sighted left", "present left nfc open", "stop searches", "stop calling"])
    #expect(script.approach.pending == nil)
    #expect(script(.request(.commanded, of: left.id)) == ["- commanded left open"])
    #expect(script(.request(.moving, of: left.id)) == ["- moving left"])
    #expect(script(done(left)) == ["- done left", "end: moved left"])
    #expect(script(.quit) == [] && script(.want(.close)) == [] && script(done(left)) == [])
  }

  @Test("a side: only its step is asked, and no other one moves")
  func side() {
    var script = Script(goal(side: .right), searches: 2)
    _ = script(.begin(.close))
    #expect(script(.connected) == ["search", "ask right"])
    _ = script(answer(right))
    #expect(script(tag(left)) == ["- \(lacks(left, .otherSide))"])
    #expect(script(.search(.beacon, .ended(.success(undecided)))) == ["end: \(lacks(left, .otherSide))"])
  }

  @Test("a vehicle that is likely to refuse is asked first")
  func asksFirst() {
    var script = Script(goal(asksFirst: true))
    _ = script(.begin(.open))
    #expect(script(.connected) == ["ask left right", "expect"])
    #expect(script(answer(right)) == ["- accepts", "search"])
    #expect(script(answer(left)) == ["- accepts"])
  }

  @Test("a rider who has gone away is no longer there; in a recording, every decision counts")
  func decisions() {
    for isReplay in [false, true] {
      var script = Script(goal(isReplay: isReplay))
      for input in [.begin(.open), .connected, decision(World.beaconSighting(left)), decision(nil)] {
        _ = script(input)
      }
      let effects = script(answer(left, [.beacon]))
      #expect(effects.contains("present left beacon open") == isReplay)
    }
  }

  @Test("where no way leads to the vehicle, the approach ends; one that goes on tells it, unless a signal came")
  func notConnected() {
    let loss = RiderError.notSent(MQTTError.lost(World.access.broker, .greeting))
    var script = Script(goal())
    _ = script(.begin(.open))
    #expect(script(.notConnected(loss)) == ["end: \(loss)"])
    script = Script(goal(goesOn: true))
    #expect(script(.begin(nil)) == ["search"])
    #expect(script(.want(.open)) == ["connect"])
    #expect(script(.notConnected(loss)) == ["- not connected"])
    #expect(script.approach.pending == nil)
    #expect(script(.want(.close)) == ["connect"])
    #expect(script(.notConnected(RiderError.interrupted)) == ["end: interrupted"])
  }

  @Test("traffic: the vehicle is asked again until the rider's time is up, and the searches go on until the step moves")
  func waits() {
    var script = Script(goal(wait: .seconds(2)), searches: 2)
    script.pass(.begin(.open), .connected, answer(left), answer(right))
    #expect(script(tag(left)) == ["- sighted left", "present left nfc open"])
    #expect(script(.request(.commanded, of: left.id)) == ["- commanded left open"])
    #expect(script(decision(nil)) == [])
    #expect(script(failed(delayed, left)) == ["pause until 500", "- left waits, news"])
    #expect(script.approach.pending == nil)
    #expect(script(.want(.close)) == [])
    #expect(script(decision(nil)) == ["- beacon"])
    script.clock = 500
    #expect(script(.timer(.pause)) == ["ask left right"])
    #expect(script(answer(left)) == ["- accepts", "- sighted left again", "present left nfc open"])
    #expect(script(.request(.commanded, of: left.id)) == [])
    script.clock = 1_000
    #expect(script(failed(delayed, left)) == ["pause until 1500", "- left waits"])
    script.clock = 1_500
    _ = script(.timer(.pause))
    _ = script(answer(left))
    #expect(
      script(failed(.refused(Refusal(.blind), of: nil), left)) == ["pause until 2000", "- left waits, news"])
    script.clock = 2_000
    _ = script(.timer(.pause))
    #expect(script(answer(left)) == ["- accepts", "- sighted left again", "present left nfc open"])
    #expect(script(failed(delayed, left)) == ["end: \(delayed)"])
    script = commanding(goal(wait: .seconds(2)))
    #expect(script(.request(.moving, of: left.id)) == ["- moving left", "stop searches", "stop calling"])
  }

  @Test("who does not want to wait for traffic is told at once; no other refusal, and no doubt, is tried again")
  func failures() {
    var script = commanding(goal())
    #expect(script(failed(delayed, left)) == ["end: \(delayed)"])
    for error in [
      RiderError.refused(Refusal(.reserved), of: nil), .refused(Refusal(.approaching, retryCanHelp: false), of: nil),
      .unconfirmed(.timedOut, step: left.id), .unconfirmed(.stopped(.obstructed), step: left.id),
    ] {
      script = commanding(goal(wait: .seconds(20)))
      #expect(script(failed(error, left)) == ["end: \(error)"])
    }
  }

  @Test("one step's failure leaves the other; who stands at the failed one is told, and so is who has none left")
  func oneFails() {
    let reserved = RiderError.refused(Refusal(.reserved), of: nil)
    func script() -> Script {
      var script = Script(goal(), searches: 2)
      script.pass(.begin(.open), .connected, failed(reserved, left))
      return script
    }
    var other = script()
    _ = other(answer(right))
    #expect(other(tag(right)).contains("present right nfc open"))
    // A request that was abandoned has nothing to say about this one.
    #expect(other(failed(reserved, left)) == [])
    var same = script()
    #expect(same(tag(left)) == ["end: \(reserved)"])
    var none = script()
    #expect(none(failed(.noAnswer(isOffline: false), right)) == ["end: \(reserved)"])
  }

  @Test("the end of the last search is the end, once the vehicle has answered; a fault of its device at once")
  func searchesEnd() {
    var script = Script(goal(), searches: 2)
    script.pass(.begin(.open), .connected)
    #expect(script(.search(.nfc, .ended(.failure(SightingError.noTag(20))))) == ["- nfc ended"])
    #expect(script(.search(.beacon, .ended(.success(undecided)))) == ["expect"])
    #expect(script(answer(left)) == ["- accepts", "end: undecided"])
    script = Script(goal())
    script.pass(.begin(.open), .connected)
    #expect(script(.search(.nfc, .ended(.failure(SightingError.noTag(20))))) == ["end: \(SightingError.noTag(20))"])
    script = Script(goal())
    #expect(script(.begin(nil)) == ["search"])
    #expect(script(.search(.beacon, .ended(.success(undecided)))) == ["end: undecided"])
  }

  @Test("an earlier sighting waits for the answer, though the last search has ended")
  func lateAnswer() {
    var script = Script(goal(), searches: 2)
    script.pass(.begin(.open), .connected, tag(left))
    #expect(script(.search(.beacon, .ended(.success(undecided)))) == ["- asks left"])
    #expect(script(answer(left)).contains("present left nfc open"))
  }

  @Test("a search that ends during the command changes nothing")
  func endsMeanwhile() {
    for goal in [goal(), goal(goesOn: true)] {
      var script = commanding(goal)
      #expect(script(.search(.beacon, .ended(.failure(SightingError.noTag(20))))) == [])
      let end = goal.goesOn ? ["close", "end: \(SightingError.noTag(20))"] : ["end: moved left"]
      #expect(script(done(left)) == ["- done left"] + end)
    }
  }

  @Test("an approach that goes on tells how each command ended, and takes the next wish")
  func goesOn() {
    var script = Script(goal(goesOn: true), searches: 2)
    #expect(script(.begin(nil)) == ["search"])
    #expect(script(tag(left)) == [])
    #expect(script(.want(.open)) == ["connect"])
    #expect(script(.connected) == ["ask left right", "expect", "- asks left"])
    #expect(script(.want(.close)) == ["- asks left"])
    #expect(script(answer(left)) == ["- accepts", "- sighted left", "present left nfc close", "stop calling"])
    #expect(script(.want(.open)) == [])
    #expect(script(decision(nil)) == ["- beacon"])
    #expect(script(done(left)) == ["- done left", "close"])
    #expect(script.approach.pending == nil)
    #expect(script(answer(left)) == [])
    #expect(script(.want(.open)) == ["connect"])
    #expect(
      script(.connected) == ["ask left right", "expect", "- sighted left", "present left nfc open", "stop calling"])
    let doubt = RiderError.unconfirmed(.timedOut, step: left.id)
    #expect(script(failed(doubt, left)) == ["- failed: \(doubt)", "close"])
    #expect(script(decision(nil)) == ["- beacon"])
    #expect(script(.quit) == ["end: quit"])
  }

  @Test("a stop takes no proof and no question before it, and after it nothing moves, whatever is found")
  func stops() {
    let rest = Approach.Input.stopped(.success([statement(left, .unknown), statement(right, .close)]))
    // Before a command: while the rider looks, while the vehicle is asked, and while something comes towards the step.
    var script = Script(goal(), searches: 2)
    script.pass(.begin(.open), .connected, tag(left))
    #expect(script(.stop) == ["stop", "- stops", "stop searches", "stop calling"])
    #expect(script.approach.pending == nil)
    #expect(script(.stop) == [] && script(answer(left)) == [] && script(.want(.open)) == [])
    #expect(script(.search(.beacon, .ended(.success(undecided)))) == [])
    #expect(script(rest) == ["- stopped left right", "end: stopped left unknown right close"])
    script = commanding(goal(wait: .seconds(2)))
    _ = script(failed(delayed, left))
    #expect(script(.stop) == ["stop", "no pause", "- stops", "stop searches", "stop calling"])
    #expect(script(.timer(.pause)) == [] && script(answer(left)) == [])
    // After a command: what becomes of it is no longer the news.
    script = commanding(goal())
    #expect(script(.stop) == ["stop", "- stops", "stop searches", "stop calling"])
    #expect(script(.request(.moving, of: left.id)) == [])
    #expect(script(failed(.unconfirmed(.restsElsewhere(.unknown), step: left.id), left)) == [])
    #expect(
      script(rest) == ["- stopped left right", "end: stopped left unknown right close, after a command to left"])
    script = commanding(goal())
    _ = script(.stop)
    let doubt = RiderError.mayStillMove(.timedOut, step: left.id)
    #expect(script(.interrupt) == ["interrupt"])
    #expect(script(.stopped(.failure(doubt))) == ["end: \(doubt)"])
  }

  @Test("who only looks can stop too, and goes on afterwards; so does who has no connection")
  func stopsWhileLooking() {
    var script = Script(goal(goesOn: true))
    #expect(script(.begin(nil)) == ["search"])
    #expect(script(.stop) == ["stop", "- stops", "stop calling"])
    #expect(script(.stopped(.success([statement(left, .unknown)]))) == ["- stopped left", "close"])
    #expect(script(.want(.open)) == ["connect"])
    _ = script(.connected)
    _ = script(.stop)
    let loss = RiderError.notSent(MQTTError.lost(World.access.broker, .greeting))
    #expect(script(.stopped(.failure(loss))) == ["- failed: \(loss)", "close"])
    #expect(script(decision(World.beaconSighting(left))) == ["- beacon"])
    _ = script(.stop)
    #expect(script(.stopped(.failure(SightingError.noTag(1)))) == ["- not connected", "close"])
    _ = script(.stop)
    #expect(script(.stopped(.failure(RiderError.interrupted))) == ["end: interrupted"])
  }

  @Test("quit and interrupt: at once before a command and in a pause, and with the request's error after a command")
  func quits() {
    for (input, end) in [(Approach.Input.quit, "end: quit"), (.interrupt, "end: interrupted")] {
      var script = Script(goal())
      _ = script(.begin(.open))
      _ = script(.connected)
      #expect(script(input) == [end])
      script = commanding(goal(wait: .seconds(2)))
      #expect(script(input) == ["interrupt"])
      let doubt = RiderError.unconfirmed(.interrupted, step: left.id)
      #expect(script(failed(doubt, left)) == ["end: \(doubt)"])
      script = commanding(goal(wait: .seconds(2)))
      _ = script(failed(delayed, left))
      #expect(script(input) == [end])
    }
  }

  // MARK: - Hearing

  /// The only search has found a tag, and the vehicle wants to hear this device.
  private func unheard(calling: RadioSpec? = .hci(0)) -> Script {
    var script = Script(goal(calling: calling))
    _ = script(.begin(.open))
    _ = script(.connected)
    let call = Call(
      callKey, [UInt8](repeating: 1, count: 16), CallRequest(slot: 300, slots: 32, heard: nil), begun: World.epoch)
    #expect(script(.request(.call(call), of: left.id)) == (calling == nil ? [] : ["call"]))
    _ = script(answer(left, needsHearing: true))
    return script
  }

  private var callKey: CallKey {
    let command = Command(
      vehicle: World.vehicle.uuid, step: left.id, request: .status, token: World.access.tokenText)
    return command.sealed(by: World.access.device, to: World.access.encryptionKey).callKey
  }

  @Test("while the vehicle listens and this device calls, a sighting waits to be heard")
  func heard() {
    var script = unheard()
    #expect(script(.caller(.calling)) == ["- calling"])
    #expect(script(tag(left)) == ["patience until 10000", "- \(lacks(left, .notHeard(at: nil)))"])
    #expect(script(.request(.heard(right.id), of: left.id)) == ["- \(lacks(left, .notHeard(at: right.id)))"])
    #expect(
      script(.request(.heard(left.id), of: left.id)) == [
        "- sighted left", "present left nfc open", "stop searches", "stop calling",
      ])
    #expect(script(.timer(.patience)) == [])
    #expect(script(done(left)) == ["- done left", "end: moved left"])
  }

  @Test("it does not wait for longer than its patience, nor without a radio that calls")
  func patience() {
    let end = "end: \(lacks(left, .notHeard(at: nil)))"
    var script = unheard()
    _ = script(tag(left))
    #expect(script(.timer(.patience)) == [end])
    script = unheard()
    _ = script(tag(left))
    #expect(script(.caller(.failed(.noAdapter(radio: "hci0")))) == ["- cannot call", end])
    script = unheard(calling: nil)
    #expect(script(tag(left)) == [end])
  }

  // MARK: - Any schedule

  @Test("whatever the network, the searches and the rider do, no rule is broken, and it ends", arguments: 0..<40)
  func anything(part: UInt64) {
    for seed in part * 25..<(part + 1) * 25 {
      var walk = Walk(seed: seed)
      walk.live()
      #expect(walk.flaws == [], "seed \(seed)")
    }
  }

  @Test("the schedules reach what they are to try: commands, doubts, waits and calls")
  func reach() {
    var (commands, uncertain, waits, calls, moved) = (0, 0, 0, 0, 0)
    for seed in 0..<100 as Range<UInt64> {
      var walk = Walk(seed: seed)
      walk.live()
      commands += walk.commands
      uncertain += walk.uncertain
      waits += walk.waits
      calls += walk.calls
      if case .success(.moved)? = walk.result { moved += 1 }
    }
    #expect(commands > 0 && uncertain > 0 && waits > 0 && calls > 0 && moved > 0)
  }
}
