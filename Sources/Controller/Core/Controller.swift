package import Domain
package import StepProtocol
import SystemIO

/// The vehicle's side of the protocol: takes messages and the passing of time, gives messages, moves the servo.
///
/// It knows no network and no clock of its own, so that a test can be at any hour and lose any message. One thread.
package final class Controller {
  /// A payload to be published on a step's `status`.
  package struct Publication: Sendable, Equatable {
    package let step: StepID
    package let payload: [UInt8]
    package let retain: Bool
  }

  /// The controller's private keys, and the public one of whoever signs tokens.
  package struct Keys: Sendable {
    package let decryption: DecryptionKey
    package let signing: SigningKey
    package let operatorKey: VerificationKey

    package init(decryption: DecryptionKey, signing: SigningKey, operatorKey: VerificationKey) {
      self.decryption = decryption
      self.signing = signing
      self.operatorKey = operatorKey
    }
  }

  /// Something to be written in the log: who asked what, and what became of it.
  package enum Event: Sendable, Equatable {
    case unauthenticated(StepID, ProtocolError)
    case refused(StepID, RefusalCode, rider: String)
    case answered(StepID, rider: String)
    case began(StepID, Command.Move.Target, rider: String)
    case ended(StepID, Position)
    case failed(StepID, Fault, String)
    case notJournaled(StepID, String)
  }

  /// For how long before `nbf` a token is accepted, seconds: clocks differ.
  static let leeway: Int64 = 30

  private let vehicle: Vehicle
  private let keys: Keys
  private let profile: MotionProfile
  private var journal: Journal
  private var servo: any ServoDriver
  private var session: Session
  private var proofs: ProofCheck
  private let presence: PresencePolicy
  private var sequence: Int64 = 0
  private var steps: [StepID: State] = [:]
  private let record: (Event) -> Void

  private struct State {
    var position: Position
    var fault: Fault?
    var motion: Motion?
    /// What the motion obeys, to be answered when it ends.
    var command: (digest: CommandDigest, nonce: [UInt8])?

    var phase: Phase { motion != nil ? .moving : fault != nil ? .fault : .idle }
  }

  package init(
    vehicle: Vehicle, keys: Keys, policy: Policy, secrets: StepSecrets = StepSecrets(), profile: MotionProfile,
    journal: consuming Journal, servo: any ServoDriver, epoch: [UInt8] = randomBytes(Statement.epochSize),
    record: @escaping (Event) -> Void
  ) {
    self.vehicle = vehicle
    self.keys = keys
    presence = policy.presence
    proofs = ProofCheck(vehicle: vehicle, policy: policy, secrets: secrets)
    self.profile = profile
    self.servo = servo
    self.record = record
    session = Session(epoch: epoch, used: journal.entries.values.compactMap(\.challenge))
    for step in vehicle.steps {
      guard let entry = journal.entries[step.id] else { continue }
      // A motion without an end: it is reported, and never taken up again.
      steps[step.id] =
        entry.motion == nil
        ? State(position: entry.position, fault: entry.fault) : State(position: .unknown, fault: .interrupted)
    }
    self.journal = journal
  }

  /// The state of every step, to be published at the start and whenever a broker may have forgotten it.
  package func announcements(at time: ControllerTime) -> [Publication] {
    var publications: [Publication] = []
    for step in vehicle.steps { publications.append(publish(step.id, at: time, answer: nil)) }
    return publications
  }

  /// Whether any step is moving, and so `advance` is to be called every `MotionProfile.tick`.
  package var isMoving: Bool { steps.values.contains { $0.motion != nil } }

  // MARK: - Commands

  /// Judges a payload that came on a step's `set_position`, and begins to move the step if it stands every check.
  ///
  /// - Parameters:
  ///   - step: whose topic it came on.
  ///   - retained: the message's retain flag.
  ///   - clock: what the time is; asked once more when the journal was written, which can take long.
  package func receive(
    _ payload: [UInt8], on step: StepID, retained: Bool, at clock: () -> ControllerTime
  ) -> [Publication] {
    guard let subject = vehicle.step(step) else { return [] }
    let time = clock()
    let digest = CommandDigest(of: payload)
    switch ReceivedCommand(payload, controller: keys.decryption, operatorKey: keys.operatorKey) {
    case .unauthenticated(let error):
      record(.unauthenticated(step, error))
      return []
    case .malformed(_, let token, let nonce):
      return refuse(.malformed, step, digest, nonce, token, at: time)
    case .command(let command, let token):
      if let code = objection(to: command, digest, token, on: subject, retained: retained, at: time) {
        return refuse(code, step, digest, command.nonce, token, at: time)
      }
      switch command.request {
      case .status:
        record(.answered(step, rider: token.subject))
        let challenge = Statement.Challenge(
          session.challenge(for: token.device, step, at: time.clock), policy: presence)
        return [answer(step, digest, command.nonce, .challenge(challenge), at: time)]
      case .move(let move):
        switch proofs.judge(move, for: subject, by: token.device, counters: journal.counters, at: time) {
        case .refused(let code):
          return refuse(code, step, digest, command.nonce, token, at: time)
        case .accepted(let reading):
          return begin(move, reading, step, digest, command.nonce, token, at: clock)
        }
      }
    }
  }

  /// The checks of the protocol's section 6 up to the proof, in their order.
  private func objection(
    to command: Command, _ digest: CommandDigest, _ token: Token, on step: Step, retained: Bool,
    at time: ControllerTime
  ) -> RefusalCode? {
    // Used up whatever is wrong with the command: one that was refused is not obeyed when it is delivered again.
    let isNew = session.admit(digest)
    var staleness: RefusalCode?
    if case .move(let move) = command.request {
      staleness = session.redeem(move, by: token.device, for: step.id, at: time.clock)
    }
    if retained { return .retained }
    guard token.vehicle == vehicle.uuid, command.vehicle == vehicle.uuid else { return .wrongVehicle }
    guard command.step == step.id, token.steps.contains(step.id) else { return .wrongStep }
    if time.wall + Controller.leeway < token.notBefore { return .tokenNotYetValid }
    if time.wall >= token.expires { return .tokenExpired }
    return isNew ? staleness : .replayed
  }

  private func refuse(
    _ code: RefusalCode, _ step: StepID, _ digest: CommandDigest, _ nonce: [UInt8]?, _ token: Token,
    at time: ControllerTime
  ) -> [Publication] {
    record(.refused(step, code, rider: token.subject))
    return [answer(step, digest, nonce, .refused(Refusal(code)), at: time)]
  }

  // MARK: - Motion

  /// - Parameter reading: of the dynamic tag that is the proof: used up from here on, whatever becomes of the command.
  private func begin(
    _ move: Command.Move, _ reading: DynamicTag.Reading?, _ step: StepID, _ digest: CommandDigest, _ nonce: [UInt8],
    _ token: Token, at clock: () -> ControllerTime
  ) -> [Publication] {
    guard let state = steps[step] else { return [] }
    var time = clock()
    if let reading {
      do throws(SystemError) { try journal.record(reading) } catch {
        record(.notJournaled(step, error.description))
        return refuse(.unavailable, step, digest, nonce, token, at: time)
      }
    }
    if state.motion != nil { return refuse(.busy, step, digest, nonce, token, at: time) }
    if state.fault == nil, state.position == move.target.position {
      record(.answered(step, rider: token.subject))
      return [answer(step, digest, nonce, .obeyed, at: time)]
    }

    // On the medium first: from here on a crash leaves a motion without an end, and this challenge used.
    let entry = Journal.Entry(position: state.position, fault: state.fault, challenge: move.challenge)
    do throws(SystemError) {
      var begun = entry
      begun.motion = move.target
      try journal.record(begun, for: step)
    } catch {
      record(.notJournaled(step, error.description))
      return refuse(.unavailable, step, digest, nonce, token, at: time)
    }
    time = clock()
    guard time.clock < move.deadline else {
      write(entry, for: step)
      return refuse(.expired, step, digest, nonce, token, at: time)
    }
    do throws(ServoError) {
      try servo.begin(step, from: state.position, to: move.target.position)
    } catch {
      record(.failed(step, .driver, error.description))
      write(entry, for: step)
      return refuse(error == .obstructed ? .obstructed : .unavailable, step, digest, nonce, token, at: time)
    }
    record(.began(step, move.target, rider: token.subject))
    steps[step] = State(
      position: state.position, fault: nil,
      motion: Motion(origin: state.position, target: move.target, began: time.clock), command: (digest, nonce))
    return [
      answer(step, digest, nonce, .obeyed, at: time),
      publish(step, at: time, answer: nil),
    ]
  }

  /// Moves every step that is under way to where it is to be now, and ends the motions that are done.
  package func advance(to time: ControllerTime) -> [Publication] {
    var publications: [Publication] = []
    for step in vehicle.steps.map(\.id) {
      guard let motion = steps[step]?.motion else { continue }
      var end: (position: Position, fault: Fault?)?
      do throws(ServoError) {
        switch motion.state(at: time.clock, profile) {
        case .moving(let place):
          try servo.move(step, to: place)
        case .ended:
          try servo.move(step, to: motion.target.extension)
          end = (motion.target.position, nil)
          record(.ended(step, motion.target.position))
        case .overdue:
          end = (.unknown, .timeout)
          record(.failed(step, .timeout, "the motion took longer than \(profile.limit) ms"))
        }
      } catch {
        let fault: Fault = error == .obstructed ? .obstructed : .driver
        end = (.unknown, fault)
        record(.failed(step, fault, error.description))
      }
      if let end { publications += finish(step, end.position, end.fault, at: time) }
    }
    return publications
  }

  private func finish(
    _ step: StepID, _ position: Position, _ fault: Fault?, at time: ControllerTime
  ) -> [Publication] {
    if fault != nil { servo.release(step) }
    let command = steps[step]?.command
    steps[step] = State(position: position, fault: fault)
    write(
      Journal.Entry(position: position, fault: fault, challenge: journal.entries[step]?.challenge), for: step)
    var publications = [publish(step, at: time, answer: nil)]
    if let command { publications.append(answer(step, command.digest, command.nonce, .obeyed, at: time)) }
    return publications
  }

  /// A journal that cannot be written at the end of a motion still says that it began, which errs on the safe side.
  private func write(_ entry: Journal.Entry, for step: StepID) {
    do throws(SystemError) { try journal.record(entry, for: step) } catch {
      record(.notJournaled(step, error.description))
    }
  }

  // MARK: - Statements

  private func answer(
    _ step: StepID, _ digest: CommandDigest, _ nonce: [UInt8]?, _ outcome: Statement.Outcome,
    at time: ControllerTime
  ) -> Publication {
    publish(step, at: time, answer: .init(command: digest, nonce: nonce, outcome: outcome))
  }

  /// A change of state is retained for whoever comes later; an answer is for one rider, now.
  private func publish(
    _ step: StepID, at time: ControllerTime, answer: Statement.Answer?
  ) -> Publication {
    sequence += 1
    let state = steps[step] ?? State(position: .unknown)
    let statement = Statement(
      vehicle: vehicle.uuid, step: step, position: state.position, phase: state.phase,
      fault: state.phase == .fault ? state.fault : nil, sequence: sequence, epoch: session.epoch, clock: time.clock,
      answer: answer)
    return Publication(step: step, payload: statement.payload(signedBy: keys.signing), retain: answer == nil)
  }
}
