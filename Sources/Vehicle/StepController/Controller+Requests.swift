import Domain
import StepProtocol

/// Handles riders' requests and checks who may do what, until a motion is to begin.
extension Controller {
  mutating func receive(_ request: Request) {
    guard let step = vehicle.step(request.step) else { return }
    let digest = CommandDigest(of: request.payload)
    let received =
      request.command
      ?? ReceivedCommand(request.payload, controller: keys.decryption, operatorKeys: operatorKeys)
    switch received {
    case .unauthenticated(let error):
      log(.unauthenticated(step.id, error))
    case .malformed(_, let token, let nonce):
      refuse(Sender(digest, on: step, nonce: nonce, token, from: request.origin), Refusal(.malformed))
    case .command(let command, let token, let key):
      let sender = Sender(
        digest, on: step, nonce: command.nonce, token, asking: command.request, from: request.origin)
      if let (code, cause) = objection(to: command, sender, token, isRetained: request.isRetained) {
        return refuse(sender, Refusal(code), cause)
      }
      switch command.request {
      case .status:
        log(.challenged(step.id, by: sender.asker))
        let challenge = session.challenge(for: sender.device, step.id, at: now.clock)
        let call = key.flatMap { beginCall(of: sender, by: $0, challenge) }
        watchRoad()
        let about = command.asksAbout ? version.map { About(version: $0, time: now.wallMilliseconds) } : nil
        answer(sender, .challenge(offer(challenge, at: step.id, call: call, about: about)))
      case .stop:
        stop(for: sender)
      case .move(let move):
        let wanted = MotionRequest(move, by: sender)
        let clock = now.clock
        let place = hearing?.place(of: sender.device, at: clock)
        switch proofs.judge(
          move, for: step, by: sender.device, heard: place, on: sender.origin, counters: journal.counters, at: now)
        {
        case .refused(let code, let cause): refuse(sender, Refusal(code), cause)
        case .accepted(nil): accept(wanted)
        // Checked before the tag's reading is used up, so that the rider can send the same reading again.
        case .accepted(_?) where isEnding || guardRefusal(of: wanted) != nil: accept(wanted)
        case .accepted(let reading?):
          journal.counters[reading.uid] = reading.counter
          commit(.reading(reading, wanted))
        }
      }
    }
  }

  /// The checks of section 6 of the protocol, in their order, up to the proof.
  private mutating func objection(
    to command: Command, _ sender: Sender, _ token: Token, isRetained: Bool
  ) -> (RefusalCode, RefusalCause?)? {
    // Admitted before any check, so that a refused command stays refused when the broker delivers it again.
    let isNew = session.admit(sender.command, command.request)
    var staleness: RefusalCode?
    switch command.request {
    case .status: break
    case .stop(let epoch): staleness = session.isPresent(epoch) ? nil : .expired
    case .move(let move): staleness = session.redeem(move, by: sender.device, for: sender.step, at: now.clock)
    }
    // Checked first: a second copy must not be refused for another reason (the broker now sets the retain flag, or the
    // token has ended). That refusal would deny what the first copy was granted.
    if !isNew || staleness == .replayed { return (.replayed, nil) }
    if isRetained { return (.retained, nil) }
    guard token.vehicle == vehicle.uuid else { return (.wrongVehicle, .tokenVehicle) }
    guard command.vehicle == vehicle.uuid else { return (.wrongVehicle, .commandVehicle) }
    guard command.step == sender.step else { return (.wrongStep, .otherTopic) }
    guard token.steps.contains(sender.step) else { return (.wrongStep, .notInToken) }
    switch token.validity.state(at: now.wall, leeway: Controller.leeway) {
    case .notYet: return (.tokenNotYetValid, nil)
    case .over: return (.tokenExpired, nil)
    case .now: break
    }
    if notice?.revokes(token) == true { return (.tokenRevoked, nil) }
    return staleness.map { ($0, nil) }
  }

  /// Asks the sender's device to call, if the vehicle listens.
  private mutating func beginCall(of sender: Sender, by key: CallKey, _ challenge: [UInt8]) -> CallRequest? {
    let clock = now.clock
    guard let begun = hearing?.begin(key, for: sender, challenge: challenge, at: clock) else { return nil }
    if !begun.forgotten.isEmpty { effects.append(.forget(begun.forgotten)) }
    effects.append(.await(begun.awaited))
    return begun.call.request(heard: hearing?.reported(sender.device))
  }

  /// Tells devices whose place has changed where they are heard now, by answering their question again.
  mutating func lookWhereCallersAre() {
    let clock = now.clock
    guard let (changes, forgotten) = hearing?.decide(at: clock) else { return }
    if !forgotten.isEmpty { effects.append(.forget(forgotten)) }
    for (call, heard) in changes {
      answer(
        call.sender,
        .challenge(offer(call.challenge, at: call.sender.step, call: call.request(heard: heard))))
    }
  }

  private func offer(
    _ challenge: [UInt8], at step: StepID, call: CallRequest?, about: About? = nil
  ) -> Statement.Challenge {
    Statement.Challenge(
      challenge, policy: policy.presence, call: call, watch: traffic?.watch(of: step, at: now.clock), about: about)
  }

  /// Looks at the step's state, then refuses the motion, turns the present one round, or begins a new one.
  mutating func accept(_ request: MotionRequest) {
    let step = request.step
    guard case .command(let move, let sender) = request.cause, let state = steps[step],
      let condition = condition(of: step)
    else { return }
    // Writing the tag's reading took time: a stop or a newer command may have come meanwhile.
    guard session.stands(move, by: sender.device, for: step) else { return refuse(sender, Refusal(.expired)) }
    if let code = lapse(of: request) { return refuse(sender, Refusal(code)) }
    switch state.activity {
    case .committing, .preparing:
      return refuse(sender, Refusal(.busy))
    case .moving(let motion):
      guard motion.canTurnRound(to: request.target, for: sender.device) else {
        return refuse(sender, Refusal(.busy))
      }
    case .resting:
      guard condition.fault != nil || condition.position != request.target.position else {
        log(.answered(step, by: sender.asker))
        return answer(sender, .obeyed)
      }
      if request.target == .close, let reservation = state.reservation, reservation.device != sender.device,
        now.clock < reservation.until
      {
        return refuse(sender, Refusal(.reserved))
      }
    }
    guard !motions.isUsedUp(by: sender.device, at: now.clock) else { return refuse(sender, Refusal(.tooOften)) }
    if let blockReason = readings.blockReason(of: step, extends: request.target == .open) {
      return refuse(sender, blockReason.refusal)
    }
    // Checked last, so that a rider who waits and asks again uses up nothing.
    if let refusal = guardRefusal(of: request) { return refuse(sender, refusal) }
    motions.note(sender.device, at: now.clock)
    if case .moving(let motion) = state.activity { return turnRound(motion, for: request) }
    commit(.motion(request))
  }

  /// Ends whatever the step does or is about to do. A stop needs neither a challenge nor a proof, because it starts
  /// nothing.
  private mutating func stop(for sender: Sender) {
    let step = sender.step
    session.void(for: step)
    log(.stopped(step, by: sender.asker))
    steps[step]?.isToRetract = false
    switch steps[step]?.activity {
    case .committing(let request)?, .preparing(let request)?:
      reportStop(by: sender)
      abandon(request, Refusal(.expired))
    // The servo holds its last place.
    case .moving(let motion)?:
      reportStop(by: sender)
      finish(motion, .unknown, motion.obstacle?.fault)
    case .resting?, nil: break
    }
    answer(sender, .obeyed)
  }
}
