import Bluetooth
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
  /// The ways to the vehicle that are there, or are being tried.
  private var ways: [Way] = []
  /// The way on which the last answer came.
  private var proven: Way?
  private let via: Via
  /// How often a link was tried, and when one will be.
  private var linkTries = 0
  private var linkTimer: Registration?
  /// When the last way was lost; nil while there is a way.
  private var lastLoss: Instant?
  /// Why the network, or a link, is no way.
  private var losses: (network: (any Failure)?, link: (any Failure)?)

  /// A radio that cannot be used is nothing new to a rider who did not ask for a link.
  private var reason: (any Failure)? {
    guard let network = losses.network else { return losses.link }
    switch losses.link {
    case nil, LinkError.radio?, LinkError.noAdapter?: return network
    case let link?: return NoWay(network: network, link: link)
    }
  }
  /// Gets details for troubleshooting.
  private let detail: (String) -> Void
  /// Gets each message as it is sent, encrypted or signed; nil if it is not wanted.
  private let trace: ((String) -> Void)?
  /// Trace lines to show after connecting: nothing is sent before.
  private var unsent: [String] = []
  private var registrations: [Registration] = []
  /// Whether the controller is offline, according to the broker.
  private var isOffline = false

  private final class Way {
    let carrier: any Carrier
    var registration: Registration?
    var isConnected = false

    init(_ carrier: any Carrier) { self.carrier = carrier }
  }

  private var isConnected: Bool { ways.contains(where: \.isConnected) }

  /// How the last answer came, if that way is still there; otherwise how the vehicle is asked.
  package private(set) var path = Path.network

  package enum Path: String, Sendable {
    case network, bluetooth
  }

  /// A request, and who gets its updates.
  private final class Running {
    var request: StepRequest
    let tell: (StepID, StepRequest.Update) throws -> Void

    init(_ request: StepRequest, tell: @escaping (StepID, StepRequest.Update) throws -> Void) {
      self.request = request
      self.tell = tell
    }
  }

  /// The present requests, including those of the same group that have ended.
  private var requests: [Running] = []
  /// The requests that were begun beside them.
  private var others: [Running] = []
  private var results: [StepID: Result<Statement, RiderError>] = [:]
  /// The last statement of each step that arrived. It may be an old one that the broker had retained.
  private var newest: [StepID: Answer] = [:]
  private var timer: Registration?
  /// Whether the loop runs for the requests.
  private var isWaiting = false
  /// Gets statements that answer no request.
  private var observe: ((Answer) throws -> Void)?
  private var observeAvailability: (() throws -> Void)?
  private var follow: ((News) throws -> Void)?

  /// What a connection brings, whatever it was begun for.
  package enum News {
    /// A statement. `isFresh`: it answers a request of this client, so the broker did not retain it.
    case statement(Statement, isFresh: Bool)
    /// The broker says that the controller has come or gone. That message is not signed.
    case availability
    case lost
  }

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
  ///   - via: how to get to the vehicle.
  ///   - preparation: the TLS preparation for the vehicle's broker.
  ///   - interruption: ends every wait.
  package init(
    _ access: RiderAccess, steps: [StepID], patience: Duration, loop: EventLoop, via: Via = .network,
    preparation: TLSPreparation? = nil, interruption: Interruption? = nil,
    detail: @escaping (String) -> Void = { _ in }, trace: ((String) -> Void)? = nil
  ) throws {
    self.access = access
    self.patience = patience
    self.loop = loop
    self.detail = detail
    self.trace = trace
    self.via = via
    if case .bluetooth = via {
      path = .bluetooth
      try tryLink()
    } else {
      detail("connecting to \(access.broker)")
      let connection = try MQTTConnection(
        broker: access.broker, subscriptions: steps.map { access.topic.status($0) } + [access.topic.availability],
        reconnecting: .never, patience: patience, preparation: preparation)
      try add(BrokerCarrier(connection, access.topic))
      if case .auto(_?, .zero) = via {
        try tryLink()
      } else if case .auto(_?, let patience) = via {
        linkTimer = loop.schedule(at: .now + patience) { [unowned self] in
          if proven == nil { try askByLink() }
        }
      }
    }
    if let interruption {
      registrations.append(try loop.watch(interruption.number) { [unowned self] in try interrupt() })
    }
  }

  deinit { close() }

  /// Ends the connection. Idempotent. After that, no other method may be called.
  public func close() {
    for registration in registrations { registration.cancel() }
    timer?.cancel()
    linkTimer?.cancel()
    for way in ways {
      way.registration?.cancel()
      way.carrier.close()
    }
  }

  private func add(_ carrier: any Carrier) throws {
    let way = Way(carrier)
    way.registration = try loop.watch(carrier.descriptor) { [unowned self, unowned way] in try receive(from: way) }
    ways.append(way)
  }

  /// When the vehicle was heard by Bluetooth, and when there was a link; nil without one.
  package var linkTimes: (heard: Instant, linked: Instant)? {
    ways.lazy.compactMap { ($0.carrier as? LinkCarrier)?.times }.first
  }

  private func choosePath() {
    guard let way = proven ?? ways.first(where: \.isConnected) else { return }
    path = way.carrier is LinkCarrier ? .bluetooth : .network
  }

  private func tryLink() throws {
    guard let radio = via.radio else { return }
    linkTries += 1
    let pause = linkTries > 2 ? Via.pause : .zero
    detail("looking for the vehicle by Bluetooth, with \(radio)")
    let isOnly = if case .bluetooth = via { true } else { false }
    try add(
      LinkCarrier(
        radio, to: access, hearing: isOnly ? patience : min(patience, Via.hearingTime),
        patience: ways.isEmpty ? patience : min(patience, Via.searchTime), after: pause))
  }

  /// Tries a link beside the network, and asks on it whatever is not answered yet.
  private func askByLink() throws {
    guard via.radio != nil, linkTries == 0 else { return }
    try tryLink()
    try each { $0.askOtherwise(at: .now) }
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
      (requests, timer) = ([], nil)
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
    if let error = errors.gravest { throw error }
    return try ends.map { try $0.get() }
  }

  /// Begins requests, and returns. The caller runs the loop, which calls `tell`.
  ///
  /// - Parameter goals: at most one per step. They replace all earlier requests, except those that were begun beside.
  package func begin(
    _ goals: [StepRequest.Goal], tell: @escaping (StepID, StepRequest.Update) throws -> Void
  ) throws {
    precondition(Set(goals.map(\.step)).count == goals.count, "two requests to one step")
    requests = goals.map { running($0, tell) }
    results = [:]
    try start(requests)
  }

  /// Begins requests beside the present ones, which go on, and returns. The caller runs the loop, which calls `tell`.
  package func begin(
    beside goals: [StepRequest.Goal], tell: @escaping (StepID, StepRequest.Update) throws -> Void
  ) throws {
    let new = goals.map { running($0, tell) }
    others.removeAll(where: \.request.hasEnded)
    others += new
    try start(new)
  }

  /// Stops every step that the token is for, and returns. Requests that have sent no command end without a word, and
  /// send none; a command that was sent goes on to its own end. The caller runs the loop.
  ///
  /// - Parameter tell: gets the statements that say where the steps rest. If several requests fail, an error that
  ///   leaves a doubt comes first.
  package func stop(tell: @escaping (Result<[Statement], RiderError>) throws -> Void) throws {
    for one in requests + others { one.request.abandon() }
    let own = access.ownSteps
    // Without a step of its own, the vehicle says why it refuses.
    let steps = own.isEmpty ? access.vehicle.steps.map(\.id) : own
    var ends: [StepID: Result<Statement, RiderError>] = [:]
    try begin(beside: steps.map { .stop($0) }) { step, update in
      switch update {
      case .done(let statement): ends[step] = .success(statement)
      case .failed(let error): ends[step] = .failure(error)
      case .send, .answered, .call, .heard, .commanded, .moving: return
      }
      guard ends.count == steps.count else { return }
      let errors = steps.compactMap { if case .failure(let error)? = ends[$0] { error } else { nil } }
      if let error = errors.gravest { return try tell(.failure(error)) }
      try tell(.success(steps.compactMap { try? ends[$0]?.get() }))
    }
  }

  /// Passes on what this connection brings, until the client is closed. Returns at once.
  package func follow(_ body: @escaping (News) throws -> Void) { follow = body }

  private func running(
    _ goal: StepRequest.Goal, _ tell: @escaping (StepID, StepRequest.Update) throws -> Void
  ) -> Running {
    // Who is on the way may be too far away for a link. A network is there or not, wherever the rider is.
    let isOnTheWay = if case .prepare = goal { via.radio != nil } else { false }
    let limit = Instant.now + patience
    return Running(
      StepRequest(goal, with: access, limit: limit, isOffline: isOffline, isAwaited: !isOnTheWay), tell: tell)
  }

  /// The rider stands at a step: from now on the vehicle's answer is waited for, and not for long.
  package func expect() throws {
    guard requests.contains(where: { !$0.request.isAwaited }) else { return }
    linkTries = 0
    for one in requests { one.request.expect(until: .now + patience) }
    scheduleLimit()
  }

  private func start(_ new: [Running]) throws {
    let questions = new.map { one -> [StepRequest.Update] in
      let question = one.request.begin()
      // A stop takes the controller's epoch from any statement. If this one is too old, a later one follows it.
      guard case .stop = one.request.goal, let answer = newest[one.request.step] else { return question }
      // The time for its answer begins now, however old the statement is.
      return question + one.request.receive(Answer(statement: answer.statement, received: .now))
    }
    // If one cannot be sent, all requests have ended.
    for (one, question) in zip(new, questions) where !one.request.hasEnded { try handle(question, of: one) }
  }

  /// Moves a prepared step (`StepRequest.Goal.prepare`), and abandons the other requests. May be called only once, also
  /// from `tell`.
  package func present(_ sighting: Sighting, to target: Command.Move.Target) throws {
    // Attempts from afar do not count against a rider who stands at a step.
    linkTries = 0
    for one in requests {
      if one.request.step != sighting.step.id {
        one.request.abandon()
      } else if !one.request.hasEnded {
        try handle(one.request.present(sighting, to: target, at: .now), of: one)
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

  private var areDone: Bool { requests.allSatisfy(\.request.hasEnded) }

  /// Lets each request take something. A request that was replaced meanwhile takes nothing.
  ///
  /// - Returns: whether one of them had an answer.
  @discardableResult
  private func each(_ take: (inout StepRequest) -> [StepRequest.Update]) throws -> Bool {
    var hasAnswered = false
    for one in requests + others
    where requests.contains(where: { $0 === one }) || others.contains(where: { $0 === one }) {
      let updates = take(&one.request)
      guard !updates.isEmpty else { continue }
      hasAnswered = true
      try handle(updates, of: one)
    }
    return hasAnswered
  }

  /// Handles one event at a time: a sender of too many messages must not delay a timer or a signal.
  private func receive(from way: Way) throws {
    if let event = try way.carrier.next() { try handle(event, from: way) }
  }

  private func handle(_ event: CarrierEvent, from way: Way) throws {
    if let trace, case .message(let message) = event {
      trace("< \(message.topic) \(String(decoding: message.payload, as: UTF8.self))")
    }
    switch event {
    case .message(let message) where message.topic == access.topic.availability:
      isOffline = message.payload == Availability.offline.payload
      for one in requests + others { one.request.isOffline = isOffline }
      // A retained message is not news.
      guard !message.isRetained else { break }
      if !isOffline { try each { $0.askAgain() } }
      try observeAvailability?()
      try follow?(.availability)
    case .message(let message):
      let statement: Statement
      do throws(ProtocolError) { statement = try access.statement(message.payload, on: message.topic) } catch {
        return detail("ignored a status: \(error)")
      }
      let answer = Answer(statement: statement, received: .now)
      newest[statement.step] = answer
      if answer.statement.answer != nil {
        proven = way
        choosePath()
      }
      let isAwaited = try each { $0.receive(answer) }
      if !isAwaited { try observe?(answer) }
      try follow?(.statement(statement, isFresh: isAwaited))
    case .connected:
      way.isConnected = true
      lastLoss = nil
      choosePath()
      let isLink = way.carrier is LinkCarrier
      detail(isLink ? "linked by Bluetooth" : "connected, as the broker's certificate was checked")
      if let trace { unsent.forEach(trace) }
      unsent = []
      scheduleLimit()
    case .lost(let error): try lose(way, error)
    }
  }

  /// A way is lost. The requests go on by another: no command is sent again, the vehicle is asked what became of it.
  ///
  /// A link that was there is tried once more, because a rider who walks away comes back. For a rider who is on the way
  /// it is tried again and again. For a rider who does not know what became of a command, it is tried for `patience`.
  private func lose(_ way: Way, _ error: any Failure) throws {
    let wasProven = proven === way
    drop(way, error)
    if way.isConnected, !isConnected { lastLoss = .now }
    if wantsLink(after: way) { try tryLink() }
    if ways.isEmpty {
      let error = reason ?? error
      guard !requests.isEmpty || !others.isEmpty || follow != nil else { throw error }
      try each { $0.disconnect(error) }
      try follow?(.lost)
    } else if wasProven || !ways.contains(where: \.isConnected) {
      try each { $0.goOn(without: error, at: .now) }
    }
  }

  /// Whether to try a link now that this way is lost.
  private func wantsLink(after way: Way) -> Bool {
    if proven != nil || ways.contains(where: { $0.carrier is LinkCarrier }) { return false }
    if canTryLinkAgain { return true }
    let isWanted = requests.isEmpty || (requests + others).contains { !$0.request.hasEnded }
    let wasLinked = way.carrier is LinkCarrier && way.isConnected
    return ways.isEmpty && isWanted && linkTries < (wasLinked ? 2 : 1)
  }

  private var canTryLinkAgain: Bool {
    guard (losses.link as? LinkError)?.mayPass ?? true else { return false }
    let pending = (requests + others).map(\.request)
    return pending.contains(where: \.canWaitForWay)
      || pending.contains(where: \.isUncertain) && lastLoss.map { $0 + patience > .now } ?? false
  }

  private func drop(_ way: Way, _ error: any Failure) {
    detail("\(way.carrier.name): \(error)")
    way.registration?.cancel()
    ways.removeAll { $0 === way }
    if way.carrier is LinkCarrier { losses.link = error } else { losses.network = error }
    if proven === way { proven = nil }
    choosePath()
    // Closing may wait for the way's thread, so it is done after the present handler has returned.
    loop.schedule(at: .now) { way.carrier.close() }
  }

  /// No way has taken a command: those that are lost have not said so yet. A link is tried, if none was.
  private func sendOtherwise(_ command: SealedCommand, of request: StepRequest) throws -> Bool {
    for way in ways {
      while let event = try way.carrier.next() {
        if case .lost(let error) = event {
          drop(way, error)
          break
        }
        // Another way has brought something. It is handled after this command.
        loop.schedule(at: .now) { [unowned self] in try handle(event, from: way) }
      }
    }
    if ways.isEmpty, linkTries == 0 {
      try tryLink()
      // What the others have asked is lost as well.
      if requests.count + others.count > 1 {
        loop.schedule(at: .now) { [unowned self] in try each { $0.askOtherwise(at: .now) } }
      }
    }
    return send(command, of: request)
  }

  /// Ends the present requests, as a signal does.
  package func interrupt() throws {
    guard !requests.isEmpty || !others.isEmpty else { throw RiderError.interrupted }
    try each { $0.interrupt() }
  }

  private func handle(_ updates: [StepRequest.Update], of one: Running) throws {
    let step = one.request.step
    for update in updates {
      switch update {
      case .send(let command):
        if let trace {
          let line = "> \(access.topic.setPosition(step)) \(command.text)"
          isConnected ? trace(line) : unsent.append(line)
        }
        guard try send(command, of: one.request) || sendOtherwise(command, of: one.request) else {
          let error = reasonOfLoss()
          try handle(one.request.failToSend(error), of: one)
          try each { $0.disconnect(error) }
          return
        }
      case .done(let statement): note(.success(statement), of: one)
      case .failed(let error): note(.failure(error), of: one)
      case .answered, .call, .heard, .commanded, .moving: break
      }
      try one.tell(step, update)
    }
    scheduleLimit()
    if isWaiting, areDone { loop.stop() }
  }

  /// Sends a question or a stop by every way, because it can move nothing, and another command by the way that has
  /// brought the answer.
  private func send(_ command: SealedCommand, of request: StepRequest) -> Bool {
    let mayGoTwice = if case .stop = request.goal { true } else { request.isAsking }
    let chosen = mayGoTwice ? ways : [proven ?? ways.first { $0.isConnected } ?? ways.first].compactMap(\.self)
    return chosen.map { $0.carrier.send(command, to: request.step) }.contains(true)
  }

  private func note(_ result: Result<Statement, RiderError>, of one: Running) {
    if requests.contains(where: { $0 === one }) { results[one.request.step] = result }
  }

  /// Sets the timer to the earliest limit of a request. The connection's own patience ends at about the same time, and
  /// its error says how far the connection came.
  private func scheduleLimit() {
    timer?.cancel()
    let limits = (requests + others).map(\.request).filter(\.hasLimit).map(\.limit)
    guard let limit = limits.min() else { return }
    timer = loop.schedule(at: isConnected ? limit : limit + .seconds(1)) { [unowned self] in
      let isConnected = isConnected
      var loss: any Failure = MQTTError.timedOut(access.broker, .greeting)
      if case .bluetooth = via { loss = LinkError.notHeard }
      try each { request in
        if isConnected || request.isUncertain { return request.advance(to: .now) }
        return request.isAwaited ? request.disconnect(loss) : []
      }
    }
  }

  /// Why nothing more can be sent.
  private func reasonOfLoss() -> any Failure {
    for way in ways {
      while let event = try? way.carrier.next() { if case .lost(let error) = event { return error } }
    }
    return reason ?? MQTTError.lost(access.broker, .established)
  }
}

extension [RiderError] {
  /// The first that leaves a doubt, else the first.
  fileprivate var gravest: RiderError? { first { $0.exitStatus == .unconfirmed } ?? first }
}
