package import Domain
import Encoding

/// What the controller says of a step, signed: the only thing that a rider's program believes.
package struct Statement: Sendable, Equatable {
  package static let epochSize = 16
  package static let challengeSize = 16

  package let vehicle: UUID
  package let step: StepID
  /// The last one known to be reached; `unknown` after a motion that was interrupted.
  package let position: Position
  package let phase: Phase
  /// Why, when the phase is `fault`.
  package let fault: Fault?
  /// Rises by one with every statement of an epoch, over all steps.
  package let sequence: Int64
  /// Random at each start of the controller.
  package let epoch: [UInt8]
  /// Milliseconds since that start, from a clock that is never set.
  package let clock: Int64
  /// In an answer, what it answers. A statement without it tells a change of state.
  package let answer: Answer?

  package struct Answer: Sendable, Equatable {
    package let command: CommandDigest
    /// The command's; nil when a malformed command had none.
    package let nonce: [UInt8]?
    package let outcome: Outcome

    package init(command: CommandDigest, nonce: [UInt8]?, outcome: Outcome) {
      self.command = command
      self.nonce = nonce
      self.outcome = outcome
    }
  }

  package enum Outcome: Sendable, Equatable {
    /// To a `status` request: may be used once, by the same device, for this step, soon.
    case challenge([UInt8])
    /// The command is obeyed; the phase says how far that has come.
    case obeyed
    case refused(RefusalCode)
  }

  package init(
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

  /// The payload on `status`: the signed statement, and beside it a courtesy to simple clients.
  package func payload(signedBy key: SigningKey) -> [UInt8] {
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
        members.append(.init("challenge", .string(Base64URL.encode(challenge))))
      case .obeyed:
        break
      case .refused(let code):
        members.append(
          .init("refusal", ["code": .string(code.rawValue), "retry": .bool(code.retryCanHelp)]))
      }
    }
    return .object(members)
  }

  /// Reads a payload on `status` and checks the controller's signature. The plain fields beside it are not read.
  package init(payload: [UInt8], verifiedBy key: VerificationKey) throws(ProtocolError) {
    guard let signed = try parse(payload, "the status")["statement"]?.string else {
      throw .malformed("statement is missing")
    }
    let object = try SignedObject(parsing: signed, as: .status)
    try object.verify(by: key)

    var members = try Members(object.payload, of: "the statement")
    vehicle = try members.uuid("vehicle")
    step = try members.step("step")
    position = try members.word("position", Position.self)
    phase = try members.word("phase", Phase.self)
    fault = try members.takeIfPresent("fault", "a kind of fault") { $0.string.flatMap(Fault.init(exactly:)) }
    sequence = try members.count("seq")
    epoch = try members.bytes("epoch", count: Statement.epochSize)
    clock = try members.count("clock")
    let command = try members.bytesIfPresent("command", count: CommandDigest.size)
    let nonce = try members.bytesIfPresent("nonce", count: Command.nonceSize)
    let challenge = try members.bytesIfPresent("challenge", count: Statement.challengeSize)
    let refusal = try members.takeIfPresent("refusal", "a code and whether a retry can help") { value in
      value.object?.count == 2 && value["retry"]?.bool != nil
        ? value["code"]?.string.flatMap(RefusalCode.init(exactly:)) : nil
    }
    try members.end()
    guard (fault != nil) == (phase == .fault) else { throw .malformed("fault and phase do not agree") }

    guard let command else {
      guard nonce == nil, challenge == nil, refusal == nil else { throw .malformed("an answer without its command") }
      answer = nil
      return
    }
    switch (challenge, refusal) {
    case (let challenge?, nil): answer = Answer(command: command.digest, nonce: nonce, outcome: .challenge(challenge))
    case (nil, let code?): answer = Answer(command: command.digest, nonce: nonce, outcome: .refused(code))
    case (nil, nil): answer = Answer(command: command.digest, nonce: nonce, outcome: .obeyed)
    case (_?, _?): throw .malformed("both a challenge and a refusal")
    }
  }
}

extension [UInt8] {
  fileprivate var digest: CommandDigest { CommandDigest(self) }
}
