import Domain
import StepProtocol

/// Judges proofs of presence: by the policy, by what is known of the vehicle's steps, and by what was said before.
struct ProofCheck: Sendable {
  enum Verdict: Sendable, Equatable {
    /// Good enough. A dynamic tag's reading is then used up, and must be on the medium before anything moves.
    case accepted(DynamicTag.Reading?)
    case refused(RefusalCode)
  }

  private var vehicle: Vehicle
  private var policy: Policy
  private var secrets: StepSecrets
  private var guesses = GuessLimit()

  init(vehicle: Vehicle, policy: Policy, secrets: StepSecrets) {
    self.vehicle = vehicle
    self.policy = policy
    self.secrets = secrets
  }

  /// Judges by these from here on. What devices have guessed still counts.
  mutating func replace(vehicle: Vehicle, policy: Policy, secrets: StepSecrets) {
    (self.vehicle, self.policy, self.secrets) = (vehicle, policy, secrets)
  }

  /// The checks of the protocol's section 6 that are about the proof, in their order.
  ///
  /// - Parameters:
  ///   - device: whose proof it is.
  ///   - heard: the step in whose reach the vehicle's own adapters hear the device, and the zone there.
  ///   - counters: the last accepted reading of each dynamic tag.
  mutating func judge(
    _ move: Command.Move, for step: Step, by device: VerificationKey, heard: (step: StepID, zone: Zone)? = nil,
    counters: [TagUID: UInt32], at time: ControllerTime
  ) -> Verdict {
    let verdict = judge(move, for: step, by: device, counters, heard, at: time)
    // Last, and before a tag's reading is used up: so the rider can try again with it.
    if case .accepted = verdict, policy.needsHearing, heard?.step != step.id { return .refused(.notHeard) }
    return verdict
  }

  private mutating func judge(
    _ move: Command.Move, for step: Step, by device: VerificationKey, _ counters: [TagUID: UInt32],
    _ heard: (step: StepID, zone: Zone)?, at time: ControllerTime
  ) -> Verdict {
    guard policy.methods.contains(move.proof.method), policy.acceptsStatic || !isStatic(move.proof, for: step) else {
      return .refused(.proofNotAccepted)
    }
    guard move.proofTime <= time.clock, time.clock - move.proofTime <= policy.proofAge else {
      return .refused(.staleProof)
    }
    switch move.proof {
    case .beacon(let zone, let isLocated, let beacons):
      if let code = objection(to: beacons, for: step, by: device, at: time) { return .refused(code) }
      return policy.presence.isNearEnough(zone, isLocated: isLocated) ? .accepted(nil) : .refused(.notNear)
    case .tag(let uid, let content) where DynamicTag.isMeant(by: content):
      return judge(content, of: uid, for: step, counters)
    case .tag(let uid, let content):
      let isKnown = step.tags.isEmpty || step.tags.contains(uid)
      return isKnown && isLabel(content, of: step) ? .accepted(nil) : .refused(.wrongStep)
    case .code(let content):
      return isLabel(content, of: step) ? .accepted(nil) : .refused(.wrongStep)
    case .heard:
      // Where hearing goes together with another proof, it is none by itself.
      guard !policy.needsHearing else { return .refused(.proofNotAccepted) }
      guard let heard, heard.step == step.id else { return .refused(.notHeard) }
      return policy.presence.isNearEnough(heard.zone, isLocated: true) ? .accepted(nil) : .refused(.notNear)
    }
  }

  /// Whether a proof could be made of a copy as well.
  private func isStatic(_ proof: Proof, for step: Step) -> Bool {
    switch proof {
    case .beacon: secrets.minors[step.id] == nil
    case .tag(_, let content): !DynamicTag.isMeant(by: content)
    case .code: true
    case .heard: false
    }
  }

  private func isLabel(_ content: String, of step: Step) -> Bool {
    (try? StepLabel(parsing: content))?.step(in: vehicle)?.id == step.id
  }

  private mutating func objection(
    to beacons: [HeardBeacon], for step: Step, by device: VerificationKey, at time: ControllerTime
  ) -> RefusalCode? {
    // Before anything else, so that no answer tells whether a guess was right.
    if secrets.minors[step.id] != nil, guesses.isExhausted(device, at: time.clock) { return .staleProof }
    guard let own = beacons.first(where: { $0.major == step.major }),
      !beacons.contains(where: { $0.level > own.level })
    else { return .wrongStep }
    if let rotating = secrets.minors[step.id] {
      guard rotating.accepted(at: time.wall).contains(own.minor) else {
        guesses.noteWrong(by: device, at: time.clock)
        return .staleProof
      }
    } else if let minor = step.minor, own.minor != minor {
      return .wrongStep
    }
    return nil
  }

  private func judge(
    _ content: String, of uid: TagUID, for step: Step, _ counters: [TagUID: UInt32]
  ) -> Verdict {
    guard let message = try? DynamicTag(parsing: content), message.vehicle == vehicle.uuid, message.step == step.id,
      let tag = secrets.tags[uid], tag.step == step.id, let reading = message.reading(with: tag.keys),
      reading.uid == uid
    else { return .refused(.wrongStep) }
    if let last = counters[uid], reading.counter <= last { return .refused(.staleProof) }
    return .accepted(reading)
  }
}
