import Cryptography
import Domain
import StepController
import StepProtocol
import TestSupport

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

  var violation: Violation?
  var totals = SimulationTotals()

  let schedule: SimulationSchedule
  let setting: SimulationSetting
  let crew: SimulationCrew
  let profile: MotionProfile
  var now: Int64 = 0

  // MARK: The vehicle

  /// One of the steps, and what is known of it outside the controller.
  struct Plant {
    let id: StepID
    var mechanism = Mechanism()
    /// Something else than the servo has moved it or held it, so that only end switches can know where it is.
    var isDisturbed = false
    /// It was held fast, or its `clear` was wrong, so that the pulse may be far ahead of it.
    var wasJammed = false
    /// When somebody last moved it by hand.
    var pushed: Int64 = -1_000

    // The servo's driver.
    var mood = SimulatedServoMood.takes(0)
    var orders: [(order: ServoOrder, at: Int64, licence: Licence)] = []
    var isBusy = false
    /// When an order was last carried out much later than it was given, or somebody stepped on or off.
    var late: Int64 = -1_000

    // What was ordered and told.
    var motion: SimulatedMotion?
    /// How far the pulse may move at present, as of its last change.
    var credit = 0.0
    var changed: Int64 = 0
    /// Which way the pulse moved last.
    var heading: Command.Move.Target?
    /// When there was the last single pulse, and the last one of this motion.
    var pulsed: Int64 = -10_000
    var inched: Int64?
    /// What was told last, and when the last motion was said to have ended.
    var phase = Phase.idle
    var position = Position.unknown
    var rested: Int64 = 0
    /// In which turn and when a stop was obeyed last: no challenge from before it may move the step.
    var stopped: (turn: Int, at: Int64) = (-1, -1)
    /// Whether it is held as it stood when a stop or the stop button ended its motion.
    var isHeld = false
  }

  /// What entitles a step to move, and how far it has come.
  struct SimulatedMotion {
    var target: Command.Move.Target
    /// Nil: the interlock closes it.
    let rider: Int?
    /// Where the pulse was when it began.
    var start: Double?
    /// The command that it follows.
    var command: [UInt8]?
    var isStopped = false
    /// Where it was when something in the way was told of, and which way it went.
    var obstructed: Double?
    var heading: Command.Move.Target?
    /// Where it was turned round.
    var turned: Double?
  }

  /// What an order may do, as things stood when it was given.
  struct Licence {
    var closing: String?
    var opening: String?
  }

  var plants: [Plant]
  var inputs: [(sensor: SensorID, wire: WiredInput)] = []
  var isDriving = false
  var isPressed = false

  // MARK: The process

  var controller: Controller?
  var life = 0
  var boot: Int64 = 0
  var epoch: [UInt8] = []
  var inbox: [Controller.Input] = []
  var stalledUntil: Int64 = 0
  var stalled: Int64 = -1_000
  var nextTick: Int64?
  var lastTick: Int64 = 0
  var isEnding = false
  var journal: PlayedJournal!
  var journalMood = SimulatedJournalMood.takes(0)
  /// What the controller was told of its inputs in this life, and when.
  var told: [SensorID: (isActive: Bool?, at: Int64)] = [:]
  var handled = 0

  // MARK: The riders

  struct Plan {
    let rider: Int
    let step: StepID
    let target: Command.Move.Target
    let deadline: Int64
    let transit: Int64
  }

  /// A command that would be good, as long as nobody has refused it.
  struct Delivery {
    let digest: [UInt8]
    let plan: Plan
    let deadline: Int64
  }

  var plans: [[UInt8]: Plan] = [:]
  /// Commands by their payload: whose they are, by when they are good, and in which turn their challenge was given.
  var moves: [[UInt8]: (plan: Plan, deadline: Int64, life: Int, given: Int)] = [:]
  var stops: [[UInt8]: (rider: Int, step: StepID, epoch: [UInt8])] = [:]
  /// How many commands are on their way.
  var underway = 0
  var sent: [(step: StepID, payload: [UInt8])] = []
  var arrived: Set<[UInt8]> = []
  var deliveries: [Delivery] = []
  var questions: [Int] = Array(repeating: 0, count: 6)
  var lastEpoch: [UInt8]?

  // MARK: The agenda

  var agenda: [(at: Int64, run: () -> Void)] = []

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
    advance(to: schedule.end + 500)
    repair()
    advance(to: now + 200)
    // As long as an approach takes, and a motion after it.
    let end = now + Inching.duration + 8_000
    while violation == nil, now < end, controller?.isAtRest != true || now < stalledUntil || underway > 0 {
      advance(to: now + 200)
    }
    advance(to: now + 300)
    guard violation == nil else { return violation }
    if controller?.isAtRest != true { violate("restless", "it does not come to rest") }
    if setting.endsWithOpening { openAtLast() }
    post(.connected)
    advance(to: now + 10)
    return violation
  }

  func openAtLast() {
    act(.command(rider: 2, left, .open, deadline: 5_000, transit: 0))
    let end = now + Inching.duration + 8_000
    repeat { advance(to: now + 200) } while violation == nil && now < end && controller?.isAtRest != true
    let plant = plants[0]
    if plant.position != .open || plant.phase != .idle {
      violate(
        "dead",
        "all is well again, and \(left) cannot be opened: it is \(plant.phase), \(plant.position); \(totals.refusals)")
    }
  }

  func violate(_ kind: String, _ text: String) {
    if violation == nil { violation = Violation(kind: kind, text: "at \(now) ms: \(text)") }
  }

  // MARK: - Time

  func at(_ time: Int64, _ run: @escaping () -> Void) {
    var index = agenda.count
    while index > 0, agenda[index - 1].at > time { index -= 1 }
    agenda.insert((time, run), at: index)
  }

  func advance(to end: Int64) {
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
  func move() {
    for index in plants.indices where plants[index].mechanism.isAwake {
      if (now - setting.phase) % Mechanism.frame == 0 {
        plants[index].mechanism.read()
        look(at: index)
      }
      plants[index].mechanism.advance(at: now)
      let pressure = plants[index].mechanism.pressure
      if pressure > 0 {
        plants[index].isDisturbed = true
        if told[.clear(plants[index].id)]?.isActive == false, !plants[index].wasJammed {
          totals.force = max(totals.force, pressure)
        }
      }
    }
    updateContacts(bounces: true)
  }

  // MARK: - Inputs

  /// Sees what the switches say now.
  func updateContacts(bounces: Bool) {
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

  func contact(of sensor: SensorID) -> Bool {
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
  func sense(_ index: Int) {
    guard inputs[index].wire.hasChanged() else { return }
    let (sensor, reading, changes, life) =
      (inputs[index].sensor, inputs[index].wire.reading, inputs[index].wire.changes, life)
    guard reading == true else { return post(.sensed(SensorReport(sensor, isActive: reading))) }
    at(now + InputSource.file("").standardDebounce) { [unowned self] in
      guard inputs[index].wire.changes == changes, self.life == life else { return }
      post(.sensed(SensorReport(sensor, isActive: true)))
    }
  }

  /// Whether motion is allowed, as far as the controller was told.
  func isActive(_ sensor: SensorID) -> Bool {
    guard setting.sensors.contains(sensor) else { return true }
    guard let isActive = told[sensor]?.isActive else {
      return sensor == .standing && told[sensor] != nil && !setting.countsLostAsMoving
    }
    return isActive
  }

  func index(_ step: StepID) -> Int { step == left ? 0 : 1 }

  // MARK: - The process

  func start() {
    life += 1
    boot = now
    epoch = randomBytes(Statement.epochSize)
    (told, inbox, deliveries, plans, arrived) = ([:], [], [], [:], [])
    (nextTick, isEnding, stalledUntil, handled) = (nil, false, now, 0)
    for index in plants.indices {
      plants[index].motion = nil
      plants[index].stopped = (-1, -1)
      (plants[index].phase, plants[index].rested) = (.idle, now)
      plants[index].position = .unknown
    }
    var wirings: [SensorID: InputWiring] = [:]
    for sensor in setting.sensors where !setting.isDeaf { wirings[sensor] = InputWiring(.file("played")) }
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

  func kill(downtime: Int64) {
    totals.kills += 1
    life += 1
    controller = nil
    inbox = []
    journal.crash()
    for index in plants.indices { (plants[index].orders, plants[index].isBusy) = ([], false) }
    let life = life
    at(now + downtime) { [unowned self] in if self.life == life { start() } }
  }

  func post(_ input: Controller.Input) {
    if controller != nil { inbox.append(input) }
  }

  /// The loop takes what has come.
  func turn() {
    guard controller != nil, now >= stalledUntil else { return }
    // After a stall nobody knows what the loop takes first.
    if stalledUntil % 2 == 0 { tick() }
    while violation == nil, !inbox.isEmpty { handle(inbox.removeFirst()) }
    tick()
    while violation == nil, !inbox.isEmpty { handle(inbox.removeFirst()) }
  }

  func tick() {
    guard let due = nextTick, now >= due else { return }
    nextTick = nil
    handle(.tick)
  }

  func handle(_ input: Controller.Input) {
    guard controller != nil else { return }
    handled += 1
    note(input)
    let time = ControllerTime(clock: now - boot, wall: SimulationCrew.wall + now / 1000)
    for effect in controller!.handle(input, at: time) {
      switch effect {
      case .publish(let publication): hear(publication)
      case .commit(let content, let ticket): commit(content, ticket)
      case .servo(let order): take(order)
      case .log, .await, .forget, .obey, .report, .watch: break
      }
    }
    if controller!.needsTicks, nextTick == nil {
      // As the shell does: in step with the last tick, unless that came late.
      lastTick = lastTick + MotionProfile.tick > now ? lastTick + MotionProfile.tick : now + MotionProfile.tick
      nextTick = lastTick + (setting.jitter == 0 ? 0 : lastTick * 7_919 % (setting.jitter + 1))
    }
    if isEnding, controller!.isAtRest { kill(downtime: 50) }
  }

  func commit(_ content: Journal, _ ticket: CommitTicket) {
    journal.commit(content, ticket)
    if case .takes(let time) = journalMood {
      let life = life
      at(now + time) { [unowned self] in if self.life == life { writeJournal() } }
    } else {
      writeJournal()
    }
  }

  func writeJournal() {
    switch journalMood {
    case .takes: journal.failure = nil
    case .fails: journal.failure = "Input/output error"
    case .silent: return
    }
    journal.write()
  }

  // MARK: - The servos' driver

  /// Looks at an order when it is given, and queues it.
  func take(_ order: ServoOrder) {
    let index = index(order.step)
    var licence = Licence()
    if case .release = order.action {} else { licence = judge(order, of: index) }
    plants[index].orders.append((order, now, licence))
    work(index)
  }

  func work(_ index: Int) {
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

  func carryOut(
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

  func report(_ order: ServoOrder, _ outcome: ServoReport.Outcome) {
    if case .failed(.obstructed) = outcome { noteObstruction(of: index(order.step)) }
    post(.servo(ServoReport(order, outcome)))
  }
}
