import Domain
import MQTT
import Rider
import StepProtocol
import SystemIO
import Testing

/// What a request does with statements that no honest controller would send, and with the end of its connection.
@Suite("Requests to a step") struct StepRequestTests {
  private let step = World.vehicle.steps[0]
  private let now = Instant.now
  private let epoch = [UInt8](repeating: 7, count: Statement.epochSize)
  private let policy = PresencePolicy(methods: [.nfc], zone: .near, acceptsStatic: true)

  /// A request that has sent its command.
  private func commanded() throws -> (StepRequest, Sent) {
    let goal = StepRequest.Goal.move(.open, World.sighting(step))
    var request = StepRequest(goal, with: World.access, limit: now + .seconds(10))
    let question = try Sent(request.begin())
    let updates = request.receive(answer(to: question, outcome: .challenge(.init(bytes(16), policy: policy))))
    return (request, try Sent(updates))
  }

  private func bytes(_ count: Int) -> [UInt8] { [UInt8](repeating: 1, count: count) }

  /// What a test knows of a message: the controller could open it.
  private struct Sent {
    let digest: CommandDigest
    let nonce: [UInt8]
    /// A stop's.
    let epoch: [UInt8]?

    init(_ updates: [StepRequest.Update]) throws {
      let payloads = updates.compactMap { if case .send(let command) = $0 { command.bytes } else { nil } }
      let payload = try #require(payloads.first)
      digest = CommandDigest(of: payload)
      let received = ReceivedCommand(
        payload, controller: World.keys.decryption, operatorKey: World.keys.operator.verificationKey)
      guard case .command(let command, _, _) = received else { throw ProtocolError.undecipherable }
      nonce = command.nonce
      epoch = if case .stop(let epoch) = command.request { epoch } else { nil }
    }
  }

  private func answer(
    to sent: Sent, outcome: Statement.Outcome, position: Position = .close, phase: Phase = .idle, fault: Fault? = nil,
    epoch: [UInt8]? = nil, nonce: [UInt8]? = nil
  ) -> Answer {
    Answer(
      statement: Statement(
        vehicle: World.vehicle.uuid, step: step.id, position: position, phase: phase, fault: fault, sequence: 1,
        epoch: epoch ?? self.epoch, clock: 1000,
        answer: .init(command: sent.digest, nonce: nonce ?? sent.nonce, outcome: outcome)),
      received: now)
  }

  private func error(_ updates: [StepRequest.Update]) throws -> RiderError {
    try #require(updates.compactMap { if case .failed(let error) = $0 { error } else { nil } }.first)
  }

  @Test("an unknown refusal is a refusal, with the retry that it carries", arguments: [true, false])
  func unknownRefusal(retry: Bool) throws {
    var (request, sent) = try commanded()
    let refusal = Refusal(.other("too_hot"), retryCanHelp: retry)
    let error = try error(request.receive(answer(to: sent, outcome: .refused(refusal))))
    #expect(error.exitStatus == .refused)
    #expect(error.retryCanHelp == retry && !error.mayHaveMoved)
    #expect(error.description == "the vehicle refused (too_hot): this stepctl does not know the reason")
  }

  @Test("an unknown phase is no rest: the request waits on")
  func unknownPhase() throws {
    var (request, sent) = try commanded()
    let waiting = request.receive(answer(to: sent, outcome: .obeyed, phase: .other("unfolding")))
    #expect(waiting.count == 1 && !request.hasEnded)
    let ended = request.receive(answer(to: sent, outcome: .obeyed, position: .open))
    #expect(ended.count == 1 && request.hasEnded)
  }

  @Test("a success with another epoch, with a challenge or with another nonce is none")
  func falseSuccess() throws {
    var (request, sent) = try commanded()
    let others = [
      answer(to: sent, outcome: .obeyed, position: .open, epoch: bytes(16)),
      answer(to: sent, outcome: .challenge(.init(bytes(16), policy: policy)), position: .open),
      answer(to: sent, outcome: .obeyed, position: .open, nonce: bytes(16)),
      answer(to: sent, outcome: .refused(Refusal(.replayed)), position: .open),
    ]
    for other in others { #expect(request.receive(other).isEmpty) }
    #expect(!request.hasEnded)
  }

  @Test("a step that rests elsewhere, or in a fault, is unconfirmed")
  func elsewhere() throws {
    var (request, sent) = try commanded()
    let resting = try error(request.receive(answer(to: sent, outcome: .obeyed, position: .close)))
    #expect(resting.description == "the left step came to rest closed")
    (request, sent) = try commanded()
    let stopped = try error(
      request.receive(answer(to: sent, outcome: .obeyed, position: .unknown, phase: .fault, fault: .obstructed)))
    #expect(stopped.description == "the step stopped on its way (obstructed): the left step may have moved")
    #expect(stopped.mayHaveMoved && !stopped.retryCanHelp && stopped.exitStatus == .unconfirmed)
  }

  @Test("before the command nothing may have moved; after it the step may have")
  func doubt() throws {
    let lost = SystemError("connect", code: 104)
    var asking = StepRequest(.move(.open, World.sighting(step)), with: World.access, limit: now)
    _ = asking.begin()
    var (copy, silent) = (asking, asking)
    #expect(try !error(copy.disconnect(lost)).mayHaveMoved)
    #expect(try error(silent.advance(to: now)).description.hasPrefix("the vehicle does not answer; nothing was sent"))
    #expect(try error(asking.interrupt()).isInterruption)

    var (request, _) = try commanded()
    (copy, silent) = (request, request)
    #expect(try error(copy.disconnect(lost)).mayHaveMoved)
    #expect(silent.advance(to: now).isEmpty)
    #expect(try error(silent.advance(to: silent.limit)).mayHaveMoved)
    #expect(try error(request.interrupt()).mayHaveMoved)
    #expect(request.receive(answer(to: try commanded().1, outcome: .obeyed)).isEmpty)
  }

  @Test("a command that could not be given to the connection was not sent")
  func notSent() throws {
    var (request, _) = try commanded()
    let error = try error(request.failToSend(SystemError("send", code: 32)))
    #expect(!error.mayHaveMoved && error.retryCanHelp)
  }

  // MARK: - Preparing

  /// A request that has a challenge at hand, which arrived `now`.
  private func ready() throws -> (StepRequest, question: Sent) {
    var request = StepRequest(.prepare(step.id), with: World.access, limit: now + .seconds(10))
    let question = try Sent(request.begin())
    #expect(request.receive(answer(to: question, outcome: challenge())).count == 1 && !request.hasEnded)
    return (request, question)
  }

  private func isCommand(_ updates: [StepRequest.Update]) -> Bool {
    updates.contains { if case .commanded = $0 { true } else { false } }
  }

  @Test("who has prepared commands with one message; a sighting that comes first waits for the challenge")
  func prepares() throws {
    var (request, question) = try ready()
    let updates = request.present(World.sighting(step), to: .close, at: now + .seconds(5))
    let command = try Sent(updates)
    #expect(isCommand(updates) && updates.count == 2 && command.digest != question.digest)
    #expect(request.receive(answer(to: command, outcome: .obeyed)).count == 1 && request.hasEnded)

    request = StepRequest(.prepare(step.id), with: World.access, limit: now + .seconds(10))
    question = try Sent(request.begin())
    #expect(request.present(World.sighting(step), to: .open, at: now).isEmpty)
    #expect(isCommand(request.receive(answer(to: question, outcome: challenge()))))
  }

  @Test("a challenge is renewed in time; until the next comes the one at hand is good, and then it is not used")
  func renews() throws {
    var (request, question) = try ready()
    #expect(request.advance(to: now + .seconds(5)).isEmpty)
    let second = try Sent(request.advance(to: request.limit))
    #expect(second.digest != question.digest)
    var early = request
    #expect(isCommand(early.present(World.sighting(step), to: .open, at: now + .seconds(8))))
    var late = request
    #expect(late.present(World.sighting(step), to: .open, at: now + .seconds(9)).isEmpty)
    #expect(late.receive(answer(to: question, outcome: challenge())).isEmpty)
    #expect(isCommand(late.receive(answer(to: second, outcome: challenge()))))
    #expect(try !error(request.advance(to: request.limit)).mayHaveMoved)
  }

  @Test("a rider on the way waits for no answer, and at a step for so long")
  func onTheWay() throws {
    let limit = now + .seconds(10)
    func coming() -> StepRequest {
      var request = StepRequest(.prepare(step.id), with: World.access, limit: limit, isAwaited: false)
      _ = request.begin()
      return request
    }
    var request = coming()
    #expect(request.advance(to: now + .seconds(3600)).isEmpty && request.canWaitForWay)
    request.expect(until: now + .seconds(3610))
    #expect(request.advance(to: now + .seconds(3609)).isEmpty && !request.canWaitForWay)
    #expect(try error(request.advance(to: now + .seconds(3610))).description.hasPrefix("the vehicle does not answer"))
    // A sighting comes of a rider at a step. One that is presented while there is no answer waits for so long as well.
    request = coming()
    #expect(request.present(World.sighting(step), to: .open, at: now + .seconds(60)).isEmpty)
    #expect(!request.canWaitForWay)
    #expect(try error(request.advance(to: now + .seconds(60) + StepRequest.renewalDelay)).exitStatus == .unavailable)
  }

  @Test("a rider on the way keeps a challenge at hand, however long it takes and whatever is lost")
  func onTheWayRenews() throws {
    var request = StepRequest(.prepare(step.id), with: World.access, limit: now + .seconds(10), isAwaited: false)
    var question = try Sent(request.begin())
    #expect(!request.hasLimit)
    _ = request.receive(answer(to: question, outcome: challenge()))
    #expect(request.hasLimit && request.limit == now + StepRequest.challengeAge)
    question = try Sent(request.advance(to: request.limit))
    // Its answer is lost.
    #expect(request.hasLimit)
    question = try Sent(request.advance(to: request.limit))
    #expect(!request.hasEnded && !request.hasLimit)
    _ = request.receive(answer(to: question, outcome: challenge()))
    #expect(isCommand(request.present(World.sighting(step), to: .open, at: now)))
  }

  @Test("whose way is lost before the command asks on another one, and the challenge of the old one is not used")
  func asksAgain() throws {
    var (request, question) = try ready()
    #expect(request.canWaitForWay)
    let second = try Sent(request.goOn(without: SystemError("read", code: 104), at: now))
    #expect(request.receive(answer(to: question, outcome: challenge())).isEmpty)
    #expect(request.present(World.sighting(step), to: .open, at: now).isEmpty)
    #expect(isCommand(request.receive(answer(to: second, outcome: challenge()))))
  }

  @Test("who has only prepared has moved nothing, whatever ends it, and what is let go of says no more")
  func preparedDoubt() throws {
    let (request, question) = try ready()
    var (cut, given, left) = (request, request, request)
    #expect(try !error(cut.disconnect(SystemError("connect", code: 104))).mayHaveMoved)
    #expect(try error(given.interrupt()).isInterruption)
    left.abandon()
    #expect(left.hasEnded && left.interrupt().isEmpty && left.receive(answer(to: question, outcome: .obeyed)).isEmpty)
    var commanding = request
    _ = commanding.present(World.sighting(step), to: .open, at: now)
    commanding.abandon()
    #expect(!commanding.hasEnded)
  }

  @Test("a refusal as wrong_step names its cause: the token, or what the command gave")
  func wrongStep() throws {
    var request = StepRequest(.prepare(step.id), with: World.access, limit: now + .seconds(10))
    let question = try Sent(request.begin())
    let refusal = Statement.Outcome.refused(Refusal(.wrongStep))
    #expect(
      try error(request.receive(answer(to: question, outcome: refusal))).description
        == "the vehicle refused (wrong_step): the token is not for this step")
    var (commanded, sent) = try commanded()
    #expect(
      try error(commanded.receive(answer(to: sent, outcome: refusal))).description
        == "the vehicle refused (wrong_step): the tag is not one of those on this step")
  }

  // MARK: - Stopping

  /// A statement that answers nobody.
  private func kept(_ epoch: [UInt8]) -> Answer {
    Answer(
      statement: Statement(
        vehicle: World.vehicle.uuid, step: World.vehicle.steps[1].id, position: .open, phase: .idle, fault: nil,
        sequence: 1, epoch: epoch, clock: 0, answer: nil),
      received: now)
  }

  private func challenge() -> Statement.Outcome { .challenge(.init(bytes(16), policy: policy)) }

  private func asksToStop() throws -> (StepRequest, question: Sent) {
    var request = StepRequest(.stop(step.id), with: World.access, limit: now + .seconds(10))
    let question = try Sent(request.begin())
    return (request, question)
  }

  @Test("a stop goes out with the first statement that arrives, of whichever step, and once for a run")
  func stopsAtOnce() throws {
    var (request, question) = try asksToStop()
    let stop = try Sent(request.receive(kept(epoch)))
    #expect(stop.epoch == epoch)
    #expect(request.receive(answer(to: question, outcome: challenge())).isEmpty)
    #expect(request.receive(kept(bytes(16))).isEmpty)
    #expect(request.receive(answer(to: stop, outcome: .obeyed, phase: .moving)).isEmpty)
    #expect(request.receive(answer(to: stop, outcome: .obeyed, epoch: bytes(16))).isEmpty)
    let updates = request.receive(answer(to: stop, outcome: .obeyed, position: .unknown))
    #expect(updates.count == 1 && request.hasEnded)
  }

  @Test("an epoch that the broker had kept too long is replaced by the one of the first fresh answer")
  func stopsInThePresentRun() throws {
    let old = bytes(16)
    // The answer to the question comes first.
    var (request, question) = try asksToStop()
    var outdated = try Sent(request.receive(kept(old)))
    var present = try Sent(request.receive(answer(to: question, outcome: challenge())))
    #expect((outdated.epoch, present.epoch) == (old, epoch))
    #expect(request.receive(answer(to: outdated, outcome: .refused(Refusal(.expired)))).isEmpty)
    #expect(request.receive(answer(to: present, outcome: .obeyed)).count == 1 && request.hasEnded)
    // The refusal comes first.
    (request, question) = try asksToStop()
    outdated = try Sent(request.receive(kept(old)))
    present = try Sent(request.receive(answer(to: outdated, outcome: .refused(Refusal(.expired)))))
    #expect(request.receive(answer(to: question, outcome: challenge())).isEmpty)
    let error = try error(request.receive(answer(to: present, outcome: .refused(Refusal(.wrongStep)))))
    #expect(error.exitStatus == .refused && !error.retryCanHelp)
  }

  @Test("before the stop nothing was stopped; after it the step may still move, and another stop does no harm")
  func stopDoubt() throws {
    let lost = SystemError("connect", code: 104)
    var (stopping, _) = try asksToStop()
    var (cut, given, silent) = (stopping, stopping, stopping)
    #expect(try error(cut.disconnect(lost)).exitStatus == lost.exitStatus)
    #expect(try error(given.interrupt()).isInterruption)
    silent.isOffline = true
    let unanswered = try error(silent.advance(to: silent.limit))
    #expect(unanswered.description == "the vehicle does not answer; the step was not stopped")
    #expect(unanswered.hint == "the broker says that the vehicle's controller is offline")
    #expect(unanswered.exitStatus == .unavailable)

    _ = stopping.receive(kept(epoch))
    (cut, given, silent) = (stopping, stopping, stopping)
    for error in [
      try error(cut.disconnect(lost)), try error(given.interrupt()), try error(silent.advance(to: silent.limit)),
    ] {
      #expect(error.exitStatus == .unconfirmed && error.retryCanHelp && !error.mayHaveMoved)
      #expect(error.description.hasSuffix(": the left step may still move"))
      #expect(error.hint == "look at it, and run `stepctl stop` again")
    }
  }
}
