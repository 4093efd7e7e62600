import Domain
import StepProtocol

/// Judges proofs of presence by the policy, by the vehicle's steps, and by earlier proofs.
struct ProofCheck: Sendable {
  enum Verdict: Sendable, Equatable {
    /// Good enough. A dynamic tag's reading is then used up, and must be on the medium before anything moves.
    case accepted(DynamicTag.Reading?)
    case refused(RefusalCode, RefusalCause?)
  }

  private var vehicle: Vehicle
  private var policy: Policy
  private var secrets: StepSecrets
  /// Each device's wrong minors, because somebody with enough time could guess 16 bits. Each device has its own count,
  /// so that nobody can lock out another.
  private var wrongMinors = Allowances<VerificationKey>(3, in: 60_000)

  init(vehicle: Vehicle, policy: Policy, secrets: StepSecrets) {
    self.vehicle = vehicle
    self.policy = policy
    self.secrets = secrets
  }

  /// Replaces the rules. The counted wrong minors stay.
  mutating func replace(vehicle: Vehicle, policy: Policy, secrets: StepSecrets) {
    (self.vehicle, self.policy, self.secrets) = (vehicle, policy, secrets)
  }

  /// The checks of section 6 of the protocol that concern the proof, in their order.
  ///
  /// - Parameters:
  ///   - device: the device that sent the proof.
  ///   - heard: the step and the zone at which the vehicle's own adapters hear the device.
  ///   - link: the link on which the command came; nil if it came from the broker.
  ///   - counters: the last accepted reading of each dynamic tag.
  mutating func judge(
    _ move: Command.Move, for step: Step, by device: VerificationKey, heard: (step: StepID, zone: Zone)? = nil,
    on link: LinkOrigin? = nil, counters: [TagUID: UInt32], at time: ControllerTime
  ) -> Verdict {
    let verdict = judge(move, for: step, by: device, counters, heard, at: time)
    // Checked last, and before a tag's reading is used up, so that the rider can try again with it.
    guard case .accepted = verdict, policy.needsHearing else { return verdict }
    if heard?.step != step.id { return .refused(.notHeard, nil) }
    if let link, let least = policy.leastLinkLevel, link.level ?? .min < least {
      return .refused(.notHeard, .weakLink)
    }
    return verdict
  }

  private mutating func judge(
    _ move: Command.Move, for step: Step, by device: VerificationKey, _ counters: [TagUID: UInt32],
    _ heard: (step: StepID, zone: Zone)?, at time: ControllerTime
  ) -> Verdict {
    guard policy.methods.contains(move.proof.method) else { return .refused(.proofNotAccepted, .method) }
    guard policy.acceptsStatic || !isStatic(move.proof, for: step) else {
      return .refused(.proofNotAccepted, .copyable)
    }
    guard move.proofTime <= time.clock else { return .refused(.staleProof, .inFuture) }
    guard time.clock - move.proofTime <= policy.proofAge else { return .refused(.staleProof, .tooOld) }
    switch move.proof {
    case .beacon(let zone, let isLocated, let beacons):
      if let (code, cause) = objection(to: beacons, for: step, by: device, at: time) { return .refused(code, cause) }
      return policy.presence.isNearEnough(zone, isLocated: isLocated) ? .accepted(nil) : .refused(.notNear, nil)
    case .tag(let uid, let content) where DynamicTag.isMeant(by: content):
      return judge(content, of: uid, for: step, counters)
    case .tag(let uid, let content):
      guard step.tags.isEmpty || step.tags.contains(uid) else { return .refused(.wrongStep, .unknownTag) }
      return isLabel(content, of: step) ? .accepted(nil) : .refused(.wrongStep, .wrongLabel)
    case .code(let content):
      return isLabel(content, of: step) ? .accepted(nil) : .refused(.wrongStep, .wrongLabel)
    case .heard:
      // If the policy asks for hearing and another proof, hearing alone is not enough.
      guard !policy.needsHearing else { return .refused(.proofNotAccepted, .method) }
      guard let heard, heard.step == step.id else { return .refused(.notHeard, nil) }
      return policy.presence.isNearEnough(heard.zone, isLocated: true) ? .accepted(nil) : .refused(.notNear, nil)
    }
  }

  /// Whether the proof could come from a copy.
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
  ) -> (RefusalCode, RefusalCause)? {
    // Checked first, so that no answer shows whether a guess was right.
    if secrets.minors[step.id] != nil, wrongMinors.isUsedUp(by: device, at: time.clock) {
      return (.staleProof, .guessesUsedUp)
    }
    guard let own = beacons.first(where: { $0.major == step.major }) else { return (.wrongStep, .beaconMissing) }
    guard !beacons.contains(where: { $0.level > own.level }) else { return (.wrongStep, .otherNearer) }
    if let rotating = secrets.minors[step.id] {
      guard rotating.accepted(at: time.wall).contains(own.minor) else {
        wrongMinors.note(device, at: time.clock)
        return (.staleProof, .wrongMinor)
      }
    } else if let minor = step.minor, own.minor != minor {
      return (.wrongStep, .wrongMinor)
    }
    return nil
  }

  private func judge(
    _ content: String, of uid: TagUID, for step: Step, _ counters: [TagUID: UInt32]
  ) -> Verdict {
    guard let message = try? DynamicTag(parsing: content), message.vehicle == vehicle.uuid, message.step == step.id
    else { return .refused(.wrongStep, .wrongLabel) }
    guard let tag = secrets.tags[uid], tag.step == step.id else { return .refused(.wrongStep, .unknownTag) }
    guard let reading = message.reading(with: tag.keys), reading.uid == uid else {
      return .refused(.wrongStep, .forgedTag)
    }
    if let last = counters[uid], reading.counter <= last { return .refused(.staleProof, .usedReading) }
    return .accepted(reading)
  }
}
