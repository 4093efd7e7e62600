import Domain
package import StepProtocol
package import SystemIO

/// Performs the effects of an `Approach`: owns its loop, searches, connection, calls and timers.
///
/// **Threads.** One thread creates, runs and closes it. `want`, `stop` and `quit` may be called from `tell` and from
/// handlers of its loop.
package final class ApproachRunner {
  package let loop: EventLoop
  private var approach: Approach
  private let search: PresenceSearch
  private let connect: (EventLoop) throws -> RiderClient
  private var tell: (Approach.Event) throws -> Void = { _ in }
  private var client: RiderClient?
  private var calls: (sender: CallSender, events: Registration)?
  private var timers: [(timer: Approach.Timer, registration: Registration)] = []
  /// What came while effects are performed: the client answers some of them at once.
  private var inputs: [Approach.Input] = []
  private var isPerforming = false
  private var result: Result<Approach.Ending, any Error>?

  /// - Parameters:
  ///   - searches: at least one.
  ///   - connect: begins to connect to the vehicle, on the loop, for all steps of the goal.
  package init(
    _ goal: Approach.Goal, _ searches: [any StepSearch], connect: @escaping (EventLoop) throws -> RiderClient
  ) throws {
    loop = try EventLoop()
    search = try PresenceSearch(searches)
    approach = Approach(goal, searches: searches.count)
    self.connect = connect
  }

  /// Runs the loop until the step has come to rest, or nothing is left to wait for.
  ///
  /// - Parameters:
  ///   - target: where the step is to go; nil until the rider says so (`want`).
  ///   - interruption: ends the approach as a signal does.
  /// - Throws: `RiderError`; if all searches ended without a sighting, the error of the last one.
  package func run(
    _ target: Command.Move.Target?, until interruption: Interruption, tell: @escaping (Approach.Event) throws -> Void
  ) throws -> Approach.Ending {
    self.tell = tell
    let watch = try loop.watch(interruption.number) { [unowned self] in try apply(.interrupt) }
    defer {
      watch.cancel()
      search.stop()
      stopCalling()
      for (_, registration) in timers { registration.cancel() }
      client?.close()
      self.tell = { _ in }
    }
    try apply(.begin(target))
    try loop.run()
    // Only the effect `end` stops the loop without an error, and it sets this first.
    return try result!.get()
  }

  /// Ends the searches that still run, and waits until they have released their devices: 2 s at most.
  package func close() { search.close() }

  package func want(_ target: Command.Move.Target) throws { try apply(.want(target)) }

  package func stop() throws { try apply(.stop) }

  package func quit() throws { try apply(.quit) }

  /// Where the step is to go as soon as a sighting is enough.
  package var pending: Command.Move.Target? { approach.pending }

  // MARK: -

  private func apply(_ input: Approach.Input) throws {
    inputs.append(input)
    if isPerforming { return }
    isPerforming = true
    defer { isPerforming = false }
    while !inputs.isEmpty {
      for effect in approach.handle(inputs.removeFirst(), at: .now) { try perform(effect) }
    }
  }

  private func perform(_ effect: Approach.Effect) throws {
    switch effect {
    case .connect:
      do {
        client = try connect(loop)
        inputs.append(.connected)
      } catch {
        inputs.append(.notConnected(error))
      }
    case .ask(let steps):
      try client?.begin(steps.map { .prepare($0) }) { [unowned self, weak client] step, update in
        // A client that is to be closed has nothing more to say.
        if client === self.client { try apply(.request(update, of: step)) }
      }
    case .expect: try client?.expect()
    case .startSearches: try search.start(on: loop) { [unowned self] in try apply(.search($0, $1)) }
    case .stopSearches: search.stop()
    case .present(let sighting, let target): try client?.present(sighting, to: target)
    case .stop: try stopSteps(over: client)
    case .call(let call, let radio):
      if calls == nil {
        let sender = try CallSender(radio)
        calls = (sender, try loop.receive(sender.events) { [unowned self] in try apply(.caller($0)) })
      }
      calls?.sender.call(call)
    case .stopCalling: calls?.sender.stop()
    case .interruptRequests: try client?.interrupt()
    case .close:
      stopCalling()
      // Later, because the caller may be the client itself.
      if let client { loop.schedule(at: .now) { client.close() } }
      client = nil
    case .schedule(let timer, let time):
      cancel(timer)
      timers.append((timer, loop.schedule(at: time) { [unowned self] in try apply(.timer(timer)) }))
    case .cancel(let timer): cancel(timer)
    case .report(let event): try tell(event)
    case .end(let result):
      self.result = result
      loop.stop()
    }
  }

  /// - Parameter present: the connection that there is; nil for a new one.
  private func stopSteps(over present: RiderClient?) throws {
    do {
      let client = try present ?? connect(loop)
      self.client = client
      try client.stop { [unowned self, weak client] result in
        guard let client, client === self.client else { return }
        // What was lost before the stop says nothing about a new connection.
        if case .failure(.notSent) = result, present != nil {
          loop.schedule(at: .now) { client.close() }
          return try stopSteps(over: nil)
        }
        try apply(.stopped(result.mapError { $0 }))
      }
    } catch {
      try apply(.stopped(.failure(error)))
    }
  }

  private func cancel(_ timer: Approach.Timer) {
    for entry in timers where entry.timer == timer { entry.registration.cancel() }
    timers.removeAll { $0.timer == timer }
  }

  private func stopCalling() {
    calls?.events.cancel()
    calls?.sender.close()
    calls = nil
  }
}
