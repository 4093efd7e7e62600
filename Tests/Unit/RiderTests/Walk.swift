import Bluetooth
import Domain
import MQTT
import Ranging
import Rider
import StepController
import StepProtocol
import SystemIO
import TestSupport

/// A rider on the way to a step of a `World`: the real `Approach`, with requests that are the real `StepRequest`. A
/// seed decides what the searches find, what the rider does, and how bad the world is.
///
/// It notes whatever breaks a rule of an approach (`flaws`).
struct Walk {
  private enum Event {
    case begin(Command.Move.Target?)
    case decided(Step?)
    case note(ProofMethod)
    case ended(ProofMethod, Step?)
    case caller(CallSender.Event)
    case frame(Call)
    case want(Command.Move.Target)
    case stop
    case quit
    case interrupt
    case timer(Approach.Timer)
    case cut
  }

  private static let policies = [
    World.policy, Policy(methods: [.beacon, .nfc], zone: .near, proofAge: 30_000),
    Policy(methods: [.beacon], zone: .immediate, proofAge: 30_000),
    Policy(methods: [.nfc, .qr], acceptsStatic: false, zone: .near, proofAge: 30_000),
    Policy(methods: [.nfc, .heard], zone: .near, proofAge: 30_000),
    Policy(methods: [.beacon, .qr, .heard], needsHearing: true, zone: .near, proofAge: 30_000),
  ]
  /// Where the beacons say that a rider is who stands before a step, and a rider before none.
  private static let located = World.vehicle.steps.map { World.location(before: $0) }
  private static let unlocated = Location(of: World.vehicle.steps, at: 0)

  let goal: Approach.Goal
  private(set) var world: World
  private(set) var approach: Approach
  private(set) var result: Result<Approach.Ending, any Error>?
  private(set) var flaws: [String] = []
  /// The commands that were handed to a request.
  private(set) var commands = 0
  /// The commands that ended in doubt or well: after them the steps may have moved.
  private(set) var uncertain = 0
  private(set) var waits = 0
  private(set) var calls = 0
  private var random: SplitMix
  private var events: [(time: Int64, number: Int, event: Event)] = []
  private var number = 0
  private let methods: [ProofMethod]
  private var haveSearched = false
  private var inputs: [Approach.Input] = []
  /// The present requests.
  private var riders: [StepID: Int] = [:]
  private var canConnect: Bool
  private var stands: Step

  // What the rules are checked against.
  private var presence: Presence
  private var wanted: Command.Move.Target?
  private var command: (sighting: Sighting, target: Command.Move.Target, isSent: Bool)?
  private var outcome: StepRequest.Update?
  private var isDelayed = false
  private var isPausing = false
  /// The stops that are under way, and where the steps rest, by their requests.
  private var stops: [Int: Result<Statement, RiderError>?] = [:]
  private var isStopping = false

  init(seed: UInt64) {
    var random = SplitMix(seed)
    func happens(_ share: Double) -> Bool { Double.random(in: 0..<1, using: &random) < share }

    let isBad = happens(0.6)
    let faults =
      isBad
      ? World.Faults(
        lost: 0.12, doubled: 0.2, delay: 2_500, journalFails: 0.05, servoFails: 0.01, restarts: 0.08, outdated: 0.3,
        traffic: happens(0.5) ? 0.4 : 0)
      : World.Faults(doubled: 0.2, delay: 300, traffic: happens(0.4) ? 0.5 : 0)
    let side: Side? = happens(0.5) ? nil : happens(0.7) ? .left : .right
    goal = Approach.Goal(
      World.vehicle, side: side, isReplay: happens(0.2), asksFirst: happens(0.15), goesOn: happens(0.3),
      calling: happens(0.8) ? .hci(0) : nil,
      wait: happens(0.5) ? .zero : .seconds(Int64.random(in: 1...8, using: &random)))
    let count = Int.random(in: 1...3, using: &random)
    methods = Array([ProofMethod.beacon, .nfc, .qr].shuffled(using: &random).prefix(count))
    canConnect = happens(0.97)
    stands = World.vehicle.steps[happens(0.8) ? 0 : 1]
    world = World(nil, faults, policy: Walk.policies.randomElement(using: &random)!, seed: random.next())
    approach = Approach(goal, searches: count)
    presence = Presence(side: side)

    let target: Command.Move.Target? = goal.goesOn && happens(0.6) ? nil : happens(0.8) ? .open : .close
    self.random = random
    schedule(0, .begin(target))
    // Nobody looks for ever. The first one may interrupt a command.
    if goal.goesOn { for time in [60_000, 60_100] as [Int64] { schedule(time, .quit) } }
    for _ in 0..<(goal.goesOn ? 4 : 1) where self.happens(0.5) {
      schedule(milliseconds(0...40_000), .want(self.happens(0.5) ? .open : .close))
    }
    if self.happens(0.15) { schedule(milliseconds(0...30_000), .stop) }
    if self.happens(0.15) { schedule(milliseconds(0...30_000), .quit) }
    if self.happens(0.15) { schedule(milliseconds(0...30_000), .interrupt) }
    if self.happens(0.05) { schedule(milliseconds(0...20_000), .cut) }
  }

  /// Lets time pass until the approach has ended and the vehicle is at rest.
  mutating func live() {
    while world.clock < 400_000 {
      let own = events.indices.min { (events[$0].time, events[$0].number) < (events[$1].time, events[$1].number) }
      guard let time = [world.next, own.map { events[$0].time }].compactMap(\.self).min() else { break }
      if let next = world.next, next <= time {
        world.pass(to: next)
        hear()
      } else if let own {
        world.pass(to: time)
        handle(events.remove(at: own).event)
      }
      drain()
    }
    if result == nil { flaws.append("it did not end") }
    checkRest()
  }

  // MARK: - What happens

  private mutating func handle(_ event: Event) {
    switch event {
    case .begin(let target):
      wanted = target
      inputs.append(.begin(target))
    case .decided(let step):
      let location = step.map { Walk.located[World.vehicle.steps.firstIndex(of: $0)!] } ?? Walk.unlocated
      search(.beacon, .decided(location, Sighting(location, made: world.now)))
    case .note(let method): search(method, happens(0.5) ? .note("note") : .waiting(left: .seconds(3)))
    case .ended(.beacon, _):
      let finding = Finding.undecided(Walk.unlocated, .hci(0))
      search(.beacon, .ended(happens(0.8) ? .success(finding) : .failure(RadioError.noAdapter(radio: "hci0"))))
    case .ended(let method, let step):
      let sighting = step.map { step in
        let label = StepLabel(vehicle: World.vehicle.uuid, step: step.id).text
        return method == .nfc
          ? World.sighting(step, found: world.now) : Sighting(code: label, of: step, found: world.now)
      }
      search(method, .ended(sighting.map { .success(.sighted($0)) } ?? .failure(SightingError.noTag(20))))
    case .caller(let event): inputs.append(.caller(event))
    case .frame(let call):
      guard result == nil, let frame = call.frame(at: world.now)?.frame else { return }
      for step in World.vehicle.steps { world.hear(frame, at: step.id, rssi: step == stands ? -50 : -80) }
      hear()
    case .want(let target):
      if command == nil, !isPausing, !isStopping {
        wanted = target
        if goal.goesOn { outcome = nil }
      }
      inputs.append(.want(target))
    case .stop: inputs.append(.stop)
    case .quit: inputs.append(.quit)
    case .interrupt: inputs.append(.interrupt)
    case .timer(let timer):
      if timer == .pause { isPausing = false }
      inputs.append(.timer(timer))
    case .cut:
      world.cut()
      hear()
    }
  }

  private mutating func search(_ method: ProofMethod, _ event: SearchEvent) {
    switch event {
    case .decided(_, let sighting): presence.decided(sighting, isReplay: goal.isReplay)
    case .ended(.success(.sighted(let sighting))): presence.found(sighting)
    case .note, .waiting, .ended: break
    }
    inputs.append(.search(method, event))
  }

  /// The requests tell what happened.
  private mutating func hear() {
    for (rider, update) in world.takeNews() {
      hear(update, ofStop: rider)
      guard let step = riders.first(where: { $0.value == rider })?.key else { continue }
      inputs.append(.request(update, of: step))
    }
  }

  /// The last stop's end is what the approach is told.
  private mutating func hear(_ update: StepRequest.Update, ofStop rider: Int) {
    guard stops[rider] != nil else { return }
    switch update {
    case .done(let statement): stops[rider] = .some(.success(statement))
    case .failed(let error): stops[rider] = .some(.failure(error))
    case .send, .answered, .call, .heard, .commanded, .moving: return
    }
    let ends = stops.sorted { $0.key < $1.key }.compactMap(\.value)
    guard ends.count == stops.count else { return }
    stops = [:]
    inputs.append(.stopped(Result { try ends.map { try $0.get() } }))
  }

  /// Notes an update when the approach takes it.
  private mutating func note(_ update: StepRequest.Update, _ step: StepID) {
    switch update {
    case .answered(_, let policy): presence.learned(policy, of: step)
    case .heard(let place):
      presence.heard(place.flatMap { World.vehicle.step($0) }.map { Sighting(heardAt: $0, found: world.now) })
    case .commanded:
      if command?.sighting.step.id != step { flaws.append("a command to the \(step) step, which nobody decided") }
      if command?.isSent == true { flaws.append("a command was sent twice") }
      command?.isSent = true
    case .done, .failed:
      if let command, command.sighting.step.id == step { end(command.isSent, update) }
    case .send, .call, .moving: break
    }
  }

  private mutating func end(_ wasSent: Bool, _ update: StepRequest.Update) {
    (command, outcome, isDelayed) = (nil, update, false)
    switch update {
    case .failed(.refused(let refusal, _)) where refusal.code == .approaching && goal.wait > .zero: isDelayed = true
    case .failed(let error):
      wanted = nil
      if error.mayHaveMoved { uncertain += 1 }
      if wasSent, error.exitStatus != .refused, !error.mayHaveMoved {
        flaws.append("after a command: \(error)")
      }
    case .done:
      wanted = nil
      uncertain += 1
    case .send, .answered, .call, .heard, .commanded, .moving: break
    }
  }

  // MARK: - What the approach does

  private mutating func drain() {
    while !inputs.isEmpty {
      let input = inputs.removeFirst()
      if case .request(let update, let step) = input, riders[step] != nil { note(update, step) }
      let effects = approach.handle(input, at: world.now)
      if result != nil, !effects.isEmpty { flaws.append("it goes on after its end") }
      for effect in effects { perform(effect) }
    }
  }

  private mutating func perform(_ effect: Approach.Effect) {
    switch effect {
    case .connect:
      inputs.append(canConnect ? .connected : .notConnected(MQTTError.lost(World.access.broker, .greeting)))
    // Which time limits apply matters to requests whose way is lost, and these have none (StepRequestTests).
    case .expect: break
    case .ask(let steps):
      riders = [:]
      for step in steps { riders[step] = world.begin(.prepare(step)) }
      hear()
    case .startSearches:
      if haveSearched { flaws.append("the searches began twice") }
      haveSearched = true
      for method in methods { plan(method) }
    case .stopSearches:
      events.removeAll {
        switch $0.event {
        case .decided, .note, .ended: true
        default: false
        }
      }
    case .present(let sighting, let target): present(sighting, target)
    case .stop: stop()
    case .call(let call, _):
      calls += 1
      schedule(20, .caller(happens(0.9) ? .calling : .failed(.noAdapter(radio: "hci0"))))
      for slot in 0..<32 { schedule(100 + Int64(slot) * 300, .frame(call)) }
    case .stopCalling: break
    case .interruptRequests:
      for rider in riders.values.sorted() + stops.keys.sorted() { world.interrupt(rider) }
      hear()
    case .close:
      for rider in riders.values { world.abandon(rider) }
      riders = [:]
      presence.heard(nil)
    case .schedule(let timer, let time):
      if timer == .pause { isPausing = true }
      schedule(World.milliseconds(time) - world.clock, .timer(timer))
    case .cancel(let timer):
      events.removeAll { if case .timer(timer) = $0.event { true } else { false } }
    case .report(let event): check(event)
    case .end(let result):
      self.result = result
      check(result)
      for rider in riders.values { world.abandon(rider) }
    }
  }

  private mutating func present(_ sighting: Sighting, _ target: Command.Move.Target) {
    let step = sighting.step.id
    if isStopping { flaws.append("a command during a stop") }
    if command != nil { flaws.append("a second command, before the first one's end") }
    if wanted != target { flaws.append("a command that nobody wants") }
    if let outcome, case .failed(let error) = outcome, error.mayHaveMoved, !goal.goesOn {
      flaws.append("a command again, after: \(error)")
    }
    if case .suffices(let decided) = presence.verdict, decided.step.id == step, decided.method == sighting.method {
    } else {
      flaws.append("the evidence is not for the \(step) step")
    }
    if !goal.steps.contains(step) { flaws.append("the \(step) step was not asked for") }
    commands += 1
    command = (sighting, target, false)
    for (other, rider) in riders where other != step { world.abandon(rider) }
    if let rider = riders[step] { world.present(sighting, to: target, by: rider) }
    hear()
  }

  /// What was sent may have moved a step; what was not sent never is.
  private mutating func stop() {
    for rider in riders.values { world.abandon(rider) }
    if command?.isSent == true { uncertain += 1 }
    (command, wanted, outcome, isPausing, isDelayed, isStopping) = (nil, nil, nil, false, false, true)
    for step in World.vehicle.steps { stops[world.begin(.stop(step.id))] = .some(nil) }
    hear()
  }

  private mutating func plan(_ method: ProofMethod) {
    let length = goal.isReplay && method == .beacon ? 40 : milliseconds(1_000...25_000)
    guard method == .beacon else {
      if happens(0.5) { schedule(milliseconds(0...length), .note(method)) }
      return schedule(length, .ended(method, happens(0.7) ? somewhere() : nil))
    }
    var step = somewhere()
    for time in stride(from: 0, to: length, by: goal.isReplay ? 2 : 500) {
      if happens(0.2) { step = happens(0.5) ? somewhere() : nil }
      schedule(time, .decided(step))
    }
    schedule(length, .ended(.beacon, nil))
  }

  private mutating func somewhere() -> Step? {
    happens(0.8) ? stands : World.vehicle.steps.randomElement(using: &random)
  }

  // MARK: - The rules

  private mutating func check(_ event: Approach.Event) {
    switch event {
    case .done(let statement): checkSuccess(statement)
    case .failed where isStopping: isStopping = false
    case .failed(let error):
      wanted = nil
      guard case .failed(let last)? = outcome, error.mayHaveMoved != last.mayHaveMoved else { return }
      flaws.append("the rider is told: \(error); it was: \(last)")
    case .waits: waits += 1
    case .commanded(let step, _):
      if command?.sighting.step.id != step { flaws.append("no command to the \(step) step") }
    case .stopped(let statements):
      isStopping = false
      for statement in statements where !statement.phase.isAtRest { flaws.append("a stop while the step moves") }
    case .search, .accepts, .asks, .lacks, .sighted, .moving, .stops, .notConnected, .calling, .cannotCall: break
    }
  }

  private mutating func checkSuccess(_ statement: Statement) {
    guard case .done(let said)? = outcome, said == statement else {
      return flaws.append("a success that nobody states")
    }
    if !statement.phase.isAtRest { flaws.append("a success while the step moves") }
    if world.places[statement.step] != (statement.position == .open ? 1 : 0) {
      flaws.append("a success that is untrue")
    }
  }

  private mutating func check(_ result: Result<Approach.Ending, any Error>) {
    if command?.isSent == true { flaws.append("an end before the answer to the command") }
    switch (result, outcome) {
    case (.success(.moved(let sighting, let statement)), _):
      checkSuccess(statement)
      if sighting.step.id != statement.step { flaws.append("the success of another step") }
    case (_, .done?) where !goal.goesOn: flaws.append("a success that is not told")
    case (.failure(let error), .failed(let last)?) where last.mayHaveMoved && !goal.goesOn:
      if (error as? RiderError)?.mayHaveMoved != true { flaws.append("the doubt is not told: \(error)") }
    case (.success, .failed(let last)?) where last.mayHaveMoved && !goal.goesOn: flaws.append("the doubt is not told")
    case (.success, .failed?) where !isDelayed && !goal.goesOn: flaws.append("the failure is not told")
    case (.success, _), (.failure, _): break
    }
  }

  /// Whoever was not told of a motion or a doubt can rely on it.
  private mutating func checkRest() {
    if uncertain == 0, world.motions > 0 { flaws.append("a step moved, and the rider was told that none had") }
  }

  // MARK: - The seed

  private mutating func happens(_ share: Double) -> Bool { Double.random(in: 0..<1, using: &random) < share }

  private mutating func milliseconds(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &random) }

  private mutating func schedule(_ delay: Int64, _ event: Event) {
    number += 1
    events.append((world.clock + delay, number, event))
  }
}
