package import Bluetooth
package import Domain
package import Ranging
package import StepProtocol
package import SystemIO

/// A rider on the way to a step. While the searches run, the vehicle is asked for a challenge and for its policy. The
/// first sighting that the vehicle accepts becomes the command.
///
/// **Threads.** One thread creates and runs it. `want` and `quit` may be called from `tell` and from handlers of its
/// loop.
package final class Approach {
  /// What happens on the way, for the user interface.
  package enum Event {
    case search(ProofMethod, SearchEvent)
    /// The vehicle has not said yet whether this sighting is enough.
    case asks(Sighting)
    /// This sighting is not enough, and the searches go on.
    case lacks(Sighting, Shortfall)
    /// This sighting is enough: it becomes the command.
    case sighted(Sighting)
    case request(StepRequest.Update)
    /// The vehicle delays the step because of traffic, and will be asked again.
    case waits(StepID, Refusal)
    /// Information for the user about the calls: a sentence without a full stop.
    case calls(String)
  }

  /// How an approach ended without an error.
  package enum Ending {
    case moved(Sighting, Statement)
    /// The beacons were not enough, or no step was to move, and no other search is left.
    case undecided(Location, RadioSpec)
    /// The sighting is not enough, and no search is left.
    case lacking(Sighting, Shortfall)
    /// The rider did not want to wait any longer.
    case quit
  }

  /// The purpose of an approach, and its limits.
  package struct Goal {
    /// The steps that the rider may want.
    let steps: [StepID]
    /// The side that the rider named; nil for the step that the rider is at.
    let side: Side?
    /// Whether the radio plays a recording.
    let isReplay: Bool
    /// Whether to search only after the vehicle has answered, because it is likely to refuse.
    let asksFirst: Bool
    /// Whether the approach continues after a command.
    let goesOn: Bool
    /// The radio that calls a vehicle that listens for this device; nil for none.
    let calling: RadioSpec?
    /// How long to ask again while the vehicle delays the step because of traffic.
    let wait: Duration

    package init(
      steps: [StepID], side: Side? = nil, isReplay: Bool = false, asksFirst: Bool = false, goesOn: Bool = false,
      calling: RadioSpec? = nil, wait: Duration = .zero
    ) {
      self.steps = steps
      self.side = side
      self.isReplay = isReplay
      self.asksFirst = asksFirst
      self.goesOn = goesOn
      self.calling = calling
      self.wait = wait
    }
  }

  private let goal: Goal
  private let search: PresenceSearch
  private let loop: EventLoop
  private let interruption: Interruption
  private let connect: () throws -> RiderClient
  private var tell: (Event) throws -> Void = { _ in }

  /// Where the step is to go; nil as long as the rider only looks.
  private var target: Command.Move.Target?
  private var client: RiderClient?
  private var presence: Presence
  private var isSearching = false
  /// The sighting of the present command.
  private var commanded: Sighting?
  /// The error that ended the request to each step.
  private var failures: [StepID: RiderError] = [:]
  private var ending: Ending?

  private var sender: CallSender?
  private var senderEvents: Registration?
  /// Set while only the vehicle's hearing can still help.
  private var lastWait: Registration?
  /// How long that may take. Another proof stays valid for as long.
  private static let patience = Duration.seconds(10)

  /// After the vehicle has delayed the step: when to stop asking again.
  private var waitEnd: Instant?
  /// The pause before the vehicle is asked again.
  private var pause: Registration?
  /// The length of that pause. A passing vehicle has left the step within a second.
  private static let pauseLength = Duration.milliseconds(500)
  /// The result of the last search, when all have ended.
  private var lastResult: Result<Finding, any Error>?

  /// - Parameters:
  ///   - search: not started yet.
  ///   - interruption: ends the approach as a signal does.
  ///   - connect: connects to the vehicle, on the same loop, for all of the steps.
  package init(
    _ goal: Goal, _ search: PresenceSearch, on loop: EventLoop, _ interruption: Interruption,
    connect: @escaping () throws -> RiderClient
  ) {
    self.goal = goal
    self.search = search
    self.loop = loop
    self.interruption = interruption
    self.connect = connect
    presence = Presence(side: goal.side)
  }

  /// Runs the loop until the step has come to rest, or nothing is left to wait for.
  ///
  /// - Parameter target: where the step is to go; nil until the rider says so (`want`).
  /// - Throws: `RiderError`; if all searches ended without a sighting, the error of the last one.
  package func run(_ target: Command.Move.Target?, tell: @escaping (Event) throws -> Void) throws -> Ending {
    self.tell = tell
    let watch = try loop.watch(interruption.number) { [unowned self] in
      if try !interruptCommand() { throw RiderError.interrupted }
    }
    defer {
      watch.cancel()
      search.stop()
      stopCalling()
      lastWait?.cancel()
      pause?.cancel()
      client?.close()
      self.tell = { _ in }
    }
    self.target = target
    // The slowest part comes first: another thread connects, while others begin to listen and this one seals the
    // questions.
    if target != nil { client = try connect() }
    if !goal.asksFirst { try listen() }
    if client != nil { try ask() }
    if ending == nil { try loop.run() }
    // Only `end` stops the loop without an error, and it sets this first.
    return ending!
  }

  /// Opens or closes the step as soon as a sighting is enough. Does nothing while a command is under way.
  package func want(_ target: Command.Move.Target) throws {
    guard commanded == nil, pause == nil else { return }
    let isNew = client == nil
    if isNew { client = try connect() }
    self.target = target
    if isNew { try ask() }
    try proceed()
  }

  /// Whether a command is under way.
  package var isCommanding: Bool { commanded != nil || pause != nil }

  /// Ends the approach. Interrupts a command that is under way, with an error that says so.
  package func quit() throws {
    if try !interruptCommand() { end(.quit) }
  }

  // MARK: -

  private func ask() throws {
    failures = [:]
    try client?.begin(goal.steps.map { .prepare($0) }) { [unowned self] in try take($1, of: $0) }
  }

  private func listen() throws {
    isSearching = true
    try search.start(on: loop) { [unowned self] method, event in
      // The search ends with the command, unless the vehicle delays the step.
      if commanded == nil || goal.goesOn { try tell(.search(method, event)) }
      switch event {
      case .note, .waiting: return
      case .decided(_, let sighting): presence.take(decision: sighting, isReplay: goal.isReplay)
      case .ended(.success(.sighted(let sighting))): presence.take(sighting)
      case .ended(let result): if !search.isRunning { return try finish(result) }
      }
      try proceed()
    }
  }

  private func take(_ update: StepRequest.Update, of step: StepID) throws {
    // Does not show the failure of one step: the error that ends the whole run is shown.
    if case .failed = update {} else { try tell(.request(update)) }
    switch update {
    case .send, .commanded: return
    case .moving:
      if goal.wait > .zero { endSearch() }
    case .call(let call): try self.call(call)
    case .heard(let place):
      presence.take(heard: place.flatMap { client?.step($0) }.map { Sighting(heardAt: $0, found: .now) })
      try proceed()
    case .answered(_, let policy):
      presence.take(policy, at: step)
      if !isSearching { try listen() }
      try proceed()
    case .failed(let error):
      if commanded?.step.id == step, try waits(after: error, at: step) { return }
      failures[step] = error
      if commanded == nil, goal.steps.contains(where: { failures[$0] == nil }) { return try proceed() }
      // Without a command, every step has failed by now.
      try fail(commanded == nil ? failures[goal.steps[0]]! : error)
    case .done(let statement):
      guard let sighting = commanded else { return }
      if goal.goesOn { forget() } else { end(.moved(sighting, statement)) }
    }
  }

  private func call(_ call: Call) throws {
    guard let radio = goal.calling, commanded == nil else { return }
    if sender == nil {
      let sender = try CallSender(radio)
      self.sender = sender
      senderEvents = try loop.receive(sender.events) { [unowned self] event in
        self.sender?.take(event)
        switch event {
        case .calling: try tell(.calls("calling the vehicle with \(radio), because it listens for you"))
        case .failed(let error):
          try tell(.calls("the vehicle cannot hear you: \(error)"))
          try proceed()
        }
      }
    }
    sender?.call(call)
  }

  /// Whether to ask the vehicle again: something comes towards the step, and the rider has time. The searches go on
  /// meanwhile, so the next command has a fresh proof.
  private func waits(after error: RiderError, at step: StepID) throws -> Bool {
    guard case .refused(let refusal, _) = error, refusal.code == .approaching || refusal.code == .blind,
      refusal.retryCanHelp, goal.wait > .zero
    else { return false }
    let next = Instant.now + Self.pauseLength
    let end = waitEnd ?? .now + goal.wait
    waitEnd = end
    guard next <= end else { return false }
    commanded = nil
    pause = loop.schedule(at: next) { [unowned self] in
      pause = nil
      try ask()
    }
    try tell(.waits(step, refusal))
    return true
  }

  /// The vehicle has obeyed the command, or will not obey it.
  private func endSearch() {
    if !goal.goesOn { search.stop() }
    sender?.stop()
  }

  private func stopCalling() {
    senderEvents?.cancel()
    sender?.close()
    (sender, senderEvents) = (nil, nil)
  }

  /// Gives the vehicle time to hear this device.
  ///
  /// - Parameters:
  ///   - sighting: the sighting before the wait.
  ///   - shortfall: why that sighting is not enough.
  private func waitForEars(_ sighting: Sighting, _ shortfall: Shortfall) {
    guard lastWait == nil else { return }
    lastWait = loop.schedule(at: .now + Self.patience) { [unowned self] in
      lastWait = nil
      guard commanded == nil else { return }
      switch presence.verdict {
      case .lacks(let sighting, let shortfall): end(.lacking(sighting, shortfall))
      // The vehicle heard the device at another step, and now hears it nowhere.
      case .nothing: end(.lacking(sighting, shortfall))
      // The answer arrives later, or the request fails.
      case .asks, .suffices: break
      }
    }
  }

  /// Sends the command, if that is possible now.
  private func proceed() throws {
    guard commanded == nil, pause == nil, let target, let client, ending == nil else { return }
    switch presence.verdict {
    case .suffices(let sighting):
      // The request to this step has ended: a command would not be sent, and no answer would come.
      if let error = failures[sighting.step.id] { return try fail(error) }
      commanded = sighting
      try tell(.sighted(sighting))
      try client.present(sighting, to: target)
      // Last, because releasing a radio takes time.
      if goal.wait == .zero { endSearch() }
    case .asks(let sighting):
      if let error = failures[sighting.step.id] { return try fail(error) }
      try tell(.asks(sighting))
    case .lacks(let sighting, let shortfall):
      guard isSearching, !search.isRunning else { return try tell(.lacks(sighting, shortfall)) }
      if sender?.canCall == true, presence.awaitsHearing(shortfall, at: sighting.step.id) {
        waitForEars(sighting, shortfall)
        return try tell(.lacks(sighting, shortfall))
      }
      end(.lacking(sighting, shortfall))
    case .nothing: if let lastResult { try finish(lastResult) }
    }
  }

  /// The last search has ended without a sighting. An earlier one may still wait for the vehicle's answer.
  private func finish(_ result: Result<Finding, any Error>) throws {
    lastResult = result
    guard commanded == nil, pause == nil else { return }
    if case .nothing = presence.verdict {} else if target != nil { return try proceed() }
    guard case .undecided(let location, let radio) = try result.get() else { return }
    // A recording ends at once. An unreachable vehicle is the more important error, but is known only later.
    guard target == nil || presence.isAnswered else { return }
    end(.undecided(location, radio))
  }

  private func fail(_ error: RiderError) throws {
    guard goal.goesOn else { throw error }
    try tell(.request(.failed(error)))
    forget()
  }

  /// The command has ended, and the approach continues. The caller may be the client itself.
  private func forget() {
    let client = client
    stopCalling()
    (target, commanded, self.client, waitEnd) = (nil, nil, nil, nil)
    // The next answer says where the vehicle then hears the device.
    presence.take(heard: nil)
    loop.schedule(at: .now) { [unowned self] in
      client?.close()
      if ending == nil, let lastResult { try finish(lastResult) }
    }
  }

  private func interruptCommand() throws -> Bool {
    guard commanded != nil, let client else { return false }
    try client.interrupt()
    return true
  }

  private func end(_ ending: Ending) {
    self.ending = ending
    loop.stop()
  }
}
