import Cryptography
package import Domain
package import StepProtocol
package import Traffic

/// The vehicle's side of the protocol, as a state machine: takes inputs, each with its time, and returns effects.
///
/// It does no I/O, waits for nothing and reads no clock. Its shell performs the effects in order and reports their
/// results. So one step moves on while another step's journal or servo is slow, and a test can choose any time and lose
/// any message.
package struct Controller {
  package enum Input: Sendable {
    case request(Request)
    case journal(JournalReport)
    case servo(ServoReport)
    /// A payload that came on `TopicPrefix.notice`.
    case notice([UInt8])
    /// An input changed, or was read for the first time.
    case sensed(SensorReport)
    /// An adapter of the vehicle heard an awaited frame.
    case heard(HeardFrame)
    /// An adapter of the vehicle began or ceased to listen.
    case ear(StepID, isListening: Bool)
    /// Due every `Hearing.interval` while `awaitsCalls`.
    case listened
    /// Due every `MotionProfile.tick` while `needsTicks`.
    case tick
    /// The program has started. Comes before everything else.
    case started
    /// Comes from a traffic feed, or from the vehicle's position receiver.
    case road(RoadEvent)
    /// Publish the state of every step: at the start, and whenever a broker may have forgotten it.
    case connected
    /// The configuration was read again.
    case rules(Rules)
    /// The program is to end: nothing begins from here on.
    case ending
  }

  package enum Effect: Sendable, Equatable {
    case publish(Publication)
    case commit(Journal, CommitTicket)
    case servo(ServoOrder)
    case log(LogEntry)
    /// The operator's notice is in force.
    case obey(Notice)
    /// An event for the operator.
    case report(VehicleEvent.Content)
    /// The adapters wait for these frames as well.
    case await([UUID])
    /// The adapters no longer wait for these frames.
    case forget([UUID])
    /// Watch the traffic feed.
    case watch(WatchedRoad)
  }

  /// A payload to be published on a step's `status`, or to be sent on a link.
  package struct Publication: Sendable, Equatable {
    package let step: StepID
    package let payload: [UInt8]
    package let retain: Bool
    /// Whom it answers; nil for what goes to the broker.
    package let origin: LinkOrigin?
  }

  /// The controller's private keys, and the public key of the token issuer.
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

  /// A log entry: who asked for what, and the outcome.
  package enum LogEntry: Sendable, Equatable {
    case unauthenticated(StepID, ProtocolError)
    case refused(StepID, RefusalCode, RefusalCause?, by: Asker)
    /// A question was answered with a challenge.
    case challenged(StepID, by: Asker)
    /// The step is already where a command wants it, so nothing moves.
    case answered(StepID, by: Asker)
    case stopped(StepID, by: Asker)
    case began(StepID, Command.Move.Target, by: Asker)
    /// The controller itself closes the step, because the vehicle moves.
    case retracts(StepID)
    /// An input is lost.
    case lost(SensorID)
    /// A motion ended. `by` is nil if the controller itself closed the step.
    case ended(StepID, Position, by: Asker?)
    /// `by` is nil if the failed motion was not a rider's.
    case failed(StepID, Fault, String, by: Asker?)
    case notJournaled(StepID, String)
    /// The operator's notice with that sequence number is on the medium and in force.
    case noticed(Int64)
    case noticeIgnored(ProtocolError)
    case noticeNotJournaled(String)
    /// A step opens although the guard is blind, because the configuration says so.
    case unwatched(StepID, TrafficGuard.Blindness)
    /// Everything in the traffic feed is far away.
    case farRoad
  }

  /// What is known of a step.
  struct StepState {
    /// Where the step is; while it moves, where it came from.
    var position: Position
    /// Why the last motion did not end where it should.
    var fault: Fault?
    var activity = Activity.resting
    /// The number of the order whose report is awaited.
    var order = 0
    /// The number of the order to release the servo, until it is carried out.
    var release: Int?
    /// The only device that may close the step, and until when.
    var reservation: (device: VerificationKey, until: Int64)?
    /// The vehicle began to move, and the controller has not closed the step since then.
    var isToRetract = false
    /// The content of the last retained statement.
    var published: Condition?
  }

  enum Activity {
    case resting
    /// The journal that announces the motion is being written.
    case committing(MotionRequest)
    /// The servo's output is being set up.
    case preparing(MotionRequest)
    case moving(Motion)
  }

  /// What a statement says about a step.
  package struct Condition: Equatable {
    package let position: Position
    package let phase: Phase
    package let fault: Fault?
  }

  /// Why a journal is written.
  enum Purpose {
    /// A dynamic tag's reading is used up. After that the step's state is checked.
    case reading(DynamicTag.Reading, MotionRequest)
    case motion(MotionRequest)
    /// Nothing waits for it. If it fails, the medium still says that a motion began, which errs on the safe side.
    case note(StepID)
    /// The notice is in force once it is written.
    case notice(Notice)

    /// The step that waits for it.
    var waiting: StepID? {
      switch self {
      case .reading(_, let request), .motion(let request): request.step
      case .note, .notice: nil
      }
    }
  }

  /// How long before `nbf` a token is accepted, seconds: clocks differ.
  static let leeway: Int64 = 30
  /// How long a command waits for its journal, milliseconds.
  static let journalTimeout: Int64 = 1_000

  var vehicle: Vehicle
  let keys: Keys
  /// The program's version for riders' programs that ask; nil if it is not told.
  let version: String?
  var policy: Policy
  let profile: MotionProfile
  /// What may hold or stop a motion besides the inputs. The first that does so decides.
  let guards: [any MotionGuard]
  /// The guard among them that also tells riders what it sees; nil without a traffic feed.
  let traffic: FeedGuard?
  var session: Session
  var proofs: ProofCheck
  /// Nil if the vehicle does not listen.
  var hearing: Hearing?
  /// Each device's motions, so that nobody can wear out a servo or keep others from using a step.
  var motions = Allowances<VerificationKey>(10, in: 60_000)
  var refusals = ReportedRefusals()
  var readings: Readings
  var steps: [StepID: StepState] = [:]
  /// What was written, or is being written.
  var journal: Journal
  /// The operator's last notice that is known to be on the medium.
  package internal(set) var notice: Notice?
  /// The tag counters that are known to be on the medium.
  var counters: [TagUID: UInt32]
  /// The journals that are being written: why each one is written, and when it was handed over, on the controller's
  /// clock, milliseconds.
  var commits: [CommitTicket: (purpose: Purpose, began: Int64)] = [:]
  var lastTicket: CommitTicket = 0
  private var lastOrder = 0
  private var sequence: Int64 = 0
  private(set) var isEnding = false
  private(set) var now: ControllerTime
  var effects: [Effect] = []

  /// - Parameters:
  ///   - version: the program's version, 1 to 64 characters of printable ASCII.
  ///   - journal: has an entry for each step.
  package init(
    vehicle: Vehicle, keys: Keys, policy: Policy, secrets: StepSecrets = StepSecrets(), profile: MotionProfile,
    inputs: Inputs = Inputs(), hearing: Hearing? = nil, guards: [any MotionGuard] = [], journal: Journal,
    epoch: [UInt8] = randomBytes(Statement.epochSize), version: String? = nil
  ) {
    self.vehicle = vehicle
    self.keys = keys
    self.version = version
    self.policy = policy
    self.profile = profile
    self.journal = journal
    counters = journal.counters
    // The notice is a former operator's: the controller now has another operator's key.
    if journal.notice?.root != keys.operatorKey { self.journal.notice = nil }
    notice = self.journal.notice?.content
    self.guards = guards
    traffic = guards.lazy.compactMap { $0 as? FeedGuard }.first
    readings = Readings(inputs)
    self.hearing = hearing
    proofs = ProofCheck(vehicle: vehicle, policy: policy, secrets: secrets)
    session = Session(
      epoch: epoch, steps: vehicle.steps.map(\.id), used: journal.entries.values.compactMap(\.challenge))
    now = ControllerTime(clock: 0, wall: 0)
    for step in vehicle.steps {
      let entry = journal.entries[step.id] ?? .lost
      // A motion without an end is reported, and never resumed.
      let (position, fault) = entry.motion == nil ? (entry.position, entry.fault) : (.unknown, .interrupted)
      steps[step.id] = StepState(position: readings.position(of: step.id, believed: position), fault: fault)
    }
  }

  package var isMoving: Bool {
    steps.values.contains { if case .moving = $0.activity { true } else { false } }
  }

  /// Whether anything with a time limit is awaited: a step's motion, its servo, or a journal.
  package var needsTicks: Bool {
    commits.values.contains { $0.purpose.waiting != nil }
      || steps.values.contains { if case .resting = $0.activity { false } else { true } }
  }

  /// Whether riders' devices are asked to call, or were until a moment ago.
  package var awaitsCalls: Bool { hearing?.isUnderWay == true }

  /// Whether nothing moves or is about to move, every journal was written or has failed, and no servo waits for its
  /// release.
  package var isAtRest: Bool {
    !needsTicks && commits.isEmpty && steps.values.allSatisfy { $0.release == nil }
  }

  /// Takes an input, and returns the effects to perform, in order.
  package mutating func handle(_ input: Input, at time: ControllerTime) -> [Effect] {
    now = time
    effects = []
    switch input {
    case .request(let request): receive(request)
    case .journal(.committed(let ticket)): proceed(from: ticket)
    case .journal(.failed(let ticket, let reason)): giveUp(ticket, reason)
    case .servo(let report): servoReported(report)
    case .notice(let payload): receive(notice: payload)
    case .sensed(let report): sense(report)
    case .heard(let frame): hearing?.hear(frame, at: time.clock)
    case .ear(let step, let isListening): hearing?.set(step, isListening: isListening)
    case .listened: lookWhereCallersAre()
    case .road(let event): roadChanged(event)
    case .tick:
      giveUpLateJournals()
      for step in vehicle.steps { advance(step.id) }
    case .started: reportStart()
    case .connected: for step in vehicle.steps { publish(step.id) }
    case .rules(let rules): apply(rules)
    case .ending: isEnding = true
    }
    return effects
  }

  // MARK: - Effects

  mutating func order(_ step: StepID, _ action: ServoOrder.Action) {
    lastOrder += 1
    steps[step]?.order = lastOrder
    if action == .release { steps[step]?.release = lastOrder }
    effects.append(.servo(ServoOrder(step: step, number: lastOrder, action: action)))
  }

  mutating func log(_ entry: LogEntry) { effects.append(.log(entry)) }

  mutating func refuse(_ sender: Sender, _ refusal: Refusal, _ cause: RefusalCause? = nil) {
    log(.refused(sender.step, refusal.code, cause, by: sender.asker))
    reportRefusal(of: sender, refusal.code, cause)
    answer(sender, .refused(refusal))
  }

  mutating func answer(_ sender: Sender, _ outcome: Statement.Outcome) {
    publish(sender.step, .init(command: sender.command, nonce: sender.nonce, outcome: outcome), to: sender.origin)
  }

  /// Publishes a step's state. A change of state is retained for later subscribers; an answer is for one rider, now.
  ///
  /// - Parameter origin: who asked, if not by the broker.
  mutating func publish(_ step: StepID, _ answer: Statement.Answer? = nil, to origin: LinkOrigin? = nil) {
    guard let condition = condition(of: step) else { return }
    if answer == nil { steps[step]?.published = condition }
    sequence += 1
    let statement = Statement(
      vehicle: vehicle.uuid, step: step, position: condition.position, phase: condition.phase, fault: condition.fault,
      sequence: sequence, epoch: session.epoch, clock: now.clock, answer: answer)
    effects.append(
      .publish(
        Publication(
          step: step, payload: statement.payload(signedBy: keys.signing), retain: answer == nil, origin: origin)))
  }

  /// The state of a step. At rest, the inputs override what its last motion left behind.
  package func condition(of step: StepID) -> Condition? {
    guard let state = steps[step] else { return nil }
    if case .moving = state.activity { return Condition(position: state.position, phase: .moving, fault: nil) }
    let fault = readings.fault(of: step, at: state.position) ?? state.fault
    return Condition(position: state.position, phase: fault == nil ? .idle : .fault, fault: fault)
  }
}
