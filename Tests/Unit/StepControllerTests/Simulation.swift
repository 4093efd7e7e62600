import Domain
import Encoding
import StepController
import StepProtocol
import TestSupport

/// Keys, riders and questions, which cost more than all the rest of a simulation and serve many.
final class SimulationCrew {
  let decryption = DecryptionKey()
  let signing = SigningKey()
  let operatorKey = SigningKey()
  /// The last one sends nothing before all is well again.
  private(set) var riders: [Rider] = []
  private var questions: [[[UInt8]]]

  static let wall: Int64 = 1_800_000_000

  init() {
    questions = Array(repeating: [], count: 6)
    riders = (0..<3).map { _ in
      let device = SigningKey()
      let token = Token(
        issuer: "test", subject: "rider", vehicle: car.uuid, steps: [left, right], notBefore: Self.wall - 60,
        expires: Self.wall + 3_600, device: device.verificationKey)
      return Rider(device: device, token: token.signed(by: operatorKey), controller: decryption.encryptionKey)
    }
  }

  /// The rider's question of this number about a step. Another controller may be asked the same.
  func question(_ number: Int, by rider: Int, about step: StepID) -> [UInt8] {
    let index = rider * 2 + (step == left ? 0 : 1)
    while questions[index].count <= number { questions[index].append(riders[rider].command(step, .status)) }
    return questions[index][number]
  }
}

/// What was counted in simulations: one in which nothing happens shows nothing.
struct SimulationTotals: CustomStringConvertible {
  var (commands, motions, ends, stops, reversals, retractions, backOffs, kills) = (0, 0, 0, 0, 0, 0, 0, 0)
  var refusals: [String: Int] = [:]
  var faults: [String: Int] = [:]

  mutating func add(_ other: SimulationTotals) {
    commands += other.commands
    motions += other.motions
    ends += other.ends
    stops += other.stops
    reversals += other.reversals
    retractions += other.retractions
    backOffs += other.backOffs
    kills += other.kills
    refusals.merge(other.refusals, uniquingKeysWith: +)
    faults.merge(other.faults, uniquingKeysWith: +)
  }

  var description: String {
    func list(_ counts: [String: Int]) -> String {
      counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
    }
    return "\(commands) commands, \(motions) motions, \(ends) of them ended where they should, \(stops) stops, "
      + "\(reversals) reversals, \(retractions) retractions, \(backOffs) back-offs, \(kills) kills; "
      + "refused: \(list(refusals)); faults: \(list(faults))"
  }
}

/// A controller with its shell, its wires, the steps as physics moves them, and everything that happens to them.
///
/// What must hold is looked at where it counts: in the pulses on the wires, in the places and speeds of the steps, and
/// in what the signed statements say at that moment.
final class Simulation {
  struct Violation {
    /// What is violated, whatever the numbers are.
    let kind: String
    let text: String
  }

  private(set) var violation: Violation?
  private(set) var totals = SimulationTotals()

  private let schedule: SimulationSchedule
  private let setting: SimulationSetting
  private let crew: SimulationCrew
  private let profile: MotionProfile
  private var now: Int64 = 0

  // MARK: The vehicle

  /// One of the steps, and what is known of it outside the controller.
  private struct Plant {
    let id: StepID
    var mechanism = Mechanism()
    /// Something else than the servo has moved it or held it, so that only end switches can know where it is.
    var isDisturbed = false

    // The servo's driver.
    var mood = SimulatedServoMood.takes(0)
    var orders: [(order: ServoOrder, at: Int64, licence: Licence)] = []
    var isBusy = false
    /// When an order was last carried out much later than it was given.
    var late: Int64 = -1_000

    // What was ordered and told.
    var motion: SimulatedMotion?
    /// How far the pulse may move at present.
    var credit = 0.0
    var changed: Int64 = 0
    var inched: Int64 = -10_000
    var phase = Phase.idle
    var position = Position.unknown
    var rested: Int64 = 0
    /// Since when nothing that was answered before may move it: a stop was obeyed.
    var stopped = -1
  }

  /// What entitles a step to move, and how far it has come.
  private struct SimulatedMotion {
    var target: Command.Move.Target
    /// Nil: the interlock closes it.
    let rider: Int?
    var isStopped = false
    /// Where something in the way was told of, and until when it may go on before it turns round.
    var obstructed: Double?
    /// Where it was turned round.
    var turned: Double?
  }

  /// What an order may do, as things stood when it was given.
  private struct Licence {
    var closing: String?
    var opening: String?
  }

  private var plants: [Plant]
  private var inputs: [(sensor: SensorID, wire: WiredInput)] = []
  private var isDriving = false
  private var isPressed = false

  // MARK: The process

  private var controller: Controller?
  private var life = 0
  private var boot: Int64 = 0
  private var epoch: [UInt8] = []
  private var inbox: [Controller.Input] = []
  private var stalledUntil: Int64 = 0
  private var stalled: Int64 = -1_000
  private var nextTick: Int64?
  private var lastTick: Int64 = 0
  private var isEnding = false
  private var journal: PlayedJournal!
  private var journalMood = SimulatedJournalMood.takes(0)
  /// What the controller was told of its inputs in this life, and when.
  private var told: [SensorID: (isActive: Bool?, at: Int64)] = [:]
  private var handled = 0

  // MARK: The riders

  private struct Plan {
    let rider: Int
    let step: StepID
    let target: Command.Move.Target
    let deadline: Int64
    let transit: Int64
  }

  /// A command that would be good, as long as nobody has refused it.
  private struct Delivery {
    let digest: [UInt8]
    let plan: Plan
    let deadline: Int64
  }

  private var plans: [[UInt8]: Plan] = [:]
  /// Commands by their payload: whose they are, by when they are good, and in which turn their challenge was given.
  private var moves: [[UInt8]: (plan: Plan, deadline: Int64, life: Int, given: Int)] = [:]
  private var stops: [[UInt8]: (rider: Int, step: StepID, epoch: [UInt8])] = [:]
  private var sent: [(step: StepID, payload: [UInt8])] = []
  private var arrived: Set<[UInt8]> = []
  private var deliveries: [Delivery] = []
  private var questions: [Int] = Array(repeating: 0, count: 6)
  private var lastEpoch: [UInt8]?

  // MARK: The agenda

  private var agenda: [(at: Int64, run: () -> Void)] = []

  init(_ schedule: SimulationSchedule, _ crew: SimulationCrew) {
    self.schedule = schedule
    self.crew = crew
    setting = schedule.setting
    profile = MotionProfile(travel: setting.travel, limit: 5_000)
    plants = [Plant(id: left), Plant(id: right)]
    for index in plants.indices { plants[index].mechanism.friction = setting.friction }
    inputs = SimulationSetting.allSensors.filter(setting.sensors.contains).map { ($0, WiredInput()) }
    journal = PlayedJournal(Journal(entries: [left: .init(position: .close), right: .init(position: .close)])) {
      [unowned self] report in post(.journal(report))
    }
    journal.isSlow = true
  }

  /// Runs it until something is violated or all has come to rest.
  func run() -> Violation? {
    updateContacts(bounces: false)
    start()
    for (time, action) in schedule.actions { at(time) { [unowned self] in act(action) } }
    advance(to: (schedule.actions.last?.at ?? 0) + 500)
    repair()
    // As long as an approach takes, and a motion after it.
    let end = now + Approach.duration + 8_000
    while violation == nil, now < end, controller?.isAtRest != true || now < stalledUntil { advance(to: now + 200) }
    advance(to: now + 300)
    guard violation == nil else { return violation }
    if controller?.isAtRest != true { violate("restless", "it does not come to rest") }
    if setting.endsWithOpening { openAtLast() }
    post(.connected)
    advance(to: now + 10)
    return violation
  }

  private func openAtLast() {
    act(.command(rider: 2, left, .open, deadline: 5_000, transit: 0))
    let end = now + Approach.duration + 8_000
    repeat { advance(to: now + 200) } while violation == nil && now < end && controller?.isAtRest != true
    let plant = plants[0]
    if plant.position != .open || plant.phase != .idle {
      violate("dead", "all is well again, and \(left) cannot be opened: it is \(plant.phase), \(plant.position)")
    }
  }

  private func violate(_ kind: String, _ text: String) {
    if violation == nil { violation = Violation(kind: kind, text: "at \(now) ms: \(text)") }
  }

  // MARK: - Time

  private func at(_ time: Int64, _ run: @escaping () -> Void) {
    var index = agenda.count
    while index > 0, agenda[index - 1].at > time { index -= 1 }
    agenda.insert((time, run), at: index)
  }

  private func advance(to end: Int64) {
    while violation == nil, now < end {
      while let first = agenda.first, first.at <= now {
        agenda.removeFirst()
        first.run()
      }
      turn()
      let isAwake = plants[0].mechanism.isAwake || plants[1].mechanism.isAwake
      if isAwake, now % Mechanism.quantum == 0 { move() }
      var next = end
      if isAwake { next = min(next, now + 1 + (now + 1) % Mechanism.quantum) }
      if let first = agenda.first { next = min(next, first.at) }
      if now < stalledUntil {
        next = min(next, stalledUntil)
      } else {
        if !inbox.isEmpty { next = now }
        if let nextTick { next = min(next, nextTick) }
      }
      now = max(next, now + (inbox.isEmpty ? 1 : 0))
    }
  }

  /// The steps move on by one quantum.
  private func move() {
    for index in plants.indices where plants[index].mechanism.isAwake {
      if (now - setting.phase) % Mechanism.frame == 0 {
        plants[index].mechanism.read()
        look(at: index)
      }
      plants[index].mechanism.advance(at: now)
      if plants[index].mechanism.pressure > 0 { plants[index].isDisturbed = true }
    }
    updateContacts(bounces: true)
  }

  // MARK: - Inputs

  /// Sees what the switches say now.
  private func updateContacts(bounces: Bool) {
    for index in inputs.indices where !inputs[index].wire.isBouncing {
      let isClosed = contact(of: inputs[index].sensor)
      guard isClosed != inputs[index].wire.contact else { continue }
      inputs[index].wire.contact = isClosed
      sense(index)
      guard bounces else { continue }
      inputs[index].wire.isBouncing = true
      at(now + 2) { [unowned self] in
        inputs[index].wire.contact.toggle()
        sense(index)
      }
      at(now + 3) { [unowned self] in
        inputs[index].wire.isBouncing = false
        inputs[index].wire.contact = contact(of: inputs[index].sensor)
        sense(index)
      }
    }
  }

  private func contact(of sensor: SensorID) -> Bool {
    switch sensor {
    case .clear(let step):
      let mechanism = plants[index(step)].mechanism
      return setting.hasBeam ? mechanism.obstacle == nil : mechanism.pressure < 8
    case .endOpen(let step): return plants[index(step)].mechanism.place >= 0.985
    case .endClosed(let step): return plants[index(step)].mechanism.place <= 0.015
    case .standing: return !isDriving
    case .enable: return !isPressed
    }
  }

  /// The shell reads an input: inactive counts at once, active when it has been so for a while.
  private func sense(_ index: Int) {
    guard inputs[index].wire.hasChanged() else { return }
    let (sensor, reading, changes, life) =
      (inputs[index].sensor, inputs[index].wire.reading, inputs[index].wire.changes, life)
    guard reading == true else { return post(.sensed(SensorReport(sensor, isActive: reading))) }
    at(now + InputWiring.standardDebounce) { [unowned self] in
      guard inputs[index].wire.changes == changes, self.life == life else { return }
      post(.sensed(SensorReport(sensor, isActive: true)))
    }
  }

  /// Whether motion is allowed, as far as the controller was told.
  private func isActive(_ sensor: SensorID) -> Bool {
    guard setting.sensors.contains(sensor) else { return true }
    guard let isActive = told[sensor]?.isActive else {
      return sensor == .standing && told[sensor] != nil && !setting.countsLostAsMoving
    }
    return isActive
  }

  private func index(_ step: StepID) -> Int { step == left ? 0 : 1 }

  // MARK: - The process

  private func start() {
    life += 1
    boot = now
    epoch = randomBytes(Statement.epochSize)
    (told, inbox, deliveries, plans, arrived) = ([:], [], [], [:], [])
    (nextTick, isEnding, stalledUntil, handled) = (nil, false, now, 0)
    for index in plants.indices {
      plants[index].motion = nil
      plants[index].stopped = -1
      plants[index].phase = .idle
      plants[index].position = .unknown
    }
    var wirings: [SensorID: InputWiring] = [:]
    for sensor in setting.sensors { wirings[sensor] = InputWiring(.file("played")) }
    controller = Controller(
      vehicle: car,
      keys: .init(
        decryption: crew.decryption, signing: crew.signing, operatorKey: crew.operatorKey.verificationKey),
      policy: Policy(methods: [.beacon], zone: .near, proofAge: 10_000, reserve: setting.reserve), profile: profile,
      inputs: Inputs(
        wirings: wirings,
        interlock: Interlock(onMoving: setting.onMoving, countsLostAsMoving: setting.countsLostAsMoving)),
      journal: journal.medium, epoch: epoch)
    for index in inputs.indices {
      inputs[index].wire.forget()
      sense(index)
    }
    post(.connected)
  }

  private func kill(downtime: Int64) {
    totals.kills += 1
    life += 1
    controller = nil
    inbox = []
    journal.crash()
    for index in plants.indices { (plants[index].orders, plants[index].isBusy) = ([], false) }
    let life = life
    at(now + downtime) { [unowned self] in if self.life == life { start() } }
  }

  private func post(_ input: Controller.Input) {
    if controller != nil { inbox.append(input) }
  }

  /// The loop takes what has come.
  private func turn() {
    guard controller != nil, now >= stalledUntil else { return }
    // After a stall nobody knows what the loop takes first.
    if stalledUntil % 2 == 0 { tick() }
    while violation == nil, !inbox.isEmpty { handle(inbox.removeFirst()) }
    tick()
    while violation == nil, !inbox.isEmpty { handle(inbox.removeFirst()) }
  }

  private func tick() {
    guard let due = nextTick, now >= due else { return }
    nextTick = nil
    handle(.tick)
  }

  private func handle(_ input: Controller.Input) {
    guard controller != nil else { return }
    handled += 1
    note(input)
    let time = ControllerTime(clock: now - boot, wall: SimulationCrew.wall + now / 1000)
    for effect in controller!.handle(input, at: time) {
      switch effect {
      case .publish(let publication): hear(publication)
      case .commit(let content, let ticket): commit(content, ticket)
      case .servo(let order): take(order)
      case .record(let event): count(event)
      }
    }
    if controller!.needsTicks, nextTick == nil {
      // As the shell does: in step with the last tick, unless that came late.
      lastTick = lastTick + MotionProfile.tick > now ? lastTick + MotionProfile.tick : now + MotionProfile.tick
      nextTick = lastTick + (setting.jitter == 0 ? 0 : lastTick * 7_919 % (setting.jitter + 1))
    }
    if isEnding, controller!.isAtRest { kill(downtime: 50) }
  }

  private func commit(_ content: Journal, _ ticket: CommitTicket) {
    journal.commit(content, ticket)
    if case .takes(let time) = journalMood {
      let life = life
      at(now + time) { [unowned self] in if self.life == life { writeJournal() } }
    } else {
      writeJournal()
    }
  }

  private func writeJournal() {
    switch journalMood {
    case .takes: journal.failure = nil
    case .fails: journal.failure = "Input/output error"
    case .silent: return
    }
    journal.write()
  }

  // MARK: - The servos' driver

  /// Looks at an order when it is given, and queues it.
  private func take(_ order: ServoOrder) {
    let index = index(order.step)
    var licence = Licence()
    if case .release = order.action {} else { licence = judge(order, of: index) }
    plants[index].orders.append((order, now, licence))
    work(index)
  }

  private func work(_ index: Int) {
    guard !plants[index].isBusy, let (order, given, licence) = plants[index].orders.first else { return }
    switch plants[index].mood {
    case .silent:
      return
    case .takes(let time) where time > 0:
      plants[index].isBusy = true
      let life = life
      at(now + time) { [unowned self] in
        guard self.life == life else { return }
        plants[index].isBusy = false
        carryOut(order, of: index, given, licence, nil)
      }
    case .takes:
      carryOut(order, of: index, given, licence, nil)
    case .fails(let error):
      plants[index].orders.removeFirst()
      report(order, .failed(error))
      work(index)
    case .failsLate:
      carryOut(order, of: index, given, licence, .failed("gone"))
    case .releaseFails:
      if order.action == .release {
        plants[index].orders.removeFirst()
        report(order, .failed(.failed("cannot write")))
        work(index)
      } else {
        carryOut(order, of: index, given, licence, nil)
      }
    }
  }

  private func carryOut(
    _ order: ServoOrder, of index: Int, _ given: Int64, _ licence: Licence, _ error: ServoError?
  ) {
    plants[index].orders.removeFirst()
    if now - given > MotionProfile.tick { plants[index].late = now }
    var outcome = ServoReport.Outcome.done
    switch order.action {
    case .prepare:
      outcome = .ready(at: plants[index].mechanism.wire)
    case .move(let place):
      checkPulse(place, of: index, licence)
      plants[index].mechanism.set(wire: place)
    case .inch(let place):
      checkInch(place, of: index, licence)
      plants[index].mechanism.pulse(toward: place, at: now)
    case .release:
      plants[index].mechanism.set(wire: nil)
    }
    report(order, error.map { .failed($0) } ?? outcome)
    work(index)
  }

  private func report(_ order: ServoOrder, _ outcome: ServoReport.Outcome) {
    if case .failed(.obstructed) = outcome { noteObstruction(of: index(order.step)) }
    post(.servo(ServoReport(order, outcome)))
  }

  // MARK: - What happens

  private func act(_ action: SimulatedAction) {
    switch action {
    case .command(let rider, let step, let target, let deadline, let transit):
      totals.commands += 1
      let kind = rider * 2 + index(step)
      let question = crew.question(questions[kind], by: rider, about: step)
      questions[kind] += 1
      plans[CommandDigest(of: question).bytes] = Plan(
        rider: rider, step: step, target: target, deadline: deadline, transit: transit)
      send(question, to: step)
    case .stop(let rider, let step):
      guard let lastEpoch else { return }
      totals.stops += 1
      let payload = crew.riders[rider].command(step, .stop(epoch: lastEpoch))
      stops[payload] = (rider, step, lastEpoch)
      send(payload, to: step)
    case .replay(let number):
      if sent.indices.contains(number) { send(sent[number].payload, to: sent[number].step) }
    case .obstacle(let step, let place?, let stiffness):
      let mechanism = plants[index(step)].mechanism
      let isOutside = place > mechanism.place
      // It comes up to the step, and not into it.
      let free = isOutside ? max(place, mechanism.place + 0.01) : min(place, mechanism.place - 0.01)
      guard (0.02...0.98).contains(free) else { return }
      plants[index(step)].mechanism.obstacle = .init(place: free, isOutside: isOutside, stiffness: stiffness)
    case .obstacle(let step, nil, _):
      plants[index(step)].mechanism.obstacle = nil
    case .stand(let step, let load):
      plants[index(step)].mechanism.load = load
    case .jam(let step, let force):
      plants[index(step)].mechanism.jam = force
      plants[index(step)].isDisturbed = true
    case .push(let step, let place):
      if !plants[index(step)].mechanism.isDriven { plants[index(step)].isDisturbed = true }
      plants[index(step)].mechanism.push(to: place)
    case .drive(let drives):
      isDriving = drives
    case .button(let isPressed):
      self.isPressed = isPressed
    case .wire(let sensor, let flaw):
      guard let index = inputs.firstIndex(where: { $0.sensor == sensor }) else { return }
      inputs[index].wire.flaw = flaw
      sense(index)
    case .stall(let time):
      stalledUntil = max(stalledUntil, now + time)
      stalled = stalledUntil
    case .journal(let mood):
      journalMood = mood
      writeJournal()
    case .servo(let step, let mood):
      plants[index(step)].mood = mood
      work(index(step))
    case .reconnect:
      post(.connected)
    case .end:
      guard controller != nil else { return }
      isEnding = true
      post(.ending)
    case .kill(let downtime, let isWritten):
      if isWritten { journal.write() }
      kill(downtime: downtime)
    case .powerCut(let downtime):
      kill(downtime: downtime)
      for index in plants.indices { plants[index].mechanism.set(wire: nil) }
    case .repair:
      repair()
    }
    updateContacts(bounces: true)
  }

  private func repair() {
    act(.journal(.takes(0)))
    for step in [left, right] {
      act(.servo(step, .takes(0)))
      act(.jam(step, 0))
      act(.stand(step, 0))
      act(.obstacle(step, nil, stiffness: 0))
    }
    for (sensor, _) in inputs { act(.wire(sensor, .healthy)) }
    act(.drive(false))
    act(.button(isPressed: false))
  }

  private func send(_ payload: [UInt8], to step: StepID) {
    sent.append((step, payload))
    post(.request(Request(payload, on: step, isRetained: false)))
  }

  // MARK: - What the controller was told

  private func note(_ input: Controller.Input) {
    switch input {
    case .sensed(let report):
      told[report.sensor] = (report.isActive, now)
      if case .clear(let step) = report.sensor, !isActive(report.sensor) { noteObstruction(of: index(step)) }
    case .request(let request):
      let digest = CommandDigest(of: request.payload).bytes
      let isNew = arrived.insert(digest).inserted
      if let stop = stops[request.payload], isNew, stop.epoch == epoch {
        let index = index(stop.step)
        plants[index].stopped = handled
        plants[index].motion?.isStopped = true
        deliveries.removeAll { $0.plan.step == stop.step }
      }
      guard let move = moves[request.payload], isNew, move.life == life else { return }
      guard move.given > plants[index(request.step)].stopped, now - boot < move.deadline else { return }
      deliveries.append(Delivery(digest: digest, plan: move.plan, deadline: move.deadline))
      reverse(index(request.step), move.plan)
    case .journal, .servo, .tick, .connected, .ending:
      break
    }
  }

  private func reverse(_ index: Int, _ plan: Plan) {
    guard let motion = plants[index].motion, motion.rider == plan.rider, motion.target != plan.target,
      !motion.isStopped, motion.obstructed == nil, plants[index].phase == .moving
    else { return }
    totals.reversals += 1
    let place = plants[index].mechanism.wire
    plants[index].motion?.target = plan.target
    plants[index].motion?.turned = place
  }

  private func noteObstruction(of index: Int) {
    guard let motion = plants[index].motion, motion.obstructed == nil else { return }
    totals.backOffs += 1
    let mechanism = plants[index].mechanism
    plants[index].motion?.obstructed = mechanism.wire ?? mechanism.place
  }

  // MARK: - What it orders

  /// What an order may do, as things stand when it is given.
  private func judge(_ order: ServoOrder, of index: Int) -> Licence {
    let (step, plant) = (order.step, plants[index])
    if plant.motion == nil { begin(order, of: index) }
    var licence = Licence()
    guard let motion = plants[index].motion else { return licence }
    if case .prepare = order.action { return licence }
    var ban: String?
    if !isActive(.enable) { ban = "`enable` is inactive" }
    if motion.isStopped { ban = "a stop was obeyed" }
    if let ban { (licence.closing, licence.opening) = (ban, ban) }
    if plant.phase != .moving { ban = ban ?? "it is said to be at rest" }
    let entry = journal.medium.entries[step]
    if entry?.motion == nil, entry?.position != .unknown { ban = ban ?? "the journal knows nothing of it" }
    if let ban { (licence.closing, licence.opening) = (licence.closing ?? ban, licence.opening ?? ban) }
    // Only back from what is in the way, and only a little.
    if motion.obstructed != nil || !isActive(.clear(step)) {
      if motion.target == .open {
        licence.opening = licence.opening ?? "something is in the way"
      } else {
        licence.closing = licence.closing ?? "something is in the way"
      }
    }
    if !isActive(.standing), motion.target == .open || motion.obstructed == nil {
      licence.opening = licence.opening ?? "the vehicle moves"
    }
    return licence
  }

  /// A step at rest is to move: by whose leave?
  private func begin(_ order: ServoOrder, of index: Int) {
    totals.motions += 1
    let wanted: Command.Move.Target? =
      switch order.action {
      case .prepare(_, let target): target == .open ? .open : .close
      default: nil
      }
    let clock = now - boot
    if let delivery = deliveries.first(where: {
      $0.plan.step == order.step && clock < $0.deadline && (wanted == nil || $0.plan.target == wanted)
    }) {
      plants[index].motion = SimulatedMotion(target: delivery.plan.target, rider: delivery.plan.rider)
    } else if wanted != .open, setting.onMoving == .retract, told[.standing] != nil, !isActive(.standing),
      plants[index].stopped < 0
    {
      totals.retractions += 1
      plants[index].motion = SimulatedMotion(target: .close, rider: nil)
    } else if case .move(let place) = order.action, place == plants[index].mechanism.wire {
      // It is held where it is.
    } else {
      violate("unasked", "\(order.step) is to do \(order.action), and nobody who may has asked for it")
    }
  }

  // MARK: - What reaches the wire

  private func checkPulse(_ place: Double, of index: Int, _ licence: Licence) {
    let plant = plants[index]
    let stride = profile.longestStride
    guard let before = plant.mechanism.wire else {
      if let ban = licence.opening, licence.closing != nil { violate("driven", "\(plant.id) is driven: \(ban)") }
      let jump = abs(place - plant.mechanism.place)
      if jump > 2 * stride + 0.02, !plant.isDisturbed || isSeen(index) {
        violate("thrown", "\(plant.id) stands at \(plant.mechanism.place) and is thrown to \(place)")
      }
      plants[index].credit = 0
      plants[index].changed = now
      return
    }
    let change = place - before
    // Frames of the servo and ticks of the loop are not in step, so that two ticks can fall into one frame.
    let credit = min(2 * stride, plant.credit + stride * Double(now - plant.changed) / Double(MotionProfile.tick))
    plants[index].credit = credit - abs(change)
    plants[index].changed = now
    if abs(change) > credit + 1e-9 || abs(change) > stride + 1e-9 {
      violate("too fast", "\(plant.id)'s pulse goes from \(before) to \(place), and \(min(credit, stride)) is allowed")
    }
    checkDirection(change, to: place, of: index, licence)
  }

  private func checkDirection(_ change: Double, to place: Double, of index: Int, _ licence: Licence) {
    let plant = plants[index]
    guard abs(change) > 1e-9 else { return }
    if let ban = change > 0 ? licence.opening : licence.closing {
      violate(change > 0 ? "extends: \(ban)" : "closes: \(ban)", "\(plant.id) goes to \(place), and \(ban)")
    }
    guard let motion = plant.motion, (change > 0) != (motion.target == .open) else { return }
    if let obstructed = motion.obstructed {
      if abs(place - obstructed) > 0.05 + 2 * profile.longestStride {
        violate("backs off too far", "\(plant.id) goes back from \(obstructed) to \(place)")
      }
    } else if let turned = motion.turned {
      // It slows down before it turns.
      if abs(place - turned) > 0.2 { violate("does not turn", "\(plant.id) was turned at \(turned), and is at \(place)") }
    } else if plant.late != now {
      violate("wrong way", "\(plant.id) was told to \(motion.target) and goes to \(place)")
    }
  }

  private func checkInch(_ place: Double, of index: Int, _ licence: Licence) {
    let plant = plants[index]
    if now - plant.inched < 300, plant.late != now {
      violate("too fast", "\(plant.id) gets pulses after \(now - plant.inched) ms")
    }
    plants[index].inched = now
    checkDirection(place - plant.mechanism.place, to: place, of: index, licence)
  }

  // MARK: - What physics does

  /// Looks at a step that moves or could, at each frame.
  private func look(at index: Int) {
    let plant = plants[index]
    let mechanism = plant.mechanism
    guard mechanism.latched != nil, now - plant.late > 300 else { return }
    let speed = abs(mechanism.speed)
    let isInching = now - plant.inched < 200
    if !plant.isDisturbed {
      let top = profile.longestStride / Double(MotionProfile.tick) * 1000
      if !isInching, speed > 1.6 * top + 0.4 { violate("too fast", "\(plant.id) moves with \(speed) ways a second") }
      if plant.phase != .moving, now - plant.rested > 150, speed > 0.15, controller != nil {
        violate("moves at rest", "\(plant.id) moves with \(mechanism.speed) ways a second and is said to be at rest")
      }
      if let (_, since) = told[.standing], !isActive(.standing), now - max(since, stalled) > 200,
        mechanism.speed > 0.15, plant.motion?.obstructed == nil
      {
        violate("extends: the vehicle moves", "\(plant.id) extends at \(mechanism.place) though the vehicle moves")
      }
    }
    checkPressure(index)
  }

  /// What is in the way is not pressed for longer than it takes to back off.
  private func checkPressure(_ index: Int) {
    let plant = plants[index]
    let limit = 15 + plant.mechanism.friction + plant.mechanism.load
    guard plant.mechanism.pressure > limit, let (isActive, since) = told[.clear(plant.id)], isActive == false,
      self.isActive(.enable), plant.stopped < 0, case .takes(0) = plant.mood, plant.mechanism.jam == 0,
      now - max(since, stalled) > 2 * MotionProfile.tick + setting.travel * 2 / 5 + 200, controller != nil
    else { return }
    violate("presses", "\(plant.id) presses with \(plant.mechanism.pressure) N, \(now - since) ms after it was told")
  }

  /// Whether end switches tell where the step is, and the controller was told what they say.
  private func isSeen(_ index: Int) -> Bool {
    guard setting.hasEnds(plants[index].id) else { return false }
    return inputs.allSatisfy { sensor, wire in
      guard sensor == .endOpen(plants[index].id) || sensor == .endClosed(plants[index].id) else { return true }
      return wire.flaw == .healthy && told[sensor]?.isActive == wire.contact
    }
  }

  // MARK: - What is told

  private func hear(_ publication: Controller.Publication) {
    let index = index(publication.step)
    let statement = SignedState(publication.payload)
    lastEpoch = statement.epoch
    let wasMoving = plants[index].phase == .moving
    plants[index].phase = statement.phase
    plants[index].position = statement.position
    if let digest = statement.command { answer(digest, statement, of: index) }
    guard statement.phase.isAtRest else { return }
    if wasMoving {
      plants[index].rested = now
      if statement.phase == .idle { totals.ends += 1 } else { totals.faults[statement.fault ?? "", default: 0] += 1 }
    }
    if statement.command == nil { plants[index].motion = nil }
    checkPosition(of: index)
    guard wasMoving else { return }
    let (life, number) = (life, totals.motions)
    at(now + 150) { [unowned self] in
      if self.life == life, totals.motions == number, plants[index].phase.isAtRest, stalled < now - 200 {
        checkPosition(of: index)
      }
    }
  }

  private func checkPosition(of index: Int) {
    let plant = plants[index]
    let end: Double
    switch plant.position {
    case .open: end = 1
    case .close: end = 0
    case .unknown: return
    }
    guard isSeen(index) || (!plant.isDisturbed && !setting.hasEnds(plant.id)) else { return }
    if abs(plant.mechanism.place - end) > 0.03 {
      violate(
        "untrue", "\(plant.id) is said to be at rest and \(plant.position), and stands at \(plant.mechanism.place)")
    }
  }

  private func answer(_ digest: [UInt8], _ statement: SignedState, of index: Int) {
    if let challenge = statement.challenge {
      guard let plan = plans.removeValue(forKey: digest) else { return }
      let (life, given) = (life, handled)
      let move = Command.Move(
        target: plan.target, epoch: statement.epoch, challenge: challenge, deadline: statement.clock + plan.deadline,
        proof: .standing(at: plan.step), proofTime: max(0, statement.clock - 100))
      let payload = crew.riders[plan.rider].command(plan.step, .move(move))
      moves[payload] = (plan, move.deadline, life, given)
      at(now + plan.transit) { [unowned self] in send(payload, to: plan.step) }
    } else if let refusal = statement.refusal {
      totals.refusals[refusal, default: 0] += 1
      deliveries.removeAll { $0.digest == digest }
    } else if statement.phase.isAtRest {
      deliveries.removeAll { $0.digest == digest }
    }
  }

  private func count(_ event: Controller.Event) {}
}

/// What a statement says. Its signature is not checked, because that takes longer than all the rest; other tests check
/// every one.
private struct SignedState {
  let position: Position
  let phase: Phase
  let fault: String?
  let epoch: [UInt8]
  let clock: Int64
  let command: [UInt8]?
  let challenge: [UInt8]?
  let refusal: String?

  init(_ payload: [UInt8]) {
    let text = try! JSON(parsing: payload)["statement"]!.string!
    let claims = try! JSON(parsing: Base64URL.decode(text.split(separator: ".")[1])!)
    position = Position(rawValue: claims["position"]!.string!)!
    phase = Phase(rawValue: claims["phase"]!.string!)!
    fault = claims["fault"]?.string
    epoch = Base64URL.decode(claims["epoch"]!.string!)!
    clock = claims["clock"]!.integer!
    command = claims["command"]?.string.flatMap { Base64URL.decode($0) }
    challenge = claims["challenge"]?.string.flatMap { Base64URL.decode($0) }
    refusal = claims["refusal"]?["code"]?.string
  }
}
