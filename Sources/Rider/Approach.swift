package import Bluetooth
package import Domain
package import Ranging
package import StepProtocol
package import SystemIO

/// A rider on the way to a step, as a state machine: takes inputs, each with its time, and returns effects.
///
/// While the searches run, the vehicle is asked for a challenge and for its policy. The first sighting that the vehicle
/// accepts becomes the command. An approach does no I/O and reads no clock: `ApproachRunner` performs the effects in
/// order. So a test can lose any message, and let the searches and the rider do anything at any time.
package struct Approach {
  package enum Input {
    /// The program has started. Comes before everything else. Without a target, the rider only looks.
    case begin(Command.Move.Target?)
    /// The connection has begun, and takes questions.
    case connected
    case notConnected(any Error)
    case search(ProofMethod, SearchEvent)
    case request(StepRequest.Update, of: StepID)
    case caller(CallSender.Event)
    /// Open or close the step as soon as a sighting is enough. Changes nothing while a command is under way.
    case want(Command.Move.Target)
    /// The rider wants every step to stop, and nothing to move. Takes no proof, and no question before it.
    case stop
    /// Where the steps rest after the effect `stop`, or why that is not known.
    case stopped(Result<[Statement], any Error>)
    /// The rider wants to end the approach. If a command is under way, only its wait ends, with an error that says so.
    case quit
    /// A signal ends the approach, or the wait for a command that is under way.
    case interrupt
    case timer(Timer)
  }

  package enum Effect {
    /// Begin to connect, for all steps, and report `connected` or `notConnected`.
    case connect
    /// Begin new requests that prepare these steps, in place of all earlier ones.
    case ask([StepID])
    /// The rider stands at a step: the vehicle's answer is waited for, and not for long.
    case expect
    case startSearches
    /// End the searches. Nothing more is reported of them.
    case stopSearches
    /// Send the command, and abandon the requests to the other steps.
    case present(Sighting, Command.Move.Target)
    /// Stop every step that the token is for, over the connection that there is or a new one, and report `stopped`. A
    /// request that has sent no command sends none any more.
    case stop
    /// Call the vehicle, in place of the call before.
    case call(Call, RadioSpec)
    /// End the call, without a wait.
    case stopCalling
    /// End the present requests.
    case interruptRequests
    /// End the call, and then the connection.
    case close
    case schedule(Timer, at: Instant)
    case cancel(Timer)
    case report(Event)
    /// Nothing follows.
    case end(Result<Ending, any Error>)
  }

  package enum Timer {
    /// The vehicle is asked again.
    case pause
    /// The vehicle has had its time to hear this device.
    case patience
  }

  /// What happens on the way, for the user interface.
  package enum Event {
    /// The end of the last search, and an end with a sighting, are not reported: another event says what follows.
    case search(ProofMethod, SearchEvent)
    /// The vehicle says which proofs it accepts.
    case accepts(PresencePolicy)
    /// The vehicle has not said yet whether this sighting is enough.
    case asks(Sighting)
    /// This sighting is not enough, and the searches go on.
    case lacks(Sighting, Shortfall)
    /// This sighting is enough: it becomes the command. `isAgain`: the vehicle has delayed the same wish before.
    case sighted(Sighting, Command.Move.Target, isAgain: Bool)
    /// The first command of a wish is on its way.
    case commanded(StepID, Command.Move.Target)
    /// The vehicle delays the step because of traffic, and will be asked again. `isNew`: for a reason of another kind.
    case waits(StepID, Refusal, isNew: Bool)
    case moving(StepID)
    case done(Statement)
    /// The rider stops the steps.
    case stops
    /// Where the steps rest that the rider has stopped.
    case stopped([Statement])
    /// The command, the stop, or the question before it, has failed, and the approach goes on.
    case failed(RiderError)
    /// There is no way to the vehicle, and the approach goes on.
    case notConnected(any Failure)
    /// The vehicle listens for this device, and this radio calls it.
    case calling(RadioSpec)
    case cannotCall(RadioError)
  }

  /// How an approach ended without an error.
  package enum Ending {
    case moved(Sighting, Statement)
    /// The beacons were not enough, or no step was to move, and no other search is left.
    case undecided(Location, RadioSpec)
    /// The sighting is not enough, and no search is left.
    case lacking(Sighting, Shortfall)
    /// The rider has stopped the steps, which rest where the statements say. `after`: the sighting of the command that
    /// was under way.
    case stopped([Statement], after: Sighting?)
    /// The rider did not want to wait any longer.
    case quit
  }

  /// The purpose of an approach, and its limits.
  package struct Goal {
    package let vehicle: Vehicle
    /// The side that the rider named; nil for the step that the rider is at.
    package let side: Side?
    /// Whether the radio is a recording that is read at once.
    package let isReplay: Bool
    /// Whether to search only after the vehicle has answered, because it is likely to refuse.
    package let asksFirst: Bool
    /// Whether the approach continues after a command.
    package let goesOn: Bool
    /// The radio that calls a vehicle that listens for this device; nil for none.
    package let calling: RadioSpec?
    /// How long to ask again while the vehicle delays the step because of traffic.
    package let wait: Duration

    package init(
      _ vehicle: Vehicle, side: Side? = nil, isReplay: Bool = false, asksFirst: Bool = false, goesOn: Bool = false,
      calling: RadioSpec? = nil, wait: Duration = .zero
    ) {
      self.vehicle = vehicle
      self.side = side
      self.isReplay = isReplay
      self.asksFirst = asksFirst
      self.goesOn = goesOn
      self.calling = calling
      self.wait = wait
    }

    /// The steps that the rider may want.
    package var steps: [StepID] { vehicle.steps.filter { side == nil || $0.side == side }.map(\.id) }
  }

  private enum Searches {
    case unstarted(Int)
    case running(Int)
    /// The result of the last one; nil if it sighted a step.
    case ended(Result<Finding, any Error>?)
  }

  private enum Caller { case idle, working, failed }

  /// A motion that the rider wants, from the connection to the end of its command.
  private struct Wish {
    enum Stage {
      case connecting
      /// The vehicle was asked. The first sighting that is enough becomes the command.
      case approaching
      /// The command with this sighting is under way.
      case commanding(Sighting)
      /// The vehicle delays the step, and is asked again soon.
      case pausing
    }

    var target: Command.Move.Target
    var stage = Stage.connecting
    /// Whether the vehicle's answer is waited for (`Effect.expect`).
    var isExpecting = false
    /// The error that ended the request to each step.
    var failures: [StepID: RiderError] = [:]
    /// Why the vehicle delayed the step last, and when to stop asking again.
    var delay: (refusal: Refusal, end: Instant)?
    /// While only the vehicle's hearing can still help: the sighting before that wait, and why it is not enough.
    var unheard: (sighting: Sighting, shortfall: Shortfall)?

    /// The sighting of the present command.
    var commanded: Sighting? { if case .commanding(let sighting) = stage { sighting } else { nil } }
  }

  private struct Stop {
    /// The sighting of the command that was under way.
    let commanded: Sighting?
  }

  /// How long the vehicle may take to hear this device. Another proof stays valid for as long.
  package static let patience = Duration.seconds(10)
  /// The pause before the vehicle is asked again. A passing vehicle has left the step within a second.
  package static let pause = Duration.milliseconds(500)

  private let goal: Goal
  private var presence: Presence
  private var searches: Searches
  private var caller = Caller.idle
  /// Nil as long as the rider only looks.
  private var wish: Wish?
  /// The stop that is under way.
  private var stop: Stop?
  private var hasEnded = false
  private var effects: [Effect] = []

  /// - Parameter searches: how many there are, at least one.
  package init(_ goal: Goal, searches: Int) {
    self.goal = goal
    self.searches = .unstarted(searches)
    presence = Presence(side: goal.side)
  }

  /// Where the step is to go as soon as a sighting is enough; nil if the rider wants nothing, and while a command is
  /// under way.
  package var pending: Command.Move.Target? {
    switch wish?.stage {
    case .connecting, .approaching: wish?.target
    case .commanding, .pausing, nil: nil
    }
  }

  /// Takes an input, and returns the effects to perform, in order.
  package mutating func handle(_ input: Input, at now: Instant) -> [Effect] {
    effects = []
    if hasEnded { return [] }
    switch input {
    case .begin(let target?): connect(target)
    case .begin(nil): if !goal.asksFirst { startSearches() }
    case .connected: ask(at: now)
    case .notConnected(let error): forgo(error)
    case .search(let method, let event): searched(event, of: method, at: now)
    case .request(let update, let step): updated(update, of: step, at: now)
    case .caller(let event): called(event, at: now)
    case .want(let target): want(target, at: now)
    case .stop: stopSteps()
    case .stopped(let result): stopped(result, at: now)
    case .quit: if !interruptCommand() { end(.success(.quit)) }
    case .interrupt: if !interruptCommand() { end(.failure(RiderError.interrupted)) }
    case .timer(.pause): if case .pausing? = wish?.stage { renew() }
    case .timer(.patience): stopWaiting()
    }
    return effects
  }

  // MARK: - The rider

  private mutating func want(_ target: Command.Move.Target, at now: Instant) {
    switch wish?.stage {
    case nil: if stop == nil { connect(target) }
    case .connecting, .approaching:
      wish?.target = target
      proceed(at: now)
    case .commanding, .pausing: break
    }
  }

  private mutating func interruptCommand() -> Bool {
    guard wish?.commanded != nil || stop != nil else { return false }
    effects.append(.interruptRequests)
    return true
  }

  /// From here on nothing that was found can move a step.
  private mutating func stopSteps() {
    guard stop == nil else { return }
    stop = Stop(commanded: wish?.commanded)
    effects.append(.stop)
    if wish?.unheard != nil { effects.append(.cancel(.patience)) }
    if case .pausing? = wish?.stage { effects.append(.cancel(.pause)) }
    wish = nil
    report(.stops)
    endSearch()
  }

  private mutating func stopped(_ result: Result<[Statement], any Error>, at now: Instant) {
    guard let stop else { return }
    self.stop = nil
    switch result {
    case .success(let statements):
      report(.stopped(statements))
      goal.goesOn ? forget(at: now) : end(.success(.stopped(statements, after: stop.commanded)))
    case .failure(let error as RiderError) where !error.isInterruption: fail(error, at: now)
    case .failure(let error):
      forgo(error)
      if !hasEnded { forget(at: now) }
    }
  }

  // MARK: - The connection

  private mutating func connect(_ target: Command.Move.Target) {
    wish = Wish(target: target)
    effects.append(.connect)
  }

  /// The slowest part has begun: another thread connects, while others begin to listen and this one seals the
  /// questions.
  private mutating func ask(at now: Instant) {
    guard case .connecting? = wish?.stage else { return }
    if !goal.asksFirst { startSearches() }
    renew()
    proceed(at: now)
  }

  private mutating func renew() {
    wish?.stage = .approaching
    wish?.failures = [:]
    wish?.isExpecting = false
    effects.append(.ask(goal.steps))
    // Whoever does not search comes no closer, and whoever watches a screen wants to know.
    if goal.asksFirst || goal.goesOn { expect() }
  }

  private mutating func expect() {
    guard wish?.isExpecting == false else { return }
    wish?.isExpecting = true
    effects.append(.expect)
  }

  private mutating func forgo(_ error: any Error) {
    guard goal.goesOn, let failure = error as? any Failure, !failure.isInterruption else {
      return end(.failure(error))
    }
    wish = nil
    report(.notConnected(failure))
  }

  // MARK: - The searches

  private mutating func startSearches() {
    guard case .unstarted(let count) = searches else { return }
    searches = .running(count)
    effects.append(.startSearches)
  }

  private mutating func searched(_ event: SearchEvent, of method: ProofMethod, at now: Instant) {
    if case .ended(let result) = event, case .running(let count) = searches {
      let isSighting = if case .success(.sighted) = result { true } else { false }
      searches = count > 1 ? .running(count - 1) : .ended(isSighting ? nil : result)
    }
    if isWorthTelling(event) { report(.search(method, event)) }
    switch event {
    case .note, .waiting: return
    case .decided(_, let sighting): presence.decided(sighting, isReplay: goal.isReplay)
    case .ended(.success(.sighted(let sighting))): presence.found(sighting)
    case .ended: if case .ended(let result?) = searches { return finish(result, at: now) }
    }
    proceed(at: now)
  }

  private func isWorthTelling(_ event: SearchEvent) -> Bool {
    // The search ends with the command, unless the vehicle delays the step.
    if wish?.commanded != nil || stop != nil, !goal.goesOn { return false }
    switch event {
    case .note, .decided, .waiting: return true
    case .ended(.success(.sighted)): return false
    case .ended: if case .ended = searches { return false } else { return true }
    }
  }

  /// The last search has ended without a sighting. An earlier one may still wait for the vehicle's answer.
  private mutating func finish(_ result: Result<Finding, any Error>, at now: Instant) {
    if stop != nil { return }
    switch wish?.stage {
    case .connecting, .commanding, .pausing: return
    case .approaching: if case .nothing = presence.verdict {} else { return proceed(at: now) }
    case nil: break
    }
    switch result {
    case .failure(let error): end(.failure(error))
    // A recording ends at once. An unreachable vehicle is the more important error, but is known only later.
    case .success(.undecided(let location, let radio)) where wish == nil || presence.isAnswered:
      end(.success(.undecided(location, radio)))
    case .success: expect()
    }
  }

  // MARK: - The vehicle

  private mutating func updated(_ update: StepRequest.Update, of step: StepID, at now: Instant) {
    guard let wish else { return }
    switch update {
    case .send: break
    case .answered(_, let policy):
      report(.accepts(policy))
      presence.learned(policy, of: step)
      startSearches()
      proceed(at: now)
    case .call(let call):
      guard let radio = goal.calling, wish.commanded == nil else { return }
      if case .idle = caller { caller = .working }
      effects.append(.call(call, radio))
    case .heard(let place):
      presence.heard(place.flatMap(goal.vehicle.step).map { Sighting(heardAt: $0, found: now) })
      proceed(at: now)
    case .commanded: if wish.delay == nil { report(.commanded(step, wish.target)) }
    case .moving:
      report(.moving(step))
      if goal.wait > .zero { endSearch() }
    case .done(let statement):
      guard let sighting = wish.commanded else { return }
      report(.done(statement))
      goal.goesOn ? forget(at: now) : end(.success(.moved(sighting, statement)))
    case .failed(let error): failed(error, of: step, wish, at: now)
    }
  }

  private mutating func failed(_ error: RiderError, of step: StepID, _ wish: Wish, at now: Instant) {
    switch wish.stage {
    case .approaching:
      self.wish?.failures[step] = error
      // A request that fails is not reported while another one goes on. When all have failed, the first step's error
      // is.
      if goal.steps.contains(where: { self.wish?.failures[$0] == nil }) { return proceed(at: now) }
      fail(self.wish?.failures[goal.steps[0]] ?? error, at: now)
    case .commanding(let sighting) where sighting.step.id == step:
      if !delays(error, at: step, wish, now) { fail(error, at: now) }
    // The other requests were abandoned.
    case .commanding, .connecting, .pausing: break
    }
  }

  /// Whether to ask the vehicle again: something comes towards the step, and the rider has time. The searches go on
  /// meanwhile, so the next command has a fresh proof.
  private mutating func delays(_ error: RiderError, at step: StepID, _ wish: Wish, _ now: Instant) -> Bool {
    guard case .refused(let refusal, _) = error, refusal.code == .approaching || refusal.code == .blind,
      refusal.retryCanHelp, goal.wait > .zero
    else { return false }
    let (next, end) = (now + Self.pause, wish.delay?.end ?? now + goal.wait)
    guard next <= end else { return false }
    let last = wish.delay?.refusal
    self.wish?.delay = (refusal, end)
    self.wish?.stage = .pausing
    effects.append(.schedule(.pause, at: next))
    let isNew = last?.code != refusal.code || last?.oncoming?.category != refusal.oncoming?.category
    report(.waits(step, refusal, isNew: isNew))
    return true
  }

  private mutating func called(_ event: CallSender.Event, at now: Instant) {
    guard let radio = goal.calling, caller != .idle else { return }
    switch event {
    case .calling:
      caller = .working
      report(.calling(radio))
    case .failed(let error):
      caller = .failed
      report(.cannotCall(error))
      proceed(at: now)
    }
  }

  // MARK: - The decision

  /// Sends the command, if that is possible now.
  private mutating func proceed(at now: Instant) {
    guard let wish, case .approaching = wish.stage else { return }
    switch presence.verdict {
    case .suffices(let sighting):
      // The request to this step has ended: a command would not be sent, and no answer would come.
      if let error = wish.failures[sighting.step.id] { return fail(error, at: now) }
      self.wish?.stage = .commanding(sighting)
      report(.sighted(sighting, wish.target, isAgain: wish.delay != nil))
      effects.append(.present(sighting, wish.target))
      // Last, because releasing a radio takes time.
      if goal.wait == .zero { endSearch() }
    case .asks(let sighting):
      if let error = wish.failures[sighting.step.id] { return fail(error, at: now) }
      expect()
      report(.asks(sighting))
    case .lacks(let sighting, let shortfall):
      guard case .ended = searches else { return report(.lacks(sighting, shortfall)) }
      guard caller == .working, presence.awaitsHearing(shortfall, at: sighting.step.id) else {
        return end(.success(.lacking(sighting, shortfall)))
      }
      // Gives the vehicle time to hear this device.
      if wish.unheard == nil {
        self.wish?.unheard = (sighting, shortfall)
        effects.append(.schedule(.patience, at: now + Self.patience))
      }
      report(.lacks(sighting, shortfall))
    case .nothing: if case .ended(let result?) = searches { finish(result, at: now) }
    }
  }

  /// The vehicle has not heard this device in time.
  private mutating func stopWaiting() {
    guard let (sighting, shortfall) = wish?.unheard else { return }
    wish?.unheard = nil
    guard wish?.commanded == nil else { return }
    switch presence.verdict {
    case .lacks(let sighting, let shortfall): end(.success(.lacking(sighting, shortfall)))
    // The vehicle heard the device at another step, and now hears it nowhere.
    case .nothing: end(.success(.lacking(sighting, shortfall)))
    // The answer arrives later, or the request fails.
    case .asks, .suffices: break
    }
  }

  // MARK: - The end

  /// Nothing more has to be found: the command is under way, or the rider stops the steps.
  private mutating func endSearch() {
    if !goal.goesOn { effects.append(.stopSearches) }
    effects.append(.stopCalling)
  }

  private mutating func fail(_ error: RiderError, at now: Instant) {
    guard goal.goesOn else { return end(.failure(error)) }
    report(.failed(error))
    forget(at: now)
  }

  /// The command has ended, and the approach continues.
  private mutating func forget(at now: Instant) {
    if wish?.unheard != nil { effects.append(.cancel(.patience)) }
    (wish, caller) = (nil, .idle)
    // The next answer says where the vehicle then hears the device.
    presence.heard(nil)
    effects.append(.close)
    if case .ended(let result?) = searches { finish(result, at: now) }
  }

  private mutating func report(_ event: Event) { effects.append(.report(event)) }

  private mutating func end(_ result: Result<Ending, any Error>) {
    hasEnded = true
    effects.append(.end(result))
  }
}
