import Domain
import MQTT
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
  }

  private enum Event {
    case begin(StepRequest.Goal)
    case toVehicle(StepID, [UInt8])
    case toRider(Int, topic: String, [UInt8])
    case journal(JournalReport, run: Int)
    case servo(ServoReport, run: Int)
    case tick(run: Int)
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

  private let faults: Faults
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
  /// Where each servo was turned to: the truth.
  private(set) var places: [StepID: Double]
  private(set) var motions = 0
  private var requests: [StepRequest] = []
  /// What the broker keeps: what the controller's first run said first, and what was said last.
  private var retained: [StepID: (first: [UInt8], last: [UInt8])] = [:]

  /// What each rider was told, in order, and how many motions there had been by then.
  private(set) var told: [[(update: StepRequest.Update, motions: Int)]] = []

  init(_ goal: StepRequest.Goal, _ faults: Faults, seed: UInt64) {
    self.faults = faults
    random = SplitMix(seed)
    journal = Journal(
      entries: Dictionary(uniqueKeysWithValues: World.vehicle.steps.map { ($0.id, Journal.Entry(position: .close)) }))
    places = Dictionary(uniqueKeysWithValues: World.vehicle.steps.map { ($0.id, 0) })
    controller = World.controller(journal)
    perform(.connected)
    begin(goal)
  }

  /// Another rider comes after a time, milliseconds.
  mutating func add(_ goal: StepRequest.Goal, after delay: ClosedRange<Int64>) {
    schedule(random.milliseconds(delay), .begin(goal))
  }

  static func sighting(_ step: Step) -> Sighting {
    Sighting(
      tag: TagUID("04A1B2C3D4E5F6")!, content: StepLabel(vehicle: vehicle.uuid, step: step.id).text, of: step,
      found: instant(-100))
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
    while clock < end, !isDone(self) {
      let next = events.map { ($0.time, $0.number) }.min { $0 < $1 }
      let limit = requests.filter { !$0.hasEnded }.map { World.milliseconds($0.limit) }.min()
      guard let time = [next?.0, limit].compactMap({ $0 }).min() else { return }
      clock = max(clock, time)
      if let limit, limit <= clock, next.map({ $0.0 > limit }) ?? true {
        for rider in requests.indices { take(requests[rider].advance(to: World.instant(clock)), rider) }
        continue
      }
      let index = events.firstIndex { $0.number == next!.1 }!
      handle(events.remove(at: index).event)
    }
  }

  // MARK: -

  private mutating func handle(_ event: Event) {
    switch event {
    case .begin(let goal):
      begin(goal)
    case .toVehicle(let step, let payload):
      if happens(faults.restarts) { restart() }
      perform(.request(Request(payload, on: step, isRetained: false)))
    case .toRider(let rider, let topic, let payload):
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
    }
  }

  private mutating func perform(_ input: Controller.Input) {
    let time = ControllerTime(clock: clock - runBegan, wall: 500_000 + clock / 1000)
    for effect in controller.handle(input, at: time) {
      switch effect {
      case .publish(let publication):
        let (step, payload) = (publication.step, publication.payload)
        if publication.retain { retained[step] = (retained[step]?.first ?? payload, payload) }
        for rider in requests.indices { send { .toRider(rider, topic: World.topic.status(step), payload) } }
      case .commit(let journal, let ticket):
        if happens(faults.journalFails) {
          schedule(random.milliseconds(1...30), .journal(.failed(ticket, "no space left on device"), run: run))
        } else {
          self.journal = journal
          schedule(random.milliseconds(1...30), .journal(.committed(ticket), run: run))
        }
      case .servo(let order): turn(order)
      case .record, .await, .forget, .obey, .tell, .watch: break
      }
    }
    if controller.needsTicks, !isTicking {
      isTicking = true
      schedule(20, .tick(run: run))
    }
  }

  private mutating func turn(_ order: ServoOrder) {
    var outcome = ServoReport.Outcome.done
    switch order.action {
    case .prepare: outcome = .ready(at: places[order.step])
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
    controller = World.controller(journal)
    perform(.connected)
  }

  private mutating func begin(_ goal: StepRequest.Goal) {
    var request = StepRequest(goal, with: World.access, limit: World.instant(clock + 10_000))
    let updates = request.begin()
    requests.append(request)
    told.append([])
    let rider = requests.count - 1
    if let (first, last) = retained[goal.step] {
      let payload = happens(faults.outdated) ? first : last
      send { .toRider(rider, topic: World.topic.status(goal.step), payload) }
    }
    take(updates, rider)
  }

  private mutating func take(_ updates: [StepRequest.Update], _ rider: Int) {
    told[rider] += updates.map { ($0, motions) }
    let step = requests[rider].step
    for update in updates {
      if case .send(_, let payload) = update { send { .toVehicle(step, payload) } }
    }
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

  private static func controller(_ journal: Journal) -> Controller {
    Controller(
      vehicle: vehicle,
      keys: Controller.Keys(
        decryption: keys.decryption, signing: keys.signing, operatorKey: keys.operator.verificationKey),
      policy: Policy(methods: [.nfc], zone: .near, proofAge: 30_000),
      profile: MotionProfile(travel: 400, limit: 5_000), journal: journal)
  }

  private static func instant(_ milliseconds: Int64) -> Instant { epoch + .milliseconds(milliseconds) }

  private static func milliseconds(_ instant: Instant) -> Int64 {
    let (seconds, attoseconds) = epoch.duration(to: instant).components
    return seconds * 1000 + attoseconds / 1_000_000_000_000_000
  }
}

extension SplitMix {
  fileprivate mutating func milliseconds(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &self) }
}
