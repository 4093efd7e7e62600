public import Domain
package import MQTT
public import StepProtocol
package import SystemIO

/// A rider's connection to one vehicle: asks, commands, and believes only what the controller signed.
///
/// **Threads.** One thread makes the client, asks it and closes it; its callbacks run on that thread. `perform`,
/// `status` and `watch` run the event loop until they are done, so whatever else the loop watches is served meanwhile.
///
/// **A lost connection** ends the request that is under way, and is not made again: the error says whether the step may
/// have moved.
public final class RiderClient {
  private let access: RiderAccess
  private let patience: Duration
  private let loop: EventLoop
  private let connection: MQTTConnection
  /// Gets what only someone who looks for a fault wants to know.
  private let detail: (String) -> Void
  /// Gets each message as it travels, encrypted or signed; nil where nobody looks.
  private let trace: ((String) -> Void)?
  /// What is shown when the connection is there: nothing leaves before.
  private var unsent: [String] = []
  private var registrations: [Registration] = []
  private var isConnected = false
  /// What the broker says of the controller.
  private var isOffline = false

  /// Those that are under way, and those that ended since they were begun together.
  private var requests: [StepRequest] = []
  private var results: [StepID: Result<Statement, RiderError>] = [:]
  private var tell: (StepID, StepRequest.Update) throws -> Void = { _, _ in }
  private var timer: Registration?
  /// Whether the loop runs for the requests.
  private var isWaiting = false
  /// Gets statements that answer no request.
  private var observe: ((Answer) throws -> Void)?
  private var observeAvailability: (() throws -> Void)?

  /// Starts to connect, with an event loop of its own.
  ///
  /// - Parameters:
  ///   - steps: whose statements are subscribed to.
  ///   - patience: for the connection, and for the answer to a question.
  /// - Throws: `Failure`, where a certificate cannot be read or the process has no descriptors left.
  public convenience init(_ access: RiderAccess, steps: [StepID], patience: Duration = .seconds(10)) throws {
    try self.init(access, steps: steps, patience: patience, loop: EventLoop())
  }

  /// Starts to connect.
  ///
  /// - Parameters:
  ///   - preparation: of the TLS of the vehicle's broker.
  ///   - interruption: what ends every wait.
  package init(
    _ access: RiderAccess, steps: [StepID], patience: Duration, loop: EventLoop, preparation: TLSPreparation? = nil,
    interruption: Interruption? = nil, detail: @escaping (String) -> Void = { _ in }, trace: ((String) -> Void)? = nil
  ) throws {
    self.access = access
    self.patience = patience
    self.loop = loop
    self.detail = detail
    self.trace = trace
    detail("connecting to \(access.broker)")
    connection = try MQTTConnection(
      broker: access.broker, subscriptions: steps.map { access.topic.status($0) } + [access.topic.availability],
      reconnecting: .never, patience: patience, preparation: preparation)
    registrations.append(try loop.watch(connection.descriptor) { [unowned self] in try receive() })
    if let interruption {
      registrations.append(try loop.watch(interruption.number) { [unowned self] in try interrupt() })
    }
  }

  deinit { close() }

  /// The step of that name.
  package func step(_ id: StepID) -> Step? { access.vehicle.step(id) }

  /// Ends the connection. Idempotent; after it, nothing else may be called.
  public func close() {
    for registration in registrations { registration.cancel() }
    timer?.cancel()
    connection.close()
  }

  /// Carries out what is wished of one step or of several at the same time, and waits until every request has ended.
  ///
  /// A step that is moved is done when the vehicle confirms that it stands where it should, one that is stopped when
  /// the vehicle confirms that it is at rest.
  ///
  /// - Parameters:
  ///   - goals: at most one for a step.
  ///   - tell: gets what happens on the way, and of which step.
  /// - Returns: the statement with which each request ended, in the order of the goals.
  /// - Throws: `RiderError`, which says whether a step may have moved. Where several requests fail, it is the error of
  ///   one that leaves a doubt, if there is one; `tell` gets them all.
  @discardableResult
  public func perform(
    _ goals: [StepRequest.Goal], tell: @escaping (StepID, StepRequest.Update) throws -> Void = { _, _ in }
  ) throws -> [Statement] {
    defer {
      timer?.cancel()
      (requests, self.tell, timer) = ([], { _, _ in }, nil)
    }
    try begin(goals, tell: tell)
    if !areDone {
      isWaiting = true
      defer { isWaiting = false }
      try loop.run()
    }
    // The loop runs until there is a result of each, or throws.
    let ends = goals.map { results[$0.step]! }
    let errors = ends.compactMap { if case .failure(let error) = $0 { error } else { nil } }
    if let error = errors.first(where: { $0.exitStatus == .unconfirmed }) ?? errors.first { throw error }
    return try ends.map { try $0.get() }
  }

  /// Begins requests, and returns: whoever calls runs the loop, in which `tell` is called.
  ///
  /// - Parameter goals: at most one for a step. They take the place of all that was begun before.
  package func begin(
    _ goals: [StepRequest.Goal], tell: @escaping (StepID, StepRequest.Update) throws -> Void
  ) throws {
    precondition(Set(goals.map(\.step)).count == goals.count, "two requests to one step")
    requests = goals.map { StepRequest($0, with: access, limit: .now + patience, isOffline: isOffline) }
    (self.tell, results) = (tell, [:])
    let questions = requests.indices.map { requests[$0].begin() }
    // Where one cannot be sent, all requests have ended.
    for index in requests.indices where !requests[index].hasEnded { try handle(questions[index], of: index) }
  }

  /// Has a step moved that was prepared (`StepRequest.Goal.prepare`), and lets go of the other requests. Once; it may
  /// be called from `tell`.
  package func present(_ sighting: Sighting, to target: Command.Move.Target) throws {
    for index in requests.indices {
      if requests[index].step != sighting.step.id {
        requests[index].abandon()
      } else if !requests[index].hasEnded {
        try handle(requests[index].present(sighting, to: target, at: .now), of: index)
      }
    }
  }

  /// Asks how a step stands. Nothing moves.
  ///
  /// - Returns: a fresh statement, and which proofs the vehicle accepts from this rider.
  public func status(of step: StepID) throws -> (statement: Statement, policy: PresencePolicy) {
    var policy: PresencePolicy?
    let statements = try perform([.status(step)]) { _, update in
      if case .answered(_, let told) = update { policy = told }
    }
    // A status request ends with an answer only.
    return (statements[0], policy!)
  }

  /// Asks how a step stands, and what the controller says of itself. Nothing moves.
  ///
  /// - Returns: what it says, nil from a controller of an earlier version; its own clock, milliseconds since it was
  ///   started; and the time that question and answer took.
  package func examine(_ step: StepID) throws -> (about: About?, clock: Int64, roundTrip: Duration) {
    let began = ContinuousClock.now
    let statement = try perform([.examine(step)])[0]
    let roundTrip = began.duration(to: .now)
    guard case .challenge(let challenge)? = statement.answer?.outcome else { return (nil, statement.clock, roundTrip) }
    return (challenge.about, statement.clock, roundTrip)
  }

  /// Gives every statement that arrives from now on to `body`, until it returns false, or until the broker says that
  /// the controller has come or gone. Nobody signs that: a program that wants to know asks.
  ///
  /// - Throws: what `body` throws, `RiderError.interrupted`, and why the connection was lost.
  public func watch(_ body: @escaping (Answer) throws -> Bool) throws {
    observe = { [loop] answer in if try !body(answer) { loop.stop() } }
    observeAvailability = { [loop] in loop.stop() }
    defer { (observe, observeAvailability) = (nil, nil) }
    try loop.run()
  }

  // MARK: -

  private var areDone: Bool { requests.allSatisfy(\.hasEnded) }

  /// One event at a time: whoever sends more than can be read holds up neither a timer nor a signal.
  private func receive() throws {
    let event = try connection.next(until: .now)
    if let trace, case .message(let message) = event {
      trace("< \(message.topic) \(String(decoding: message.payload, as: UTF8.self))")
    }
    switch event {
    case .message(let message) where message.topic == access.topic.availability:
      isOffline = message.payload == Availability.offline.payload
      for index in requests.indices { requests[index].isOffline = isOffline }
      // What the broker had kept says nothing new.
      guard !message.isRetained else { break }
      if !isOffline { for index in requests.indices { try handle(requests[index].askAgain(), of: index) } }
      try observeAvailability?()
    case .message(let message):
      let statement: Statement
      do throws(ProtocolError) { statement = try access.statement(message.payload, on: message.topic) } catch {
        return detail("ignored a status: \(error)")
      }
      let answer = Answer(statement: statement, received: .now)
      var isAwaited = false
      for index in requests.indices {
        let updates = requests[index].receive(answer)
        guard !updates.isEmpty else { continue }
        isAwaited = true
        try handle(updates, of: index)
      }
      if !isAwaited { try observe?(answer) }
    case .connected:
      isConnected = true
      detail("connected, as the broker's certificate was checked")
      if let trace { unsent.forEach(trace) }
      unsent = []
      scheduleLimit()
    case .disconnected(let error):
      guard !requests.isEmpty else { throw error }
      for index in requests.indices { try handle(requests[index].disconnect(error), of: index) }
    case .acknowledged, nil: break
    }
  }

  /// Ends what is under way, as a signal does.
  package func interrupt() throws {
    guard !requests.isEmpty else { throw RiderError.interrupted }
    for index in requests.indices { try handle(requests[index].interrupt(), of: index) }
  }

  private func handle(_ updates: [StepRequest.Update], of index: Int) throws {
    let step = requests[index].step
    for update in updates {
      switch update {
      case .send(let topic, let payload):
        if let trace {
          let line = "> \(topic) \(String(decoding: payload, as: UTF8.self))"
          isConnected ? trace(line) : unsent.append(line)
        }
        guard connection.publish(topic: topic, payload: payload, retain: false) != nil else {
          let error = reasonOfLoss()
          try handle(requests[index].failToSend(error), of: index)
          for other in requests.indices { try handle(requests[other].disconnect(error), of: other) }
          return
        }
      case .done(let statement): results[step] = .success(statement)
      case .failed(let error): results[step] = .failure(error)
      case .answered, .call, .heard, .commanded, .moving: break
      }
      try tell(step, update)
    }
    scheduleLimit()
    if isWaiting, areDone { loop.stop() }
  }

  /// Sets the timer to the first limit of a request. The connection's own patience ends at about the same time, and
  /// knows how far the connection had come.
  private func scheduleLimit() {
    timer?.cancel()
    guard let limit = requests.filter({ !$0.hasEnded }).map(\.limit).min() else { return }
    timer = loop.schedule(at: isConnected ? limit : limit + .seconds(1)) { [unowned self] in
      for index in requests.indices {
        try handle(
          isConnected
            ? requests[index].advance(to: .now)
            : requests[index].disconnect(MQTTError.timedOut(access.broker, .greeting)),
          of: index)
      }
    }
  }

  /// Why nothing can be published any more.
  private func reasonOfLoss() -> any Failure {
    while let event = try? connection.next(until: .now) {
      if case .disconnected(let error) = event { return error }
    }
    return MQTTError.lost(access.broker, .established)
  }
}
