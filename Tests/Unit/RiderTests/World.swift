import Domain
import MQTT
import Rider
import StepController
import StepProtocol
import TestSupport

/// A rider and a vehicle in one process, with a network between them that a seed makes bad.
///
/// The rider is the real `StepRequest`, the vehicle the real `Controller`. Time is made up, so an hour passes in a
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
  }

  private enum Event {
    case toVehicle([UInt8])
    case toRider(topic: String, [UInt8])
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
  static let epoch = ContinuousClock.now
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
  private var request: StepRequest

  /// What the rider was told, in order.
  private(set) var updates: [StepRequest.Update] = []

  init(_ goal: StepRequest.Goal, to step: Step, _ faults: Faults, seed: UInt64) {
    self.faults = faults
    random = SplitMix(seed)
    journal = Journal(
      entries: Dictionary(uniqueKeysWithValues: World.vehicle.steps.map { ($0.id, Journal.Entry(position: .close)) }))
    places = Dictionary(uniqueKeysWithValues: World.vehicle.steps.map { ($0.id, 0) })
    controller = World.controller(journal)
    request = StepRequest(goal, to: step.id, with: World.access, limit: World.instant(10_000))
    take(request.begin())
  }

  static func sighting(_ step: Step) -> Sighting {
    Sighting(
      tag: TagUID("04A1B2C3D4E5F6")!, content: StepLabel(vehicle: vehicle.uuid, step: step.id).text, of: step,
      found: instant(-100))
  }

  /// How the request ended.
  var result: Result<Statement, RiderError>? {
    for update in updates {
      if case .done(let statement) = update { return .success(statement) }
      if case .failed(let error) = update { return .failure(error) }
    }
    return nil
  }

  /// Lets time pass until the request has ended and the vehicle is at rest.
  mutating func live(until end: Int64 = 200_000) {
    while clock < end {
      let next = events.map { ($0.time, $0.number) }.min { $0 < $1 }
      let limit = request.hasEnded ? nil : World.milliseconds(request.limit)
      guard let time = [next?.0, limit].compactMap({ $0 }).min() else { return }
      clock = max(clock, time)
      if let limit, limit <= clock, next.map({ $0.0 > limit }) ?? true {
        take(request.advance(to: World.instant(clock)))
        continue
      }
      let index = events.firstIndex { $0.number == next!.1 }!
      handle(events.remove(at: index).event)
    }
  }

  // MARK: -

  private mutating func handle(_ event: Event) {
    switch event {
    case .toVehicle(let payload):
      if happens(faults.restarts) { restart() }
      perform(.request(Request(payload, on: request.step, isRetained: false)))
    case .toRider(let topic, let payload):
      guard let statement = try? World.access.statement(payload, on: topic) else { return }
      take(request.receive(Answer(statement: statement, received: World.instant(clock))))
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
        send { .toRider(topic: World.topic.status(publication.step), publication.payload) }
      case .commit(let journal, let ticket):
        if happens(faults.journalFails) {
          schedule(random.milliseconds(1...30), .journal(.failed(ticket, "no space left on device"), run: run))
        } else {
          self.journal = journal
          schedule(random.milliseconds(1...30), .journal(.committed(ticket), run: run))
        }
      case .servo(let order): turn(order)
      case .record: break
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

  private mutating func take(_ updates: [StepRequest.Update]) {
    self.updates += updates
    for update in updates {
      if case .send(_, let payload) = update { send { .toVehicle(payload) } }
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

  private static func instant(_ milliseconds: Int64) -> ContinuousClock.Instant { epoch + .milliseconds(milliseconds) }

  private static func milliseconds(_ instant: ContinuousClock.Instant) -> Int64 {
    let (seconds, attoseconds) = epoch.duration(to: instant).components
    return seconds * 1000 + attoseconds / 1_000_000_000_000_000
  }
}

extension SplitMix {
  fileprivate mutating func milliseconds(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &self) }
}
