public import Domain
import MQTT
public import StepProtocol
package import SystemIO

/// A rider's connection to one vehicle: asks, commands, and believes only what the controller signed.
///
/// **Threads.** One thread makes the client, asks it and closes it; its callbacks run on that thread. `status`, `move` and
/// `watch` run the event loop until they are done, so whatever else the loop watches is served meanwhile.
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
  private var registrations: [Registration] = []
  private var isConnected = false

  private var request: StepRequest?
  private var tell: (StepRequest.Update) throws -> Void = { _ in }
  private var timer: Registration?
  /// Whether the loop runs for the request.
  private var isWaiting = false
  /// How the request ended.
  private var result: Result<Statement, RiderError>?
  /// Gets statements that answer no request.
  private var observe: ((Answer) throws -> Void)?

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
  /// - Parameter interruption: what ends every wait.
  package init(
    _ access: RiderAccess, steps: [StepID], patience: Duration, loop: EventLoop, interruption: Interruption? = nil,
    detail: @escaping (String) -> Void = { _ in }
  ) throws {
    self.access = access
    self.patience = patience
    self.loop = loop
    self.detail = detail
    connection = try MQTTConnection(
      broker: access.broker, subscriptions: steps.map { access.topic.status($0) }, reconnecting: .never,
      patience: patience)
    registrations.append(try loop.watch(connection.descriptor) { [unowned self] in try receive() })
    if let interruption {
      registrations.append(try loop.watch(interruption.number) { [unowned self] in try interrupt() })
    }
  }

  deinit { close() }

  /// Ends the connection. Idempotent; after it, nothing else may be called.
  public func close() {
    for registration in registrations { registration.cancel() }
    timer?.cancel()
    connection.close()
  }

  /// Asks how a step stands. Nothing moves.
  ///
  /// - Returns: a fresh statement, and which proofs the vehicle accepts from this rider.
  public func status(of step: StepID) throws -> (statement: Statement, policy: PresencePolicy) {
    var policy: PresencePolicy?
    let statement = try perform(.status, step) { update in
      if case .answered(_, let told) = update { policy = told }
    }
    // A status request ends with an answer only.
    return (statement, policy!)
  }

  /// Moves the step of a sighting, and waits until the vehicle confirms that it stands where it should.
  ///
  /// - Parameter tell: gets what happens on the way.
  /// - Throws: `RiderError`, which says whether the step may have moved.
  @discardableResult
  public func move(
    _ target: Command.Move.Target, _ sighting: Sighting, tell: @escaping (StepRequest.Update) throws -> Void = { _ in }
  ) throws -> Statement {
    try perform(.move(target, sighting), sighting.step.id, tell)
  }

  /// Gives every statement that arrives from now on to `body`, until it returns false.
  ///
  /// - Throws: what `body` throws, `RiderError.interrupted`, and why the connection was lost.
  public func watch(_ body: @escaping (Answer) throws -> Bool) throws {
    observe = { [loop] answer in if try !body(answer) { loop.stop() } }
    defer { observe = nil }
    try loop.run()
  }

  // MARK: -

  private func perform(
    _ goal: StepRequest.Goal, _ step: StepID, _ tell: @escaping (StepRequest.Update) throws -> Void
  ) throws -> Statement {
    var request = StepRequest(goal, to: step, with: access, limit: .now + patience)
    let updates = request.begin()
    (self.request, self.tell, result) = (request, tell, nil)
    defer {
      timer?.cancel()
      (self.request, self.tell, timer) = (nil, { _ in }, nil)
    }
    try handle(updates)
    wait()
    if result == nil {
      isWaiting = true
      defer { isWaiting = false }
      try loop.run()
    }
    // The loop runs until there is a result, or throws.
    return try result!.get()
  }

  /// One event at a time: whoever sends more than can be read holds up neither a timer nor a signal.
  private func receive() throws {
    switch try connection.next(until: .now) {
    case .message(let message):
      let statement: Statement
      do throws(ProtocolError) { statement = try access.statement(message.payload, on: message.topic) } catch {
        return detail("ignored a status: \(error)")
      }
      try take(Answer(statement: statement, received: .now))
    case .connected:
      isConnected = true
      detail("connected")
      wait()
    case .disconnected(let error):
      guard request != nil else { throw error }
      try handle(request!.disconnect(error))
    case .acknowledged, nil: break
    }
  }

  private func take(_ answer: Answer) throws {
    let updates = request?.receive(answer) ?? []
    if updates.isEmpty { try observe?(answer) } else { try handle(updates) }
  }

  private func interrupt() throws {
    guard request != nil else { throw RiderError.interrupted }
    try handle(request!.interrupt())
  }

  private func handle(_ updates: [StepRequest.Update]) throws {
    for update in updates {
      switch update {
      case .send(let topic, let payload):
        if connection.publish(topic: topic, payload: payload, retain: false) == nil {
          return try handle(request!.failToSend(lost()))
        }
      case .done(let statement): end(.success(statement))
      case .failed(let error): end(.failure(error))
      case .answered, .commanded, .moving: break
      }
      try tell(update)
    }
    if request?.hasEnded == false { wait() }
  }

  private func end(_ result: Result<Statement, RiderError>) {
    self.result = result
    if isWaiting { loop.stop() }
  }

  /// Sets the timer to the request's limit. The connection's own patience ends at about the same time, and knows how
  /// far the connection had come.
  private func wait() {
    timer?.cancel()
    guard let limit = request?.limit else { return }
    timer = loop.schedule(at: isConnected ? limit : limit + .seconds(1)) { [unowned self] in
      guard request != nil else { return }
      try handle(
        isConnected ? request!.advance(to: .now) : request!.disconnect(MQTTError.timedOut(access.broker, .greeting)))
    }
  }

  /// Why nothing can be published any more.
  private func lost() -> any Failure {
    while let event = try? connection.next(until: .now) {
      if case .disconnected(let error) = event { return error }
    }
    return MQTTError.lost(access.broker, .established)
  }
}
