import Domain
import MQTT
import Rider
import StepProtocol
import SystemIO
import Testing

/// What a request does with statements that no honest controller would send, and with the end of its connection.
@Suite("Requests to a step") struct StepRequestTests {
  private let step = World.vehicle.steps[0]
  private let now = ContinuousClock.now
  private let epoch = [UInt8](repeating: 7, count: Statement.epochSize)
  private let policy = PresencePolicy(methods: [.nfc], zone: .near, acceptsStatic: true)

  /// A request that has sent its command.
  private func commanded() throws -> (StepRequest, Sent) {
    let goal = StepRequest.Goal.move(.open, World.sighting(step))
    var request = StepRequest(goal, to: step.id, with: World.access, limit: now + .seconds(10))
    let question = try Sent(request.begin())
    let updates = request.receive(answer(to: question, outcome: .challenge(.init(bytes(16), policy: policy))))
    return (request, try Sent(updates))
  }

  private func bytes(_ count: Int) -> [UInt8] { [UInt8](repeating: 1, count: count) }

  /// What a test knows of a message: the controller could open it.
  private struct Sent {
    let digest: CommandDigest
    let nonce: [UInt8]

    init(_ updates: [StepRequest.Update]) throws {
      let payloads = updates.compactMap { if case .send(_, let payload) = $0 { payload } else { nil } }
      let payload = try #require(payloads.first)
      digest = CommandDigest(of: payload)
      let received = ReceivedCommand(
        payload, controller: World.keys.decryption, operatorKey: World.keys.operator.verificationKey)
      guard case .command(let command, _) = received else { throw ProtocolError.undecipherable }
      nonce = command.nonce
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
    #expect(waiting.count == 1 && !request.hasEnded && request.mayHaveMoved)
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
    #expect(resting.description == "the controller says that the step is closed: the left step may have moved")
    (request, sent) = try commanded()
    let stopped = try error(
      request.receive(answer(to: sent, outcome: .obeyed, position: .unknown, phase: .fault, fault: .obstructed)))
    #expect(stopped.description == "the step stopped on its way (obstructed): the left step may have moved")
    #expect(stopped.mayHaveMoved && !stopped.retryCanHelp && stopped.exitStatus == .unconfirmed)
  }

  @Test("before the command nothing may have moved; after it the step may have")
  func doubt() throws {
    let lost = SystemError("connect", code: 104)
    var asking = StepRequest(.move(.open, World.sighting(step)), to: step.id, with: World.access, limit: now)
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
}
