public import Domain
public import StepProtocol

/// A statement of the controller's, and the moment at which it arrived here.
public struct Answer: Sendable, Equatable {
  public let statement: Statement
  public let received: ContinuousClock.Instant

  public init(statement: Statement, received: ContinuousClock.Instant) {
    self.statement = statement
    self.received = received
  }

  /// What the controller's clock shows at a moment, milliseconds; never below zero (PROTOCOL.md, section 4.2).
  public func clock(at moment: ContinuousClock.Instant) -> Int64 {
    let (seconds, attoseconds) = received.duration(to: moment).components
    let elapsed = Double(seconds) * 1000 + Double(attoseconds) * 1e-15
    return max(0, statement.clock + Int64(elapsed.rounded(.down)))
  }
}

/// One request to one step, from the first message to the last: the rider's half of PROTOCOL.md, section 7.
///
/// A request takes statements and the passing of time, and says what to do next. It does no I/O and has no clock, so a
/// test can lose, double, delay and reorder every message.
public struct StepRequest: Sendable {
  public enum Goal: Sendable {
    /// To learn how the step stands.
    case status
    case move(Command.Move.Target, Sighting)
  }

  /// What whoever runs the request has to do or to know.
  public enum Update: Sendable {
    /// Publish this, not retained. If that is not possible, call `failToSend`.
    case send(topic: String, payload: [UInt8])
    /// The vehicle told how the step stands, and which proofs it accepts from this rider.
    case answered(Answer, PresencePolicy)
    /// The command was given to the connection.
    case commanded
    /// The vehicle confirmed that the step moves.
    case moving
    /// The step is where the rider wants it.
    case done(Statement)
    case failed(RiderError)
  }

  /// How far ahead of the controller's clock a command's deadline is, milliseconds.
  public static let deadline: Int64 = 5_000
  /// How long after the deadline a first answer can still be on its way.
  public static let delay = Duration.seconds(2)
  /// The longest motion that a controller can be configured to allow, and the answer's way back.
  public static let longestMotion = Duration.seconds(62)

  private enum Stage: Sendable {
    case asking(Sent)
    case commanding(Sent, target: Command.Move.Target, epoch: [UInt8], isMoving: Bool)
    case ended
  }

  /// What the answers to a command have to name.
  private struct Sent: Sendable {
    let digest: CommandDigest
    let nonce: [UInt8]
  }

  public let step: StepID
  /// When the request gives up, unless something arrives before.
  public private(set) var limit: ContinuousClock.Instant
  private let goal: Goal
  private let access: RiderAccess
  private var stage = Stage.ended

  /// - Parameter limit: when to give up waiting for the answer to the question that comes first.
  public init(_ goal: Goal, to step: StepID, with access: RiderAccess, limit: ContinuousClock.Instant) {
    self.goal = goal
    self.step = step
    self.access = access
    self.limit = limit
  }

  public var hasEnded: Bool { if case .ended = stage { true } else { false } }

  /// Whether a command was sent: from then on the step may have moved.
  public var mayHaveMoved: Bool { if case .commanding = stage { true } else { false } }

  /// Asks for the step's status, and with it for a challenge.
  public mutating func begin() -> [Update] {
    let (sent, update) = seal(.status)
    stage = .asking(sent)
    return [update]
  }

  /// Takes a statement that this vehicle's controller signed. Of those that do not answer this request nothing follows.
  public mutating func receive(_ answer: Answer) -> [Update] {
    switch stage {
    case .asking(let sent):
      switch outcome(of: answer, to: sent) {
      case .challenge(let challenge): return proceed(answer, challenge)
      case .refused(let refusal): return fail(.refused(refusal))
      // No answer to a question is of this kind; the right one may follow.
      case .obeyed, nil: return []
      }
    case .commanding(let sent, let target, let epoch, let isMoving):
      // Another run of the controller cannot obey a command with this run's challenge.
      guard answer.statement.epoch == epoch else { return [] }
      switch outcome(of: answer, to: sent) {
      case .refused(let refusal): return fail(.refused(refusal))
      case .obeyed: break
      case .challenge, nil: return []
      }
      guard answer.statement.phase.isAtRest else {
        // Once: the broker may send copies for as long as it likes.
        if isMoving { return [] }
        stage = .commanding(sent, target: target, epoch: epoch, isMoving: true)
        limit = answer.received + Self.longestMotion
        return [.moving]
      }
      return rest(answer.statement, target)
    case .ended:
      return []
    }
  }

  /// Tells the request what time it is.
  public mutating func advance(to now: ContinuousClock.Instant) -> [Update] {
    if hasEnded || now < limit { return [] }
    return fail(mayHaveMoved ? .unconfirmed(.timedOut, step: step) : .noAnswer)
  }

  /// The last `send` could not be done: the message did not leave, and will not.
  public mutating func failToSend(_ reason: any Failure) -> [Update] { hasEnded ? [] : fail(.notSent(reason)) }

  /// The connection is lost.
  public mutating func disconnect(_ reason: any Failure) -> [Update] {
    if hasEnded { return [] }
    return fail(mayHaveMoved ? .unconfirmed(.connection(reason), step: step) : .notSent(reason))
  }

  /// Whoever waits for the request does not want to wait any longer.
  public mutating func interrupt() -> [Update] {
    if hasEnded { return [] }
    return fail(mayHaveMoved ? .unconfirmed(.interrupted, step: step) : .interrupted)
  }

  // MARK: -

  /// What a statement says of a message that was sent; nil if it is about something else.
  ///
  /// A refusal as `replayed` is passed over: the broker delivered our message twice, and the answer to the first copy
  /// is on its way (PROTOCOL.md, section 2).
  private func outcome(of answer: Answer, to sent: Sent) -> Statement.Outcome? {
    guard answer.statement.step == step, let content = answer.statement.answer, content.command == sent.digest else {
      return nil
    }
    if case .refused(let refusal) = content.outcome {
      if refusal.code == .replayed { return nil }
      // A malformed command may have had no nonce that could be read.
      if refusal.code == .malformed { return content.outcome }
    }
    return content.nonce == sent.nonce ? content.outcome : nil
  }

  private mutating func proceed(_ answer: Answer, _ challenge: Statement.Challenge) -> [Update] {
    let told = Update.answered(answer, challenge.policy)
    guard case .move(let target, let sighting) = goal else {
      stage = .ended
      return [told, .done(answer.statement)]
    }
    let move = Command.Move(
      target: target, epoch: answer.statement.epoch, challenge: challenge.bytes,
      deadline: answer.clock(at: answer.received) + Self.deadline, proof: sighting.proof,
      proofTime: answer.clock(at: sighting.found))
    let (sent, update) = seal(.move(move))
    stage = .commanding(sent, target: target, epoch: answer.statement.epoch, isMoving: false)
    limit = answer.received + .milliseconds(Self.deadline) + Self.delay
    return [told, update, .commanded]
  }

  private mutating func rest(_ statement: Statement, _ target: Command.Move.Target) -> [Update] {
    if statement.phase == .fault { return fail(.unconfirmed(.stopped(statement.fault), step: step)) }
    guard statement.position.rawValue == target.rawValue else {
      return fail(.unconfirmed(.restsElsewhere(statement.position), step: step))
    }
    stage = .ended
    return [.done(statement)]
  }

  private mutating func fail(_ error: RiderError) -> [Update] {
    stage = .ended
    return [.failed(error)]
  }

  private func seal(_ request: Command.Request) -> (Sent, Update) {
    let command = Command(vehicle: access.vehicle.uuid, step: step, request: request, token: access.tokenText)
    let sealed = command.sealed(by: access.device, to: access.encryptionKey)
    return (
      Sent(digest: sealed.digest, nonce: command.nonce),
      .send(topic: access.topic.setPosition(step), payload: sealed.bytes)
    )
  }
}

extension RiderAccess {
  /// Reads what came on a topic.
  ///
  /// - Returns: the statement; nil for everything that this vehicle's controller did not sign for that topic.
  public func statement(_ payload: [UInt8], on topic: String) throws(ProtocolError) -> Statement {
    let statement = try Statement(payload: payload, verifiedBy: statementKey)
    guard statement.vehicle == vehicle.uuid, topic == self.topic.status(statement.step) else {
      throw .malformed("the statement is about another vehicle or step")
    }
    return statement
  }
}
