import Certificates
public import Domain
public import StepProtocol
public import SystemIO

/// A statement of the controller, and the time of its arrival here.
public struct Answer: Sendable, Equatable {
  public let statement: Statement
  public let received: Instant

  public init(statement: Statement, received: Instant) {
    self.statement = statement
    self.received = received
  }

  /// The controller's clock at an instant, milliseconds; never negative (PROTOCOL.md, section 4.2).
  public func clock(at moment: Instant) -> Int64 {
    let (seconds, attoseconds) = received.duration(to: moment).components
    let elapsed = Double(seconds) * 1000 + Double(attoseconds) * 1e-15
    return max(0, statement.clock + Int64(elapsed.rounded(.down)))
  }
}

/// One request to one step, from the first message to the last: the rider's half of PROTOCOL.md, section 7.
///
/// A request takes statements and the passing of time, and returns what to do next. It does no I/O and has no clock, so
/// a test can lose, duplicate, delay and reorder every message.
public struct StepRequest: Sendable {
  /// What the rider wants from a step.
  public enum Goal: Sendable {
    /// Learn the step's status.
    case status(StepID)
    /// Learn the step's status and information about the controller.
    case examine(StepID)
    case move(Command.Move.Target, Sighting)
    /// Be ready to move a step: keep a challenge at hand until a sighting is presented.
    case prepare(StepID)
    /// End the motion of a step, no matter who began it. Needs no sighting.
    case stop(StepID)

    public var step: StepID {
      switch self {
      case .status(let step), .examine(let step), .prepare(let step), .stop(let step): step
      case .move(_, let sighting): sighting.step.id
      }
    }
  }

  /// What the caller has to do or to know.
  public enum Update: Sendable {
    /// Send this: to `TopicPrefix.setPosition`, not retained, or on a link. If that is not possible, call `failToSend`.
    case send(SealedCommand)
    /// The vehicle sent the step's status, and the proofs that it accepts from this rider.
    case answered(Answer, PresencePolicy)
    /// The vehicle wants to hear this device. This call replaces the one before.
    case call(Call)
    /// The only step in whose reach the vehicle hears this device; nil if there is none.
    case heard(StepID?)
    /// The command was passed to the connection.
    case commanded
    /// The vehicle confirmed that the step moves.
    case moving
    /// The step is where the rider wants it; after a stop, it is at rest.
    case done(Statement)
    case failed(RiderError)
  }

  /// The deadline of a command, in milliseconds from the controller's present clock.
  public static let deadline: Int64 = 5_000
  /// How long after the deadline a first answer may still arrive.
  public static let delay = Duration.seconds(2)
  /// The longest motion that a controller's configuration allows, plus the answer's delivery time.
  public static let longestMotion = Duration.seconds(62)
  /// How long the answer to a stop may take. A controller obeys a stop at once.
  public static let stopDelay = Duration.seconds(5)
  /// The age at which a new challenge is requested, while this one is still valid (PROTOCOL.md, section 5).
  public static let challengeAge = Duration.seconds(6)
  /// The age at which a challenge is no longer used: a command takes time to arrive.
  public static let oldestChallenge = Duration.seconds(9)
  /// How long the answer to a later question may take.
  public static let renewalDelay = Duration.seconds(10)
  /// How often a vehicle is asked what became of a command whose answer is lost.
  public static let doubtPause = Duration.milliseconds(500)
  /// How long such a question may take before the next one.
  public static let doubtDelay = Duration.seconds(3)

  private enum Stage: Sendable {
    case asking(Sent)
    /// A challenge is at hand. `question` asks for the next one, if that was already sent.
    case ready(Offer, question: Sent?)
    case commanding(Sent, Aim, isMoving: Bool)
    /// The way on which a command went is lost, and the status is asked on another one. `question` is nil in between.
    case doubting(Sent, Aim, question: Sent?, end: Instant, RiderError.Doubt)
    /// The first question, and every stop that has not been refused.
    case stopping(Sent, [Stop])
    case ended
  }

  /// The vehicle's answer to a question.
  private struct Offer: Sendable {
    let question: Sent
    let answer: Answer
    let challenge: Statement.Challenge
    /// The number of the newest statement that says where the device is heard.
    var sequence: Int64
  }

  /// What a command is for, and until when it can be obeyed.
  private struct Aim: Sendable {
    let target: Command.Move.Target
    let epoch: [UInt8]
    /// On the controller's clock, milliseconds.
    let deadline: Int64
  }

  /// A stop that was sent, and the run of the controller for which it is valid.
  private struct Stop: Sendable {
    let sent: Sent
    let epoch: [UInt8]
  }

  /// The values that an answer to a command must name.
  private struct Sent: Sendable, Equatable {
    let command: SealedCommand
    let digest: CommandDigest
    let nonce: [UInt8]

    init(_ command: SealedCommand, nonce: [UInt8]) {
      (self.command, digest, self.nonce) = (command, command.digest, nonce)
    }

    static func == (a: Sent, b: Sent) -> Bool { a.digest == b.digest }
  }

  public let goal: Goal
  /// When the request gives up, if nothing arrives before.
  public private(set) var limit: Instant
  /// Whether the broker says that the controller is offline. That message is not signed: it explains a silence, and
  /// decides nothing.
  public var isOffline: Bool
  private let access: RiderAccess
  private var stage = Stage.ended
  /// Whether somebody waits for the vehicle's answer. If nobody does, the request does not end for want of an answer.
  package private(set) var isAwaited: Bool
  private var hasAskedAgain = false
  /// The wanted motion, while a challenge is awaited.
  private var presented: (target: Command.Move.Target, sighting: Sighting)?

  /// - Parameters:
  ///   - limit: when to give up waiting for the answer to the first question.
  ///   - isAwaited: false for a rider who is still on the way (`expect`).
  public init(
    _ goal: Goal, with access: RiderAccess, limit: Instant, isOffline: Bool = false, isAwaited: Bool = true
  ) {
    self.goal = goal
    self.isAwaited = isAwaited
    self.access = access
    self.limit = limit
    self.isOffline = isOffline
    if case .move(let target, let sighting) = goal { presented = (target, sighting) }
  }

  public var step: StepID { goal.step }

  public var hasEnded: Bool { if case .ended = stage { true } else { false } }

  /// Asks for the step's status, and so for a challenge. A stop can use any other statement as well.
  public mutating func begin() -> [Update] {
    let (sent, update) = seal(.status)
    stage = .asking(sent)
    return [update]
  }

  /// The broker says that the controller has come back, so the earlier question did not reach it. The request asks once
  /// more, and only once, because that message is not signed.
  public mutating func askAgain() -> [Update] {
    guard case .asking = stage, !hasAskedAgain else { return [] }
    hasAskedAgain = true
    return begin()
  }

  /// From now on somebody waits for the vehicle's answer.
  ///
  /// - Parameter end: when to give up waiting for it, if there was none yet.
  package mutating func expect(until end: Instant) {
    guard !isAwaited else { return }
    isAwaited = true
    if case .asking = stage { limit = end }
  }

  /// Whether the request loses nothing while there is no way to the vehicle: no motion is wanted yet.
  package var canWaitForWay: Bool {
    switch stage {
    case .asking: !isAwaited
    case .ready: presented == nil
    case .commanding, .doubting, .stopping, .ended: false
    }
  }

  /// Whether something has to be done at the limit: a challenge is renewed for a rider on the way as well.
  package var hasLimit: Bool {
    switch stage {
    case .asking: isAwaited
    case .ready, .commanding, .doubting, .stopping: true
    case .ended: false
    }
  }

  /// Whether a command was sent, and the vehicle has not said yet what became of it.
  package var isUncertain: Bool {
    switch stage {
    case .commanding, .doubting: true
    case .asking, .ready, .stopping, .ended: false
    }
  }

  /// Whether what is sent now moves nothing, so that it may be sent twice.
  package var isAsking: Bool {
    switch stage {
    case .asking, .ready, .doubting, .ended: true
    case .commanding, .stopping: false
    }
  }

  /// Another way to the vehicle is there: asks or stops again, if an answer is awaited.
  package mutating func askOtherwise(at now: Instant) -> [Update] {
    switch stage {
    case .asking: return begin()
    case .ready, .commanding, .doubting, .ended: return []
    case .stopping(let question, let stops):
      guard let epoch = stops.last?.epoch else { return [] }
      let (sent, update) = seal(.stop(epoch: epoch))
      stage = .stopping(question, stops + [Stop(sent: sent, epoch: epoch)])
      limit = now + Self.stopDelay
      return [update]
    }
  }

  /// The way on which everything was sent is lost, and another one is there or is being looked for. A command that was
  /// sent is not sent again: the vehicle is asked where the step is, until the command can no longer be obeyed.
  package mutating func goOn(without reason: any Failure, at now: Instant) -> [Update] {
    switch stage {
    case .asking, .stopping: return askOtherwise(at: now)
    case .ready:
      // The challenge at hand may be too old before the other way is there.
      limit = now + Self.renewalDelay
      return begin()
    case .ended: return []
    case .doubting(let sent, let aim, _, let end, let doubt): return ask(after: sent, aim, at: now, until: end, doubt)
    case .commanding(let sent, let aim, let isMoving):
      let end = isMoving ? max(limit, now) : now + .milliseconds(Self.deadline) + Self.delay
      return ask(after: sent, aim, at: now, until: end, .connection(reason))
    }
  }

  private mutating func ask(
    after sent: Sent, _ aim: Aim, at now: Instant, until end: Instant, _ doubt: RiderError.Doubt
  ) -> [Update] {
    let (question, update) = seal(.status)
    stage = .doubting(sent, aim, question: question, end: end, doubt)
    limit = min(end, now + Self.doubtDelay)
    return [update]
  }

  /// What a statement says about a command whose answer is lost.
  private mutating func judge(
    _ answer: Answer, _ sent: Sent, _ aim: Aim, until end: Instant, _ doubt: RiderError.Doubt
  ) -> [Update] {
    let statement = answer.statement
    guard statement.epoch == aim.epoch else { return fail(.unconfirmed(doubt, step: step)) }
    let isAtTarget = statement.position.rawValue == aim.target.rawValue
    if statement.phase.isAtRest, statement.phase == .fault || isAtTarget || statement.clock >= aim.deadline {
      return rest(statement, aim.target)
    }
    // It moves, or the command may still arrive.
    let last = statement.phase.isAtRest ? end : max(end, answer.received + Self.longestMotion)
    stage = .doubting(sent, aim, question: nil, end: last, doubt)
    limit = min(last, answer.received + Self.doubtPause)
    return []
  }

  /// Takes a statement that this vehicle's controller signed. A statement that answers another request changes nothing.
  public mutating func receive(_ answer: Answer) -> [Update] {
    switch stage {
    case .asking(let question):
      if case .stop = goal { return stop(answer, question, []) }
      switch outcome(of: answer, to: question) {
      case .challenge(let challenge): return proceed(answer, challenge, question)
      case .refused(let refusal): return refuse(refusal)
      // This kind does not answer a question; the right answer may follow.
      case .obeyed, nil: return []
      }
    case .ready(let offer, let question):
      if case .challenge(let challenge) = outcome(of: answer, to: offer.question) {
        return hear(answer, challenge, offer, question)
      }
      guard let question else { return [] }
      switch outcome(of: answer, to: question) {
      case .challenge(let challenge): return proceed(answer, challenge, question)
      case .refused(let refusal): return refuse(refusal)
      case .obeyed, nil: return []
      }
    case .doubting(let sent, let aim, let question, let end, let doubt):
      switch outcome(of: answer, to: sent) {
      case .refused(let refusal) where answer.statement.epoch == aim.epoch: return refuse(refusal)
      case .obeyed: return judge(answer, sent, aim, until: end, doubt)
      case .refused, .challenge, nil: break
      }
      guard let question, let outcome = outcome(of: answer, to: question) else { return [] }
      // It does not say where the step is to somebody whose token ended meanwhile.
      if case .refused = outcome { return fail(.unconfirmed(doubt, step: step)) }
      return judge(answer, sent, aim, until: end, doubt)
    case .commanding(let sent, let aim, let isMoving):
      // Another run of the controller cannot obey a command with this run's challenge.
      guard answer.statement.epoch == aim.epoch else { return [] }
      switch outcome(of: answer, to: sent) {
      case .refused(let refusal): return refuse(refusal)
      case .obeyed: break
      case .challenge, nil: return []
      }
      guard answer.statement.phase.isAtRest else {
        // Reported once: the broker may send copies for as long as it likes.
        if isMoving { return [] }
        stage = .commanding(sent, aim, isMoving: true)
        limit = answer.received + Self.longestMotion
        return [.moving]
      }
      return rest(answer.statement, aim.target)
    case .stopping(let question, let stops):
      return stop(answer, question, stops)
    case .ended:
      return []
    }
  }

  /// Gives a `prepare` request the motion to perform. May be called once. The command is sent as soon as there is a
  /// challenge.
  public mutating func present(
    _ sighting: Sighting, to target: Command.Move.Target, at now: Instant
  ) -> [Update] {
    precondition(sighting.step.id == step && presented == nil)
    let new = (target: target, sighting: sighting)
    presented = new
    expect(until: now + Self.renewalDelay)
    guard case .ready(let offer, let question) = stage else { return [] }
    if offer.answer.received.duration(to: now) < Self.oldestChallenge { return command(new, offer, at: now) }
    return question == nil ? renew(offer, at: now) : []
  }

  /// Abandons a request that has sent no command: nothing will follow.
  public mutating func abandon() {
    switch stage {
    case .asking, .ready: stage = .ended
    case .commanding, .doubting, .stopping, .ended: break
    }
  }

  /// Tells the request the present time.
  public mutating func advance(to now: Instant) -> [Update] {
    if !hasLimit || now < limit { return [] }
    if case .ready(let offer, nil) = stage { return renew(offer, at: now) }
    if case .ready = stage, !isAwaited { return begin() }
    if case .doubting(let sent, let aim, _, let end, let doubt) = stage, now < end {
      return ask(after: sent, aim, at: now, until: end, doubt)
    }
    if case .stop = goal { return give(up: .timedOut, before: .notStopped(isOffline: isOffline)) }
    return give(up: .timedOut, before: .noAnswer(isOffline: isOffline))
  }

  /// The last `send` failed: the message was not sent, and will not be.
  public mutating func failToSend(_ reason: any Failure) -> [Update] {
    // An earlier stop was sent.
    if case .stopping(_, let stops) = stage, stops.count > 1 { return disconnect(reason) }
    return hasEnded ? [] : fail(.notSent(reason))
  }

  /// The connection is lost.
  public mutating func disconnect(_ reason: any Failure) -> [Update] {
    give(up: .connection(reason), before: .notSent(reason))
  }

  /// The caller does not want to wait any longer.
  public mutating func interrupt() -> [Update] { give(up: .interrupted, before: .interrupted) }

  // MARK: -

  /// What a statement says about a sent message; nil if it is about something else.
  ///
  /// A refusal as `replayed` is ignored: the broker delivered our message twice, and the answer to the first copy will
  /// arrive (PROTOCOL.md, section 2).
  private func outcome(of answer: Answer, to sent: Sent) -> Statement.Outcome? {
    guard answer.statement.step == step, let content = answer.statement.answer, content.command == sent.digest else {
      return nil
    }
    if case .refused(let refusal) = content.outcome {
      if refusal.code == .replayed { return nil }
      // A malformed command may have had no readable nonce.
      if refusal.code == .malformed { return content.outcome }
    }
    return content.nonce == sent.nonce ? content.outcome : nil
  }

  private mutating func proceed(_ answer: Answer, _ challenge: Statement.Challenge, _ question: Sent) -> [Update] {
    let told = Update.answered(answer, challenge.policy)
    switch goal {
    case .status, .examine: return [told] + end(answer.statement)
    case .move, .prepare, .stop: break
    }
    let offer = Offer(
      question: question, answer: answer, challenge: challenge, sequence: answer.statement.sequence)
    if let presented { return [told] + command(presented, offer, at: answer.received) }
    stage = .ready(offer, question: nil)
    limit = answer.received + Self.challengeAge
    guard let request = challenge.call else { return [told] }
    return [
      .call(Call(question.command.callKey, challenge.bytes, request, begun: answer.received)), .heard(request.heard),
      told,
    ]
  }

  /// The same answer again: the vehicle hears this device somewhere else.
  private mutating func hear(
    _ answer: Answer, _ challenge: Statement.Challenge, _ offer: Offer, _ question: Sent?
  ) -> [Update] {
    guard let call = challenge.call, challenge.bytes == offer.challenge.bytes,
      answer.statement.epoch == offer.answer.statement.epoch, answer.statement.sequence > offer.sequence
    else { return [] }
    var offer = offer
    offer.sequence = answer.statement.sequence
    stage = .ready(offer, question: question)
    return [.heard(call.heard)]
  }

  /// Asks for another challenge. Until it comes, the present one is valid.
  private mutating func renew(_ offer: Offer, at now: Instant) -> [Update] {
    let (sent, update) = seal(.status)
    stage = .ready(offer, question: sent)
    limit = now + Self.renewalDelay
    return [update]
  }

  private mutating func command(
    _ wanted: (target: Command.Move.Target, sighting: Sighting), _ offer: Offer, at now: Instant
  ) -> [Update] {
    let answer = offer.answer
    let aim = Aim(
      target: wanted.target, epoch: answer.statement.epoch, deadline: answer.clock(at: now) + Self.deadline)
    let move = Command.Move(
      target: aim.target, epoch: aim.epoch, challenge: offer.challenge.bytes, deadline: aim.deadline,
      proof: wanted.sighting.proof, proofTime: answer.clock(at: wanted.sighting.found))
    let (sent, update) = seal(.move(move))
    stage = .commanding(sent, aim, isMoving: false)
    limit = now + .milliseconds(Self.deadline) + Self.delay
    return [update, .commanded]
  }

  /// A stop needs the epoch of the controller's present run. The first statement that arrives has an epoch. If the
  /// broker had retained that statement, it may be from an older run: then an answer to this request has the present
  /// epoch.
  private mutating func stop(_ answer: Answer, _ question: Sent, _ stops: [Stop]) -> [Update] {
    let statement = answer.statement
    let answered = stops.first { outcome(of: answer, to: $0.sent) != nil }
    let isNew = !stops.contains { $0.epoch == statement.epoch }
    let verdict = outcome(of: answer, to: answered?.sent ?? question)
    // A refused stop is finished.
    let others = if case .refused? = verdict { stops.filter { $0.sent != answered?.sent } } else { stops }
    switch verdict {
    case .obeyed where answered?.epoch == statement.epoch && statement.phase.isAtRest:
      return end(statement)
    case .refused(let refusal) where refusal.code != .expired || !isNew:
      if others.isEmpty { return refuse(refusal) }
      stage = .stopping(question, others)
      return []
    case .refused,
      .challenge where isNew, nil where stops.isEmpty:
      let (sent, update) = seal(.stop(epoch: statement.epoch))
      stage = .stopping(question, others + [Stop(sent: sent, epoch: statement.epoch)])
      limit = answer.received + Self.stopDelay
      return stops.isEmpty ? [update, .commanded] : [update]
    case .obeyed, .challenge, nil:
      return []
    }
  }

  private mutating func rest(_ statement: Statement, _ target: Command.Move.Target) -> [Update] {
    if statement.phase == .fault { return fail(.unconfirmed(.stopped(statement.fault), step: step)) }
    guard statement.position.rawValue == target.rawValue else {
      return fail(.unconfirmed(.restsElsewhere(statement.position), step: step))
    }
    return end(statement)
  }

  private mutating func end(_ statement: Statement) -> [Update] {
    stage = .ended
    return [.done(statement)]
  }

  /// Gives up waiting.
  ///
  /// - Parameter error: the error if no command was sent.
  private mutating func give(up doubt: RiderError.Doubt, before error: RiderError) -> [Update] {
    switch (stage, doubt) {
    case (.asking, _), (.ready, _): fail(error)
    // The first reason says more than the end of a later question.
    case (.doubting(_, _, _, _, let first), .timedOut), (.doubting(_, _, _, _, let first), .connection):
      fail(.unconfirmed(first, step: step))
    case (.commanding, _), (.doubting, _): fail(.unconfirmed(doubt, step: step))
    case (.stopping, _): fail(.mayStillMove(doubt, step: step))
    case (.ended, _): []
    }
  }

  private mutating func refuse(_ refusal: Refusal) -> [Update] {
    let isOfCommand =
      switch stage {
      case .commanding, .doubting: true
      case .asking, .ready, .stopping, .ended: false
      }
    return fail(.refused(refusal, of: isOfCommand ? presented?.sighting.proof : nil))
  }

  private mutating func fail(_ error: RiderError) -> [Update] {
    stage = .ended
    return [.failed(error)]
  }

  private func seal(_ request: Command.Request) -> (Sent, Update) {
    let isExamined = if case .examine = goal { true } else { false }
    let command = Command(
      vehicle: access.vehicle.uuid, step: step, request: request, token: access.tokenText, asksAbout: isExamined)
    let sealed = command.sealed(by: access.device, to: access.encryptionKey)
    return (Sent(sealed, nonce: command.nonce), .send(sealed))
  }
}

extension RiderAccess {
  /// Reads a message on a topic.
  ///
  /// - Returns: the statement; nil for anything that this vehicle's controller did not sign for that topic.
  public func statement(_ payload: [UInt8], on topic: String) throws(ProtocolError) -> Statement {
    let statement = try Statement(payload: payload, verifiedBy: statementKey)
    guard statement.vehicle == vehicle.uuid, topic == self.topic.status(statement.step) else {
      throw .malformed("the statement is about another vehicle or step")
    }
    return statement
  }
}
