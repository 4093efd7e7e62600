import Domain
import Rider
import StepProtocol
import SystemIO
import Testing

/// What a rider's device calls, and when: never without a question of its own, and never for longer than it was asked.
@Suite("Calls of a rider") struct RiderCallTests {
  private let step = World.vehicle.steps[0]
  private let other = World.vehicle.steps[1]
  private let now = Instant.now
  private let epoch = [UInt8](repeating: 7, count: Statement.epochSize)
  private let challenge = [UInt8](repeating: 1, count: Statement.challengeSize)
  private let policy = PresencePolicy(methods: [.beacon, .heard], zone: .near, acceptsStatic: true, needsHearing: true)

  private struct Question {
    let digest: CommandDigest
    let nonce: [UInt8]
    let key: CallKey

    init(_ updates: [StepRequest.Update]) throws {
      let payloads = updates.compactMap { if case .send(let command) = $0 { command.bytes } else { nil } }
      let payload = try #require(payloads.first)
      let received = ReceivedCommand(
        payload, controller: World.keys.decryption, operatorKey: World.keys.operator.verificationKey)
      guard case .command(let command, _, let key?) = received else { throw ProtocolError.undecipherable }
      (digest, nonce, self.key) = (CommandDigest(of: payload), command.nonce, key)
    }
  }

  private func answer(
    _ question: Question, heard: StepID? = nil, sequence: Int64 = 1, challenge: [UInt8]? = nil, calls: Bool = true
  ) -> Answer {
    let call = calls ? CallRequest(slot: 300, slots: 32, heard: heard) : nil
    let outcome = Statement.Outcome.challenge(.init(challenge ?? self.challenge, policy: policy, call: call))
    return Answer(
      statement: Statement(
        vehicle: World.vehicle.uuid, step: step.id, position: .close, phase: .idle, fault: nil, sequence: sequence,
        epoch: epoch, clock: 1000,
        answer: .init(command: question.digest, nonce: question.nonce, outcome: outcome)),
      received: now)
  }

  private func places(_ updates: [StepRequest.Update]) -> [StepID?] {
    updates.compactMap { if case .heard(let place) = $0 { .some(place) } else { nil } }
  }

  private func requested(_ updates: [StepRequest.Update]) -> Call? {
    updates.compactMap { if case .call(let call) = $0 { call } else { nil } }.first
  }

  @Test(
    "the answer to its own question has it call, with frames that the controller computes too, and for their time only")
  func frames() throws {
    var request = StepRequest(.prepare(step.id), with: World.access, limit: now + .seconds(10))
    let question = try Question(request.begin())
    let call = try #require(requested(request.receive(answer(question))))
    for slot in 0..<32 {
      let sent = try #require(call.frame(at: now + .milliseconds(300 * slot + 150)))
      #expect(sent.frame == question.key.frame(ofSlot: slot, challenge: challenge))
      #expect(sent.until == now + .milliseconds(300 * (slot + 1)))
    }
    #expect(call.frame(at: now + .milliseconds(9_600)) == nil)
    #expect(call.frame(at: now + .seconds(1_000_000)) == nil)
  }

  @Test("nothing else has it call: not the answer to another's question, nor an answer without a call")
  func others() throws {
    var request = StepRequest(.prepare(step.id), with: World.access, limit: now + .seconds(10))
    let question = try Question(request.begin())
    var stranger = StepRequest(.prepare(step.id), with: World.access, limit: now + .seconds(10))
    let foreign = try Question(stranger.begin())
    #expect(request.receive(answer(foreign)).isEmpty)
    #expect(requested(request.receive(answer(question, calls: false))) == nil)
  }

  @Test("it takes the newest word on where it is heard, and does not begin to call anew")
  func heard() throws {
    var request = StepRequest(.prepare(step.id), with: World.access, limit: now + .seconds(10))
    let question = try Question(request.begin())
    #expect(places(request.receive(answer(question, sequence: 5))) == [nil])
    let told = request.receive(answer(question, heard: step.id, sequence: 7))
    #expect(places(told) == [step.id] && requested(told) == nil)
    // A copy, an older one, and one of another challenge.
    #expect(request.receive(answer(question, sequence: 7)).isEmpty)
    #expect(request.receive(answer(question, heard: other.id, sequence: 6)).isEmpty)
    #expect(request.receive(answer(question, heard: other.id, sequence: 8, challenge: epoch)).isEmpty)
    #expect(places(request.receive(answer(question, heard: other.id, sequence: 9))) == [other.id])
  }

  @Test("what was found does only where the vehicle hears the device too")
  func both() {
    var presence = Presence(side: nil)
    presence.learned(policy, of: step.id)
    presence.learned(policy, of: other.id)
    let tags = PresencePolicy(methods: [.nfc, .heard], zone: .near, acceptsStatic: true, needsHearing: true)
    presence.learned(tags, of: step.id)
    presence.found(World.sighting(step))
    guard case .lacks(_, .notHeard(at: nil)) = presence.verdict else {
      Issue.record("\(presence.verdict)")
      return
    }
    presence.heard(Sighting(heardAt: other, found: now))
    guard case .lacks(_, .notHeard(at: other.id)) = presence.verdict else {
      Issue.record("\(presence.verdict)")
      return
    }
    presence.heard(Sighting(heardAt: step, found: now))
    guard case .suffices(let sighting) = presence.verdict, sighting.method == .nfc else {
      Issue.record("\(presence.verdict)")
      return
    }
  }

  @Test("being heard does alone where the vehicle does not ask for more, at the side that was asked for")
  func alone() {
    let enough = PresencePolicy(methods: [.beacon, .heard], zone: .near, acceptsStatic: true)
    for (side, suffices) in [(nil, true), (step.side, true), (other.side, false)] as [(Side?, Bool)] {
      var presence = Presence(side: side)
      presence.learned(enough, of: step.id)
      presence.heard(Sighting(heardAt: step, found: now))
      if case .suffices(let sighting) = presence.verdict {
        #expect(suffices && sighting.method == .heard && sighting.step == step)
      } else {
        #expect(!suffices)
      }
    }
  }
}
