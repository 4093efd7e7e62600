import Domain
import MQTT
import Ranging
import Rider
import StepController
import StepProtocol
import SystemIO
import Terminal
import TestSupport

/// Riders and a vehicle in one process, with a network between them that a seed makes bad.
///
/// A rider is the real `StepRequest`, the vehicle the real `Controller`. Time is made up, so an hour passes in a
/// moment. The journal and the servo are played: they take their time, and fail where the seed says so.
struct World {
  /// How bad the world is: shares of one.
  struct Faults {
    var lost = 0.0
    var doubled = 0.0
    /// The longest way of a message, milliseconds. Messages overtake one another.
    var delay: Int64 = 20
    var journalFails = 0.0
    var servoFails = 0.0
    /// The chance, at each message, that the controller starts again.
    var restarts = 0.0
    /// The chance that the broker gives a subscriber what it kept of the controller's first run.
    var outdated = 0.0
    /// Whether a rider has two ways to the vehicle: the network, and a link to which answers alone come.
    var hasLink = false
    /// The chance, at each message of a rider's way, that the way breaks then.
    var breaks = 0.0
    /// The chance that the vehicle delays a motion, as if something came towards the step.
    var traffic = 0.0
  }

  private enum Event {
    case begin(StepRequest.Goal)
    case toVehicle(StepID, [UInt8], from: LinkOrigin?)
    case toRider(Int, topic: String, [UInt8], byLink: Bool)
    case breaks(Int, byLink: Bool)
    case journal(JournalReport, run: Int)
    case servo(ServoReport, run: Int)
    case tick(run: Int)
    case listen(run: Int)
  }

  static let vehicle = try! Vehicle(
    name: "Rolling Chassis", uuid: UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!,
    steps: [
      Step(id: StepID("left")!, side: .left, major: 1), Step(id: StepID("right")!, side: .right, major: 2),
    ])
  static let topic = TopicPrefix("arena2036/rolling_chassis")!
  static let epoch = Instant.now
  static let keys = (operator: SigningKey(), device: SigningKey(), decryption: DecryptionKey(), signing: SigningKey())
  static let access = try! RiderAccess(
    vehicle: vehicle, topic: topic, broker: Broker(host: "localhost", port: 8883, tls: nil),
    encryptionKey: keys.decryption.encryptionKey, statementKey: keys.signing.verificationKey, device: keys.device,
    token: Token(
      issuer: "operator", subject: "anna", vehicle: vehicle.uuid, steps: vehicle.steps.map(\.id), notBefore: 0,
      expires: 1_000_000, device: keys.device.verificationKey
    ).signed(by: keys.operator))

  static let policy = Policy(methods: [.nfc], zone: .near, proofAge: 30_000)

  private let faults: Faults
  private let policy: Policy
  private var random: SplitMix
  /// Milliseconds.
  private(set) var clock: Int64 = 0
  private var events: [(time: Int64, number: Int, event: Event)] = []
  private var number = 0
  private var controller: Controller
  private var run = 0
  private var runBegan: Int64 = -10_000
  private var journal: Journal
  private var isTicking = false
  private var isListening = false
  /// Where each servo was turned to: the truth.
  private(set) var places: [StepID: Double]
  private(set) var motions = 0
  private var requests: [StepRequest] = []
  /// What each rider has left: the network, a link.
  private var ways: [[Bool: Bool]] = []
  /// How each rider's last answer came.
  private var byLink: [Bool] = []
  /// How often the commands of each kind began a motion.
  private(set) var begun = 0
  /// What the broker keeps: what the controller's first run said first, and what was said last.
  private var retained: [StepID: (first: [UInt8], last: [UInt8])] = [:]

  /// What each rider was told, in order, and how many motions there had been by then.
  private(set) var told: [[(update: StepRequest.Update, motions: Int)]] = []
  /// The same of all riders, until somebody takes it.
  private var news: [(rider: Int, update: StepRequest.Update)] = []
  /// The riders' connection is lost, and nothing can be sent.
  private var isCut = false
  private var delayed: [[UInt8]: Bool] = [:]

  /// - Parameter goal: the first rider's; nil if riders come later.
  init(_ goal: StepRequest.Goal?, _ faults: Faults, policy: Policy = World.policy, seed: UInt64) {
    self.faults = faults
    self.policy = policy
    random = SplitMix(seed)
    journal = Journal(
      entries: Dictionary(uniqueKeysWithValues: World.vehicle.steps.map { ($0.id, Journal.Entry(position: .close)) }))
    places = Dictionary(uniqueKeysWithValues: World.vehicle.steps.map { ($0.id, 0) })
    controller = World.controller(journal, policy)
    start()
    if let goal { begin(goal) }
  }

  /// Another rider comes after a time, milliseconds.
  mutating func add(_ goal: StepRequest.Goal, after delay: ClosedRange<Int64>) {
    schedule(random.milliseconds(delay), .begin(goal))
  }

  /// Another rider comes now.
  ///
  /// - Returns: the rider's number.
  @discardableResult
  mutating func begin(_ goal: StepRequest.Goal) -> Int {
    var request = StepRequest(goal, with: World.access, limit: World.instant(clock + 10_000))
    let updates = request.begin()
    requests.append(request)
    told.append([])
    ways.append([false: true, true: faults.hasLink])
    byLink.append(false)
    let rider = requests.count - 1
    if let (first, last) = retained[goal.step] {
      let payload = happens(faults.outdated) ? first : last
      send { .toRider(rider, topic: World.topic.status(goal.step), payload, byLink: false) }
    }
    take(updates, rider)
    return rider
  }

  mutating func present(_ sighting: Sighting, to target: Command.Move.Target, by rider: Int) {
    if !requests[rider].hasEnded { take(requests[rider].present(sighting, to: target, at: now), rider) }
  }

  mutating func abandon(_ rider: Int) { requests[rider].abandon() }

  mutating func interrupt(_ rider: Int) { take(requests[rider].interrupt(), rider) }

  /// The riders lose their connection, for good.
  mutating func cut() {
    isCut = true
    for rider in requests.indices { take(requests[rider].disconnect(World.loss), rider) }
  }

  /// An adapter at a step hears a frame.
  mutating func hear(_ frame: UUID, at step: StepID, rssi: Int8) {
    perform(.heard(HeardFrame(frame, at: step, rssi: rssi, clock: clock - runBegan)))
  }

  /// What the riders were told since the last call.
  mutating func takeNews() -> [(rider: Int, update: StepRequest.Update)] {
    defer { news = [] }
    return news
  }

  static func sighting(_ step: Step, found: Instant? = nil) -> Sighting {
    Sighting(
      tag: TagUID("04A1B2C3D4E5F6")!, content: StepLabel(vehicle: vehicle.uuid, step: step.id).text, of: step,
      found: found ?? instant(-100))
  }

  /// A sighting by the beacons, from a radio that hears a step from before it.
  static func beaconSighting(_ step: Step, found: Instant = epoch) -> Sighting? {
    Sighting(location(before: step), made: found)
  }

  static func location(before step: Step) -> Location {
    var locator = Locator(steps: vehicle.steps)
    var location = locator.decide(at: 0)
    for tick in 1...30 {
      let time = Double(tick) / 10
      for other in vehicle.steps {
        let beacon = IBeacon(uuid: vehicle.uuid, major: other.major, minor: 1, measuredPower: -59)
        locator.hear(beacon, rssi: other == step ? -60 : -90, at: time)
      }
      if tick % 5 == 0 { location = locator.decide(at: time) }
    }
    return location
  }

  /// What the first rider was told.
  var updates: [StepRequest.Update] { told[0].map(\.update) }

  /// How the first rider's request ended.
  var result: Result<Statement, RiderError>? { result(of: 0) }

  func result(of rider: Int) -> Result<Statement, RiderError>? {
    for (update, _) in told[rider] {
      if case .done(let statement) = update { return .success(statement) }
      if case .failed(let error) = update { return .failure(error) }
    }
    return nil
  }

  /// Lets time pass until every request has ended and the vehicle is at rest, or until something is so.
  mutating func live(until end: Int64 = 200_000, or isDone: (World) -> Bool = { _ in false }) {
    while clock < end, !isDone(self), let time = next { pass(to: time) }
  }

  var now: Instant { World.instant(clock) }

  /// When something happens next; nil for never.
  var next: Int64? { [events.map(\.time).min(), limit].compactMap(\.self).min() }

  /// Lets time pass. The first thing that is due by then happens.
  mutating func pass(to time: Int64) {
    clock = max(clock, time)
    let first = events.indices.min { (events[$0].time, events[$0].number) < (events[$1].time, events[$1].number) }
    if let limit, limit <= clock, first.map({ events[$0].time > limit }) ?? true {
      for rider in requests.indices { take(requests[rider].advance(to: now), rider) }
    } else if let first, events[first].time <= clock {
      handle(events.remove(at: first).event)
    }
  }

  static func instant(_ milliseconds: Int64) -> Instant { epoch + .milliseconds(milliseconds) }

  static func milliseconds(_ instant: Instant) -> Int64 {
    let (seconds, attoseconds) = epoch.duration(to: instant).components
    return seconds * 1000 + attoseconds / 1_000_000_000_000_000
  }

  // MARK: -

  private static let loss = MQTTError.lost(access.broker, .established)

  /// The earliest limit of a request.
  private var limit: Int64? { requests.filter { !$0.hasEnded }.map { World.milliseconds($0.limit) }.min() }

  private mutating func handle(_ event: Event) {
    switch event {
    case .begin(let goal): begin(goal)
    case .toVehicle(let step, let payload, let origin):
      if happens(faults.restarts) { restart() }
      if isDelayed(payload), let answer = delay(payload) {
        for rider in requests.indices {
          send { .toRider(rider, topic: World.topic.status(step), answer, byLink: false) }
        }
        return
      }
      perform(.request(Request(payload, on: step, isRetained: false, from: origin)))
    case .breaks(let rider, let byLink): cut(byLink: byLink, of: rider)
    case .toRider(let rider, let topic, let payload, let byLink):
      if happens(faults.breaks) { cut(byLink: byLink, of: rider) }
      guard ways[rider][byLink] == true else { return }
      self.byLink[rider] = byLink
      guard let statement = try? World.access.statement(payload, on: topic) else { return }
      take(requests[rider].receive(Answer(statement: statement, received: World.instant(clock))), rider)
    case .journal(let report, let run):
      if run == self.run { perform(.journal(report)) }
    case .servo(let report, let run):
      if run == self.run { perform(.servo(report)) }
    case .tick(let run):
      guard run == self.run else { return }
      isTicking = false
      perform(.tick)
    case .listen(let run):
      guard run == self.run else { return }
      isListening = false
      perform(.listened)
    }
  }

  /// All copies of a message meet the same road.
  private mutating func isDelayed(_ payload: [UInt8]) -> Bool {
    if let known = delayed[payload] { return known }
    let isDelayed = happens(faults.traffic)
    delayed[payload] = isDelayed
    return isDelayed
  }

  /// The vehicle's answer to a motion, while something comes towards the step; nil for another message.
  private func delay(_ payload: [UInt8]) -> [UInt8]? {
    let received = ReceivedCommand(
      payload, controller: World.keys.decryption, operatorKey: World.keys.operator.verificationKey)
    guard case .command(let command, _, _) = received, case .move(let move) = command.request else { return nil }
    let refusal = Refusal(.approaching, oncoming: Oncoming(category: "bicycle", arrival: 3_000))
    return Statement(
      vehicle: World.vehicle.uuid, step: command.step, position: .close, phase: .idle, fault: nil, sequence: 1_000_000,
      epoch: move.epoch, clock: clock - runBegan,
      answer: .init(command: CommandDigest(of: payload), nonce: command.nonce, outcome: .refused(refusal))
    ).payload(signedBy: World.keys.signing)
  }

  private mutating func perform(_ input: Controller.Input) {
    let time = ControllerTime(clock: clock - runBegan, wall: 500_000 + clock / 1000)
    for effect in controller.handle(input, at: time) {
      switch effect {
      case .publish(let publication):
        let (step, payload) = (publication.step, publication.payload)
        if publication.retain { retained[step] = (retained[step]?.first ?? payload, payload) }
        if let origin = publication.origin {
          send { .toRider(origin.link, topic: World.topic.status(step), payload, byLink: true) }
          continue
        }
        for rider in requests.indices {
          send { .toRider(rider, topic: World.topic.status(step), payload, byLink: false) }
        }
      case .commit(let journal, let ticket):
        if happens(faults.journalFails) {
          schedule(random.milliseconds(1...30), .journal(.failed(ticket, "no space left on device"), run: run))
        } else {
          self.journal = journal
          schedule(random.milliseconds(1...30), .journal(.committed(ticket), run: run))
        }
      case .servo(let order): turn(order)
      case .log, .await, .forget, .obey, .report, .watch: break
      }
    }
    if controller.needsTicks, !isTicking {
      isTicking = true
      schedule(20, .tick(run: run))
    }
    if controller.awaitsCalls, !isListening {
      isListening = true
      schedule(Hearing.interval, .listen(run: run))
    }
  }

  private mutating func turn(_ order: ServoOrder) {
    var outcome = ServoReport.Outcome.done
    switch order.action {
    case .prepare:
      begun += 1
      outcome = .ready(at: places[order.step])
    case .move(let place):
      motions += 1
      places[order.step] = place
    case .inch: motions += 1
    case .release: break
    }
    if happens(faults.servoFails) { outcome = .failed(.failed("input/output error")) }
    schedule(random.milliseconds(0...5), .servo(ServoReport(order, outcome), run: run))
  }

  private mutating func restart() {
    run += 1
    runBegan = clock
    isTicking = false
    isListening = false
    controller = World.controller(journal, policy)
    start()
  }

  private mutating func start() {
    perform(.connected)
    for step in World.vehicle.steps { perform(.ear(step.id, isListening: true)) }
  }

  private mutating func take(_ updates: [StepRequest.Update], _ rider: Int) {
    told[rider] += updates.map { ($0, motions) }
    news += updates.map { (rider, $0) }
    let step = requests[rider].step
    for update in updates {
      guard case .send(let command) = update else { continue }
      if isCut { return take(requests[rider].failToSend(World.loss), rider) }
      let isStop = if case .stop = requests[rider].goal { true } else { false }
      let origin = LinkOrigin(link: rider, key: command.answerKey)
      for way in [false, true] where ways[rider][way] == true {
        guard isStop || requests[rider].isAsking || way == byLink[rider] else { continue }
        send { .toVehicle(step, command.bytes, from: way ? origin : nil) }
        // Somebody plays the same bytes on the other way.
        if happens(faults.hasLink ? faults.doubled : 0) {
          send { .toVehicle(step, command.bytes, from: way ? nil : LinkOrigin(link: rider, key: command.answerKey)) }
        }
        if happens(faults.breaks) { schedule(1, .breaks(rider, byLink: way)) }
      }
    }
  }

  /// The way of the last answer breaks.
  mutating func loseWay(of rider: Int) { cut(byLink: byLink[rider], of: rider) }

  /// A way of a rider's breaks, and the rider goes on by the other, if there is one.
  private mutating func cut(byLink: Bool, of rider: Int) {
    guard ways[rider][byLink] == true else { return }
    ways[rider][byLink] = false
    guard ways[rider][!byLink] == true else { return take(requests[rider].disconnect(World.loss), rider) }
    guard self.byLink[rider] == byLink else { return }
    self.byLink[rider] = !byLink
    take(requests[rider].goOn(without: World.loss, at: now), rider)
  }

  private mutating func send(_ event: () -> Event) {
    if happens(faults.lost) { return }
    for _ in 0..<(happens(faults.doubled) ? 2 : 1) { schedule(random.milliseconds(1...faults.delay), event()) }
  }

  private mutating func schedule(_ delay: Int64, _ event: Event) {
    number += 1
    events.append((clock + delay, number, event))
  }

  private mutating func happens(_ share: Double) -> Bool { Double.random(in: 0..<1, using: &random) < share }

  private static func controller(_ journal: Journal, _ policy: Policy) -> Controller {
    let hears = policy.needsHearing || policy.methods.contains(.heard)
    return Controller(
      vehicle: vehicle,
      keys: Controller.Keys(
        decryption: keys.decryption, signing: keys.signing, operatorKey: keys.operator.verificationKey),
      policy: policy, profile: MotionProfile(travel: 400, limit: 5_000),
      hearing: hears ? Hearing(vehicle, powers: [:]) : nil, journal: journal)
  }
}

extension SplitMix {
  fileprivate mutating func milliseconds(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &self) }
}
