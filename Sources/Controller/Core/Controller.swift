package import Domain
package import StepProtocol

/// The vehicle's side of the protocol, as a state machine: takes inputs and the time of each, gives effects.
///
/// It does no I/O, waits for nothing and asks no clock: its shell performs the effects in their order and brings back
/// what became of them. So one step moves on while another's journal or servo takes its time, and a test can be at any
/// hour and lose any message.
package struct Controller {
  package enum Input: Sendable {
    case request(Request)
    case journal(JournalReport)
    case servo(ServoReport)
    /// An input changed, or was read for the first time.
    case sensed(SensorReport)
    /// Due every `MotionProfile.tick` while `needsTicks`.
    case tick
    /// The state of every step is to be published: at the start, and whenever a broker may have forgotten it.
    case connected
    /// The program is to end: from here on nothing begins.
    case ending
  }

  package enum Effect: Sendable, Equatable {
    case publish(Publication)
    case commit(Journal, CommitTicket)
    case servo(ServoOrder)
    case record(Event)
  }

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

  /// Something for the log: who asked what, and what became of it.
  package enum Event: Sendable, Equatable {
    case unauthenticated(StepID, ProtocolError)
    case refused(StepID, RefusalCode, rider: String)
    case answered(StepID, rider: String)
    case began(StepID, Command.Move.Target, rider: String)
    case ended(StepID, Position)
    case failed(StepID, Fault, String)
    case notJournaled(StepID, String)
  }

  private struct State {
    var position: Position
    var fault: Fault?
    var activity = Activity.resting
    /// The order whose report is awaited.
    var order = 0
    /// The order to stop driving the servo, until it is carried out.
    var release: Int?

    var phase: Phase {
      if case .moving = activity { return .moving }
      return fault != nil ? .fault : .idle
    }
  }

  private enum Activity {
    case resting
    /// The journal that says that the motion begins is on its way to the medium.
    case committing
    /// The servo's output is being set up.
    case preparing(Undertaking)
    case moving(Motion)
  }

  /// What a journal is written for.
  private enum Purpose {
    /// A dynamic tag's reading is used up; then the step's state is looked at.
    case reading(DynamicTag.Reading, Undertaking)
    case motion(Undertaking)
    /// Nobody waits for it. If it fails, the medium still says that a motion began, which errs on the safe side.
    case note(StepID)
  }

  /// For how long before `nbf` a token is accepted, seconds: clocks differ.
  static let leeway: Int64 = 30

  private let vehicle: Vehicle
  private let keys: Keys
  private let profile: MotionProfile
  private let motionGuard: any MotionGuard
  private var session: Session
  private var proofs: ProofCheck
  private let presence: PresencePolicy
  private var steps: [StepID: State] = [:]
  /// What was written, or is on its way to the medium.
  private var journal: Journal
  /// The counters of tags that are known to be on the medium.
  private var counters: [TagUID: UInt32]
  private var commits: [CommitTicket: Purpose] = [:]
  private var lastTicket: CommitTicket = 0
  private var lastOrder = 0
  private var sequence: Int64 = 0
  private var isEnding = false
  private var now: ControllerTime
  private var effects: [Effect] = []

  /// - Parameter journal: with an entry for each step.
  package init(
    vehicle: Vehicle, keys: Keys, policy: Policy, secrets: StepSecrets = StepSecrets(), profile: MotionProfile,
    inputs: Inputs = Inputs(), journal: Journal, motionGuard: any MotionGuard = NoGuard(),
    epoch: [UInt8] = randomBytes(Statement.epochSize)
  ) {
    self.vehicle = vehicle
    self.keys = keys
    self.profile = profile
    self.journal = journal
    counters = journal.counters
    self.motionGuard = motionGuard
    presence = policy.presence
    proofs = ProofCheck(vehicle: vehicle, policy: policy, secrets: secrets)
    session = Session(epoch: epoch, used: journal.entries.values.compactMap(\.challenge))
    now = ControllerTime(clock: 0, wall: 0)
    for step in vehicle.steps {
      let entry = journal.entries[step.id] ?? .lost
      // A motion without an end: it is reported, and never taken up again.
      steps[step.id] =
        entry.motion == nil
        ? State(position: entry.position, fault: entry.fault) : State(position: .unknown, fault: .interrupted)
    }
  }

  package var isMoving: Bool { steps.values.contains { $0.phase == .moving } }

  /// Whether a step moves, or its servo is being set up.
  package var needsTicks: Bool {
    steps.values.contains {
      switch $0.activity {
      case .resting, .committing: false
      case .preparing, .moving: true
      }
    }
  }

  /// Whether nothing moves or is about to, every journal was written or has failed, and every servo that was to be let
  /// go is.
  package var isAtRest: Bool {
    !needsTicks && commits.isEmpty && steps.values.allSatisfy { $0.release == nil }
  }

  /// Takes an input, and says what is to be done about it, in this order.
  package mutating func handle(_ input: Input, at time: ControllerTime) -> [Effect] {
    now = time
    effects = []
    switch input {
    case .request(let request): receive(request)
    case .journal(.committed(let ticket)): proceed(from: commits.removeValue(forKey: ticket))
    case .journal(.failed(let ticket, let reason)): giveUp(commits.removeValue(forKey: ticket), reason)
    case .servo(let report): take(report)
    case .sensed: break
    case .tick: for step in vehicle.steps { advance(step.id) }
    case .connected: for step in vehicle.steps { publish(step.id) }
    case .ending: isEnding = true
    }
    return effects
  }

  // MARK: - Judging a request

  private mutating func receive(_ request: Request) {
    guard let step = vehicle.step(request.step) else { return }
    let digest = CommandDigest(of: request.payload)
    switch ReceivedCommand(request.payload, controller: keys.decryption, operatorKey: keys.operatorKey) {
    case .unauthenticated(let error):
      record(.unauthenticated(step.id, error))
    case .malformed(_, let token, let nonce):
      refuse(Sender(request, digest, nonce: nonce, token), Refusal(.malformed))
    case .command(let command, let token):
      let sender = Sender(request, digest, nonce: command.nonce, token)
      if let code = objection(to: command, sender, token, isRetained: request.isRetained) {
        return refuse(sender, Refusal(code))
      }
      switch command.request {
      case .status:
        record(.answered(step.id, rider: sender.rider))
        let challenge = session.challenge(for: sender.device, step.id, at: now.clock)
        answer(sender, .challenge(Statement.Challenge(challenge, policy: presence)))
      case .stop:
        refuse(sender, Refusal(.unavailable))
      case .move(let move):
        judge(Undertaking(move: move, sender: sender), for: step)
      }
    }
  }

  /// The checks of the protocol's section 6 up to the proof, in their order.
  private mutating func objection(
    to command: Command, _ sender: Sender, _ token: Token, isRetained: Bool
  ) -> RefusalCode? {
    // Used up whatever is wrong with the command: one that was refused is not obeyed when it is delivered again.
    let isNew = session.admit(sender.command)
    var staleness: RefusalCode?
    if case .move(let move) = command.request {
      staleness = session.redeem(move, by: sender.device, for: sender.step, at: now.clock)
    }
    if isRetained { return .retained }
    guard token.vehicle == vehicle.uuid, command.vehicle == vehicle.uuid else { return .wrongVehicle }
    guard command.step == sender.step, token.steps.contains(sender.step) else { return .wrongStep }
    if now.wall + Controller.leeway < token.notBefore { return .tokenNotYetValid }
    if now.wall >= token.expires { return .tokenExpired }
    return isNew ? staleness : .replayed
  }

  private mutating func judge(_ undertaking: Undertaking, for step: Step) {
    let sender = undertaking.sender
    switch proofs.judge(undertaking.move, for: step, by: sender.device, counters: journal.counters, at: now) {
    case .refused(let code):
      refuse(sender, Refusal(code))
    case .accepted(nil):
      undertake(undertaking)
    case .accepted(let reading?):
      journal.counters[reading.uid] = reading.counter
      commit(.reading(reading, undertaking))
    }
  }

  // MARK: - Before a motion

  /// Looks at the step's state; where it is to move, writes that first.
  private mutating func undertake(_ undertaking: Undertaking) {
    let (step, target) = (undertaking.sender.step, undertaking.move.target)
    // A tag's reading took time to be written: a stop or a newer command may have come meanwhile.
    guard session.stands(undertaking.move) else { return refuse(undertaking.sender, Refusal(.expired)) }
    guard let state = steps[step], case .resting = state.activity else {
      return refuse(undertaking.sender, Refusal(.busy))
    }
    if state.fault == nil, state.position == target.position {
      record(.answered(step, rider: undertaking.sender.rider))
      return answer(undertaking.sender, .obeyed)
    }
    // On the medium first: from here on a crash leaves a motion without an end, and this challenge used.
    journal.entries[step] = Journal.Entry(
      position: state.position, motion: target, fault: state.fault, challenge: undertaking.move.challenge)
    steps[step]?.activity = .committing
    commit(.motion(undertaking))
  }

  private mutating func commit(_ purpose: Purpose) {
    lastTicket += 1
    commits[lastTicket] = purpose
    effects.append(.commit(journal, lastTicket))
  }

  /// The journal is on the medium.
  private mutating func proceed(from purpose: Purpose?) {
    switch purpose {
    case .reading(let reading, let undertaking)?:
      counters[reading.uid] = reading.counter
      undertake(undertaking)
    case .motion(let undertaking)?:
      if let code = hindrance(to: undertaking) { return abandon(undertaking, Refusal(code)) }
      let step = undertaking.sender.step
      steps[step]?.activity = .preparing(undertaking)
      order(step, .prepare(from: steps[step]?.position ?? .unknown, to: undertaking.move.target.position))
    case .note?, nil:
      break
    }
  }

  /// The journal is not on the medium.
  private mutating func giveUp(_ purpose: Purpose?, _ reason: String) {
    switch purpose {
    case .reading(let reading, let undertaking)?:
      record(.notJournaled(undertaking.sender.step, reason))
      // Unless a later reading of the same tag is on its way.
      if journal.counters[reading.uid] == reading.counter { journal.counters[reading.uid] = counters[reading.uid] }
      refuse(undertaking.sender, Refusal(.unavailable))
    case .motion(let undertaking)?:
      record(.notJournaled(undertaking.sender.step, reason))
      abandon(undertaking, Refusal(.unavailable))
    case .note(let step)?:
      record(.notJournaled(step, reason))
    case nil:
      break
    }
  }

  /// What has come up since the command was judged.
  private func hindrance(to undertaking: Undertaking) -> RefusalCode? {
    if isEnding { return .unavailable }
    return now.clock < undertaking.move.deadline ? nil : .expired
  }

  /// Nothing began, and nothing is to say that it did.
  private mutating func abandon(_ undertaking: Undertaking, _ refusal: Refusal) {
    let step = undertaking.sender.step
    steps[step]?.activity = .resting
    writeState(of: step)
    refuse(undertaking.sender, refusal)
  }

  /// Writes where a step at rest stands.
  private mutating func writeState(of step: StepID) {
    guard let state = steps[step] else { return }
    journal.entries[step] = Journal.Entry(
      position: state.position, fault: state.fault, challenge: journal.entries[step]?.challenge)
    commit(.note(step))
  }

  // MARK: - Motion

  private mutating func take(_ report: ServoReport) {
    guard let state = steps[report.step] else { return }
    if report.number == state.release { return released(report) }
    // A report on what was given up meanwhile comes too late.
    guard report.number == state.order else { return }
    switch (state.activity, report.outcome) {
    case (.preparing(let undertaking), .ready(let place)):
      begin(undertaking, from: place ?? state.position.extension)
    case (.preparing(let undertaking), .failed(let error)):
      record(.failed(report.step, error.fault, error.description))
      abandon(undertaking, Refusal(error == .obstructed ? .obstructed : .unavailable))
    case (.moving(var motion), .done):
      motion.ordered = nil
      steps[report.step]?.activity = .moving(motion)
      guard motion.isAtEnd else { return }
      let position = motion.undertaking.move.target.position
      record(.ended(report.step, position))
      finish(motion, position, nil)
    case (.moving(let motion), .failed(let error)):
      fail(motion, error.fault, error.description)
    case (.preparing, .done), (.moving, .ready), (.resting, _), (.committing, _):
      break
    }
  }

  private mutating func begin(_ undertaking: Undertaking, from place: Double?) {
    let sender = undertaking.sender
    if let code = hindrance(to: undertaking) { return abandon(undertaking, Refusal(code)) }
    let motion = Motion(undertaking, from: place, at: now.clock, profile)
    switch clearance(for: motion, hasBegun: false) {
    case .go: break
    case .hold(let hindrance), .stop(let hindrance):
      record(.failed(sender.step, hindrance.fault, hindrance.description))
      return abandon(undertaking, hindrance.refusal)
    }
    steps[sender.step]?.fault = nil
    steps[sender.step]?.activity = .moving(motion)
    record(.began(sender.step, undertaking.move.target, rider: sender.rider))
    answer(sender, .obeyed)
    publish(sender.step)
  }

  private func clearance(for motion: Motion, hasBegun: Bool) -> Clearance {
    let undertaking = motion.undertaking
    return motionGuard.clearance(
      for: GuardedMotion(
        step: undertaking.sender.step, target: undertaking.move.target, place: motion.place, hasBegun: hasBegun),
      at: now)
  }

  /// A tick has passed: moves a step one stride further, if the last one was taken and nothing is in the way.
  private mutating func advance(_ step: StepID) {
    if case .preparing(let undertaking)? = steps[step]?.activity { return keepWaiting(for: undertaking) }
    guard case .moving(var motion)? = steps[step]?.activity else { return }
    let gap = motion.turn(at: now.clock)
    if let (fault, reason) = motion.failure(at: now.clock, gap: gap) { return fail(motion, fault, reason) }
    switch clearance(for: motion, hasBegun: true) {
    case .stop(let hindrance):
      return fail(motion, hindrance.fault, hindrance.description)
    case .go where motion.ordered == nil:
      if let action = motion.advance(by: gap) {
        motion.ordered = now.clock
        order(step, action)
      }
    case .go, .hold:
      break
    }
    steps[step]?.activity = .moving(motion)
  }

  private mutating func keepWaiting(for undertaking: Undertaking) {
    guard let code = hindrance(to: undertaking) else { return }
    let step = undertaking.sender.step
    if code == .expired { record(.failed(step, .driver, "the servo was not ready before the command's deadline")) }
    // What it says later comes too late.
    steps[step]?.order = 0
    abandon(undertaking, Refusal(code))
  }

  private mutating func fail(_ motion: Motion, _ fault: Fault, _ reason: String) {
    let step = motion.undertaking.sender.step
    record(.failed(step, fault, reason))
    // After a time-out neither servo nor step is to blame: it is held where it is, so that whoever stands on it does
    // not fall.
    if fault != .timeout {
      order(step, .release)
      steps[step]?.release = lastOrder
    }
    finish(motion, .unknown, fault)
  }

  /// Tells the end at once, and does not wait for the journal: after a crash in between, the journal says that the motion
  /// was interrupted, which errs on the safe side.
  private mutating func finish(_ motion: Motion, _ position: Position, _ fault: Fault?) {
    let sender = motion.undertaking.sender
    steps[sender.step]?.position = position
    steps[sender.step]?.fault = fault
    steps[sender.step]?.activity = .resting
    writeState(of: sender.step)
    publish(sender.step)
    answer(sender, .obeyed)
  }

  /// A servo that cannot be let go drives on, and nobody would know.
  private mutating func released(_ report: ServoReport) {
    steps[report.step]?.release = nil
    guard case .failed(let error) = report.outcome else { return }
    record(.failed(report.step, .driver, "the servo is still driven: \(error)"))
    guard case .resting? = steps[report.step]?.activity else { return }
    steps[report.step]?.fault = .driver
    writeState(of: report.step)
    publish(report.step)
  }

  private mutating func order(_ step: StepID, _ action: ServoOrder.Action) {
    lastOrder += 1
    steps[step]?.order = lastOrder
    effects.append(.servo(ServoOrder(step: step, number: lastOrder, action: action)))
  }

  // MARK: - Statements

  private mutating func refuse(_ sender: Sender, _ refusal: Refusal) {
    record(.refused(sender.step, refusal.code, rider: sender.rider))
    answer(sender, .refused(refusal))
  }

  private mutating func answer(_ sender: Sender, _ outcome: Statement.Outcome) {
    publish(sender.step, .init(command: sender.command, nonce: sender.nonce, outcome: outcome))
  }

  /// A change of state is retained for whoever comes later; an answer is for one rider, now.
  private mutating func publish(_ step: StepID, _ answer: Statement.Answer? = nil) {
    guard let state = steps[step] else { return }
    sequence += 1
    let statement = Statement(
      vehicle: vehicle.uuid, step: step, position: state.position, phase: state.phase,
      fault: state.phase == .fault ? state.fault : nil, sequence: sequence, epoch: session.epoch, clock: now.clock,
      answer: answer)
    effects.append(
      .publish(Publication(step: step, payload: statement.payload(signedBy: keys.signing), retain: answer == nil)))
  }

  private mutating func record(_ event: Event) { effects.append(.record(event)) }
}
