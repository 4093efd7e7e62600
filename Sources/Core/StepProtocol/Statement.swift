public import Domain
import Encoding

/// What the controller says about a step, signed. A rider's program believes nothing else.
public struct Statement: Sendable, Equatable {
  /// In bytes.
  public static let epochSize = 16
  /// In bytes.
  public static let challengeSize = 16

  public let vehicle: UUID
  public let step: StepID
  /// The last position known to be reached; `unknown` after an interrupted motion.
  public let position: Position
  /// What the step is doing.
  public let phase: Phase
  /// Why the step is at fault; nil unless the phase is `fault`.
  public let fault: Fault?
  /// Increases by one with every statement of an epoch, for all steps together.
  public let sequence: Int64
  /// Random at each start of the controller.
  public let epoch: [UInt8]
  /// Milliseconds since that start, on a monotonic clock.
  public let clock: Int64
  /// What the statement answers; nil in a statement that reports a change of state.
  public let answer: Answer?

  /// The command that a statement answers, and the outcome.
  public struct Answer: Sendable, Equatable {
    /// Which command it answers.
    public let command: CommandDigest
    /// The command's nonce; nil if a malformed command had none.
    public let nonce: [UInt8]?
    /// What the controller did with the command.
    public let outcome: Outcome

    public init(command: CommandDigest, nonce: [UInt8]?, outcome: Outcome) {
      self.command = command
      self.nonce = nonce
      self.outcome = outcome
    }

    /// Why the controller did not obey; nil if it did.
    public var refusal: Refusal? { if case .refused(let refusal) = outcome { refusal } else { nil } }
  }

  /// The answer to a `status` request.
  public struct Challenge: Sendable, Equatable {
    /// Can be used once, by the same device, for this step, within a short time.
    public let bytes: [UInt8]
    /// Which proofs this rider's command for this step may use.
    public let policy: PresencePolicy
    /// How the vehicle asks the device to call, and at which step it hears the device so far.
    public let call: CallRequest?
    /// What the vehicle's guard knows about the road beside the step; nil if there is no guard.
    public let watch: Watch?
    /// The controller's description of itself, if the request asked for it.
    public let about: About?

    public init(
      _ bytes: [UInt8], policy: PresencePolicy, call: CallRequest? = nil, watch: Watch? = nil, about: About? = nil
    ) {
      self.bytes = bytes
      self.policy = policy
      self.call = call
      self.watch = watch
      self.about = about
    }
  }

  /// What became of a command.
  public enum Outcome: Sendable, Equatable {
    case challenge(Challenge)
    /// The command is obeyed; the phase tells its progress.
    case obeyed
    case refused(Refusal)
  }

  public init(
    vehicle: UUID, step: StepID, position: Position, phase: Phase, fault: Fault?, sequence: Int64, epoch: [UInt8],
    clock: Int64, answer: Answer?
  ) {
    self.vehicle = vehicle
    self.step = step
    self.position = position
    self.phase = phase
    self.fault = fault
    self.sequence = sequence
    self.epoch = epoch
    self.clock = clock
    self.answer = answer
  }

  /// The payload on `status`: the signed statement, and next to it an unsigned copy of the state for simple clients.
  public func payload(signedBy key: SigningKey) -> [UInt8] {
    let signed = SignedObject.sign(claims, as: .status, by: key)
    return JSON.object(state + [.init("statement", .string(signed))]).bytes
  }

  private var state: [JSON.Member] {
    var members: [JSON.Member] = [
      .init("position", .string(position.rawValue)), .init("phase", .string(phase.rawValue)),
    ]
    if let fault { members.append(.init("fault", .string(fault.rawValue))) }
    return members
  }

  private var claims: JSON {
    var members: [JSON.Member] = [
      .init("vehicle", .string(vehicle.description)), .init("step", .string(step.description)),
    ]
    members += state
    members += [
      .init("seq", .integer(sequence)), .init("epoch", .string(Base64URL.encode(epoch))),
      .init("clock", .integer(clock)),
    ]
    if let answer {
      members.append(.init("command", .string(answer.command.text)))
      if let nonce = answer.nonce { members.append(.init("nonce", .string(Base64URL.encode(nonce)))) }
      switch answer.outcome {
      case .challenge(let challenge):
        members.append(.init("challenge", .string(Base64URL.encode(challenge.bytes))))
        members.append(.init("policy", challenge.policy.json))
        var extensions: [JSON.Member] = []
        if let call = challenge.call { extensions.append(.init("call", call.json)) }
        if let watch = challenge.watch { extensions.append(.init("watch", .string(watch.rawValue))) }
        if let about = challenge.about { extensions.append(.init("about", about.json)) }
        if !extensions.isEmpty { members.append(.init("ext", .object(extensions))) }
      case .obeyed:
        break
      case .refused(let refusal):
        members.append(.init("refusal", refusal.json))
      }
    }
    return .object(members)
  }

  /// Reads a payload on `status` and verifies the controller's signature. The unsigned copy of the state is ignored.
  public init(payload: [UInt8], verifiedBy key: VerificationKey) throws(ProtocolError) {
    guard let signed = try parse(payload, "the status")["statement"]?.string else {
      throw .malformed("statement is missing")
    }
    let object = try SignedObject(parsing: signed, as: .status)
    try object.verify(by: key)

    var members = try ObjectReader(object.payload, of: "the statement")
    vehicle = try members.uuid("vehicle")
    step = try members.step("step")
    position = try members.word("position", Position.self)
    phase = try members.openWord("phase", Phase.self)
    fault = try members.openWordIfPresent("fault", Fault.self)
    sequence = try members.count("seq")
    epoch = try members.bytes("epoch", count: Statement.epochSize)
    clock = try members.count("clock")
    let command = try members.bytesIfPresent("command", count: CommandDigest.size)
    let nonce = try members.bytesIfPresent("nonce", count: Command.nonceSize)
    let challenge = try members.bytesIfPresent("challenge", count: Statement.challengeSize)
    let policy = try members.objectIfPresent("policy").map(PresencePolicy.init)
    let refusal = try members.objectIfPresent("refusal").map(Refusal.init)
    let call = try members.extensions?["call"].map(CallRequest.init)
    let watch = try members.extensionWord("watch", Watch.self)
    let about = try members.extensions?["about"].map(About.init)
    try members.end()
    switch phase {
    case .fault: guard fault != nil else { throw .malformed("a fault without its kind") }
    case .idle, .moving: guard fault == nil else { throw .malformed("fault and phase do not agree") }
    case .other: break
    }
    guard (policy == nil) == (challenge == nil) else { throw .malformed("challenge and policy go together") }
    guard call == nil || challenge != nil else { throw .malformed("a call without a challenge") }
    guard watch == nil || challenge != nil else { throw .malformed("watch without a challenge") }
    guard about == nil || challenge != nil else { throw .malformed("about without a challenge") }

    guard let command else {
      guard nonce == nil, challenge == nil, refusal == nil else { throw .malformed("an answer without its command") }
      answer = nil
      return
    }
    let outcome: Outcome
    switch (challenge, policy, refusal) {
    case (let challenge?, let policy?, nil):
      outcome = .challenge(Challenge(challenge, policy: policy, call: call, watch: watch, about: about))
    case (nil, nil, let refusal?): outcome = .refused(refusal)
    case (nil, nil, nil): outcome = .obeyed
    default: throw .malformed("both a challenge and a refusal")
    }
    answer = Answer(command: CommandDigest(command), nonce: nonce, outcome: outcome)
  }
}

extension Refusal {
  fileprivate init(_ value: JSON) throws(ProtocolError) {
    var members = try ObjectReader(value, of: "refusal")
    let oncoming = try members.extensions?["oncoming"].map(Oncoming.init)
    self.init(
      try members.openWord("code", RefusalCode.self), retryCanHelp: try members.bool("retry"), oncoming: oncoming)
    try members.end()
  }

  fileprivate var json: JSON {
    var members: [JSON.Member] = [.init("code", .string(code.rawValue)), .init("retry", .bool(retryCanHelp))]
    if let oncoming {
      members.append(
        .init(
          "ext",
          ["oncoming": ["category": .string(oncoming.category), "arrival": .integer(oncoming.arrival)]]))
    }
    return .object(members)
  }
}

extension Oncoming {
  fileprivate init(_ value: JSON) throws(ProtocolError) {
    var members = try ObjectReader(value, of: "oncoming")
    let category = try members.take("category", "a word") { $0.string.flatMap { isWord($0) ? $0 : nil } }
    self.init(category: category, arrival: try members.count("arrival"))
    try members.end()
  }
}

extension PresencePolicy {
  fileprivate var json: JSON {
    var members: [JSON.Member] = [
      .init("proofs", .array(ProofMethod.allCases.filter(methods.contains).map { .string($0.rawValue) })),
      .init("zone", .string(zone.rawValue)), .init("static", .bool(acceptsStatic)),
    ]
    if needsHearing { members.append(.init("ext", ["both": true])) }
    return .object(members)
  }

  /// Unknown methods are dropped, because this version cannot use them. An unknown zone counts as `immediate`, the
  /// strictest.
  fileprivate init(_ value: JSON) throws(ProtocolError) {
    var members = try ObjectReader(value, of: "policy")
    let methods = try members.take("proofs", "a list of words") { value -> [ProofMethod]? in
      let words = value.array?.compactMap(\.string)
      guard let words, words.count == value.array?.count, words.allSatisfy(isWord) else { return nil }
      return words.compactMap(ProofMethod.init(exactly:))
    }
    let zone = try members.take("zone", "a word") { $0.string.flatMap { isWord($0) ? $0 : nil } }
    let both = members.extensions?["both"]
    guard both == nil || both?.bool != nil else { throw .malformed("both is not true or false") }
    self.init(
      methods: Set(methods), zone: identical(zone, Zone.near.rawValue) ? .near : .immediate,
      acceptsStatic: try members.bool("static"), needsHearing: both?.bool == true)
    try members.end()
  }
}
