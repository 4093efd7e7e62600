import Certificates
public import Domain
package import MQTT
public import StepProtocol
package import SystemIO

/// A rider's connection to one vehicle. It asks and commands, and trusts only what the controller signed.
///
/// **Threads.** One thread creates, uses and closes the client; its callbacks run on that thread. `perform`, `status`
/// and `watch` run the event loop until they are done, so everything else that the loop watches is served meanwhile.
///
/// **A lost connection** ends the present request, and the client does not reconnect. The error says whether the step
/// may have moved.
public final class RiderClient {
  private let access: RiderAccess
  private let patience: Duration
  private let loop: EventLoop
  private let connection: MQTTConnection
  /// Gets details for troubleshooting.
  private let detail: (String) -> Void
  /// Gets each message as it is sent, encrypted or signed; nil if it is not wanted.
  private let trace: ((String) -> Void)?
  /// Trace lines to show after connecting: nothing is sent before.
  private var unsent: [String] = []
  private var registrations: [Registration] = []
  private var isConnected = false
  /// Whether the controller is offline, according to the broker.
  private var isOffline = false

  /// The present requests, including those of the same group that have ended.
  private var requests: [StepRequest] = []
  private var results: [StepID: Result<Statement, RiderError>] = [:]
  private var tell: (StepID, StepRequest.Update) throws -> Void = { _, _ in }
  private var timer: Registration?
  /// Whether the loop runs for the requests.
  private var isWaiting = false
  /// Gets statements that answer no request.
  private var observe: ((Answer) throws -> Void)?
  private var observeAvailability: (() throws -> Void)?

  /// Begins to connect, on a new event loop.
  ///
  /// - Parameters:
  ///   - steps: the steps to whose statements it subscribes.
  ///   - patience: the time limit for the connection, and for the answer to a question.
  /// - Throws: `Failure`, if a certificate cannot be read or the process has no descriptors left.
  public convenience init(_ access: RiderAccess, steps: [StepID], patience: Duration = .seconds(10)) throws {
    try self.init(access, steps: steps, patience: patience, loop: EventLoop())
  }

  /// Begins to connect.
  ///
  /// - Parameters:
  ///   - preparation: the TLS preparation for the vehicle's broker.
  ///   - interruption: ends every wait.
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

  /// Ends the connection. Idempotent. After that, no other method may be called.
  public func close() {
    for registration in registrations { registration.cancel() }
    timer?.cancel()
    connection.close()
  }

  /// Performs one goal, or several at the same time, and waits until every request has ended.
  ///
  /// A move is done when the vehicle confirms that the step is at its target. A stop is done when the vehicle confirms
  /// that the step is at rest.
  ///
  /// - Parameters:
  ///   - goals: at most one per step.
  ///   - tell: gets the updates, each with its step.
  /// - Returns: the statement that ended each request, in the order of the goals.
  /// - Throws: `RiderError`, which says whether a step may have moved. If several requests fail, an error that leaves a
  ///   doubt comes first; `tell` gets all errors.
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
    // The loop runs until each goal has a result, or throws.
    let ends = goals.map { results[$0.step]! }
    let errors = ends.compactMap { if case .failure(let error) = $0 { error } else { nil } }
    if let error = errors.first(where: { $0.exitStatus == .unconfirmed }) ?? errors.first { throw error }
    return try ends.map { try $0.get() }
  }

  /// Begins requests, and returns. The caller runs the loop, which calls `tell`.
  ///
  /// - Parameter goals: at most one per step. They replace all earlier requests.
  package func begin(
    _ goals: [StepRequest.Goal], tell: @escaping (StepID, StepRequest.Update) throws -> Void
  ) throws {
    precondition(Set(goals.map(\.step)).count == goals.count, "two requests to one step")
    requests = goals.map { StepRequest($0, with: access, limit: .now + patience, isOffline: isOffline) }
    (self.tell, results) = (tell, [:])
    let questions = requests.indices.map { requests[$0].begin() }
    // If one cannot be sent, all requests have ended.
    for index in requests.indices where !requests[index].hasEnded { try handle(questions[index], of: index) }
  }

  /// Moves a prepared step (`StepRequest.Goal.prepare`), and abandons the other requests. May be called only once, also
  /// from `tell`.
  package func present(_ sighting: Sighting, to target: Command.Move.Target) throws {
    for index in requests.indices {
      if requests[index].step != sighting.step.id {
        requests[index].abandon()
      } else if !requests[index].hasEnded {
        try handle(requests[index].present(sighting, to: target, at: .now), of: index)
      }
    }
  }

  /// Asks for a step's status. Nothing moves.
  ///
  /// - Returns: a fresh statement, and the proofs that the vehicle accepts from this rider.
  public func status(of step: StepID) throws -> (statement: Statement, policy: PresencePolicy) {
    var policy: PresencePolicy?
    let statements = try perform([.status(step)]) { _, update in
      if case .answered(_, let told) = update { policy = told }
    }
    // A status request ends only with an answer.
    return (statements[0], policy!)
  }

  /// Asks for a step's status and for information about the controller. Nothing moves.
  ///
  /// - Returns: the information, nil from an earlier version of the controller; the controller's clock, milliseconds
  ///   since its start; and the time from question to answer.
  package func examine(_ step: StepID) throws -> (about: About?, clock: Int64, roundTrip: Duration) {
    let began = Instant.now
    let statement = try perform([.examine(step)])[0]
    let roundTrip = began.duration(to: .now)
    guard case .challenge(let challenge)? = statement.answer?.outcome else { return (nil, statement.clock, roundTrip) }
    return (challenge.about, statement.clock, roundTrip)
  }

  /// Passes every further statement to `body`, until `body` returns false, or until the broker says that the controller
  /// has come or gone. That message is not signed, so a program that needs certainty must ask.
  ///
  /// - Throws: what `body` throws, `RiderError.interrupted`, and the reason for a lost connection.
  public func watch(_ body: @escaping (Answer) throws -> Bool) throws {
    observe = { [loop] answer in if try !body(answer) { loop.stop() } }
    observeAvailability = { [loop] in loop.stop() }
    defer { (observe, observeAvailability) = (nil, nil) }
    try loop.run()
  }

  // MARK: -

  private var areDone: Bool { requests.allSatisfy(\.hasEnded) }

  /// Handles one event at a time: a sender of too many messages must not delay a timer or a signal.
  private func receive() throws {
    let event = try connection.next(until: .now)
    if let trace, case .message(let message) = event {
      trace("< \(message.topic) \(String(decoding: message.payload, as: UTF8.self))")
    }
    switch event {
    case .message(let message) where message.topic == access.topic.availability:
      isOffline = message.payload == Availability.offline.payload
      for index in requests.indices { requests[index].isOffline = isOffline }
      // A retained message is not news.
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

  /// Ends the present requests, as a signal does.
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

  /// Sets the timer to the earliest limit of a request. The connection's own patience ends at about the same time, and
  /// its error says how far the connection came.
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

  /// Why nothing more can be published.
  private func reasonOfLoss() -> any Failure {
    while let event = try? connection.next(until: .now) {
      if case .disconnected(let error) = event { return error }
    }
    return MQTTError.lost(access.broker, .established)
  }
}
