import Cryptography
import Domain
import StepController
import StepProtocol
import TestSupport

let left = StepID("left")!
let right = StepID("right")!
let car = try! Vehicle(
  name: "Rolling Chassis", uuid: UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!,
  steps: [Step(id: left, side: .left, major: 1), Step(id: right, side: .right, major: 2)])
typealias UUID = Domain.UUID

/// A rider with a device and a token, and all that a rider can send.
struct Rider {
  let device: SigningKey
  let token: String
  let controller: EncryptionKey

  func command(
    _ step: StepID, _ request: Command.Request, vehicle: UUID = car.uuid, nonce: [UInt8]? = nil, asksAbout: Bool = false
  ) -> [UInt8] {
    sealed(step, request, vehicle: vehicle, nonce: nonce, asksAbout: asksAbout).bytes
  }

  func sealed(
    _ step: StepID, _ request: Command.Request, vehicle: UUID = car.uuid, nonce: [UInt8]? = nil, asksAbout: Bool = false
  ) -> SealedCommand {
    Command(
      vehicle: vehicle, step: step, request: request, nonce: nonce ?? randomBytes(Command.nonceSize), token: token,
      asksAbout: asksAbout
    ).sealed(by: device, to: controller)
  }
}

/// A controller with its keys, journal, servo and guard, at any hour that a test likes.
final class Bench {
  let decryption = DecryptionKey()
  let signing = SigningKey()
  let operatorKey = SigningKey()
  let servo: PlayedServo
  let journal: PlayedJournal
  let motionGuard = PlayedGuard()
  var controller: Controller!
  var events: [Controller.LogEntry] = []
  /// Everything that was published, and whom it answers on a link.
  var published: [(origin: LinkOrigin?, statement: Statement)] = []
  /// What the operator is told.
  var told: [VehicleEvent.Content] = []
  /// The operator's keys, as the controller has told them last.
  var trusted: [VerificationKey]?
  var time = ControllerTime(clock: 1_000, wall: 1_800_000_000)
  var profile = MotionProfile(travel: 1_000, limit: 3_000)
  var policy = Policy(methods: [.beacon], zone: .near, proofAge: 10_000)
  var secrets = StepSecrets()
  var inputs = Inputs()
  /// What each step's ear takes for 1 m, dBm; empty where there are none.
  var ears: [StepID: Int8] = [:]
  /// What the ears wait for.
  var awaited: Set<UUID> = []
  /// Nil where there is no traffic feed.
  var road: TrafficRules?
  /// What the traffic feed is asked for, the last time last.
  var watched: [WatchedRoad] = []
  var vehicle = car
  private let reports: Reports

  /// What journal and servo have said, until the controller hears it.
  private final class Reports { var waiting: [Controller.Input] = [] }

  init() {
    let reports = Reports()
    self.reports = reports
    servo = PlayedServo { reports.waiting.append(.servo($0)) }
    let installed = Journal.Entry(position: .close)
    journal = PlayedJournal(Journal(entries: [left: installed, right: installed])) {
      reports.waiting.append(.journal($0))
    }
    start()
  }

  /// Starts the controller, or starts it again, as after a crash.
  func start() {
    journal.crash()
    servo.crash()
    reports.waiting = []
    events = []
    told = []
    awaited = []
    controller = Controller(
      vehicle: vehicle,
      keys: .init(decryption: decryption, signing: signing, operatorKey: operatorKey.verificationKey),
      policy: policy, secrets: secrets, profile: profile, inputs: inputs,
      hearing: ears.isEmpty ? nil : Hearing(vehicle, powers: ears),
      guards: [motionGuard] + (road.map { [FeedGuard($0)] } ?? []), journal: journal.medium, version: "1.2.3")
    for ear in ears.keys { handle(.ear(ear, isListening: true)) }
  }

  /// Gives the controller an input, and then all that journal and servo say to what it does.
  ///
  /// - Returns: what was published.
  @discardableResult
  func handle(_ input: Controller.Input) -> [Statement] {
    var inputs = [input]
    var statements: [Statement] = []
    while !inputs.isEmpty {
      for effect in controller.handle(inputs.removeFirst(), at: time) {
        switch effect {
        case .publish(let publication):
          statements.append(read(publication))
          published.append((publication.origin, statements.last!))
        case .commit(let content, let ticket): journal.commit(content, ticket)
        case .servo(let order): servo.execute(order)
        case .log(let entry): events.append(entry)
        case .obey(let notice): trusted = notice.keys
        case .report(let content): told.append(content)
        case .await(let frames): awaited.formUnion(frames)
        case .forget(let frames): awaited.subtract(frames)
        case .watch(let road): watched.append(road)
        }
      }
      inputs += reports.waiting
      reports.waiting = []
    }
    return statements
  }

  /// Lets a slow journal or servo finish, and the controller hear of it.
  func settle() -> [Statement] {
    journal.write()
    servo.work()
    let inputs = reports.waiting
    reports.waiting = []
    return inputs.flatMap { handle($0) }
  }

  /// Starts it again with these inputs, of which all are active but those at the open ends.
  func wire(_ sensors: SensorID..., interlock: Interlock = Interlock()) {
    let wirings = sensors.map { ($0, InputWiring(.file("/dev/null"))) }
    inputs = Inputs(wirings: Dictionary(uniqueKeysWithValues: wirings), interlock: interlock)
    start()
    for sensor in sensors {
      let isOpenEnd = if case .endOpen = sensor { true } else { false }
      sense(sensor, !isOpenEnd)
    }
    handle(.connected)
  }

  /// An input changes; nil when it is lost.
  @discardableResult
  func sense(_ sensor: SensorID, _ isActive: Bool?) -> [Statement] {
    handle(.sensed(SensorReport(sensor, isActive: isActive)))
  }

  func wait(_ milliseconds: Int64) {
    time = ControllerTime(clock: time.clock + milliseconds, wall: time.wall + milliseconds / 1000)
  }

  func rider(
    steps: [StepID] = [left, right], vehicle: UUID = car.uuid, notBefore: Int64 = -60, expires: Int64 = 3_600,
    signedBy key: SigningKey? = nil, device: SigningKey? = nil
  ) -> Rider {
    let own = SigningKey()
    let token = Token(
      issuer: "test", subject: "alice", vehicle: vehicle, steps: steps, notBefore: time.wall + notBefore,
      expires: time.wall + expires, device: (device ?? own).verificationKey)
    return Rider(device: own, token: token.signed(by: key ?? operatorKey), controller: decryption.encryptionKey)
  }

  func send(_ payload: [UInt8], to step: StepID = left, retained: Bool = false) -> [Statement] {
    handle(.request(Request(payload, on: step, isRetained: retained)))
  }

  /// Lets time pass in ticks.
  func run(for milliseconds: Int64) -> [Statement] {
    var statements: [Statement] = []
    let end = time.clock + milliseconds
    while time.clock < end {
      wait(MotionProfile.tick)
      statements += handle(.tick)
    }
    return statements
  }

  private func read(_ publication: Controller.Publication) -> Statement {
    let statement = try! Statement(payload: publication.payload, verifiedBy: signing.verificationKey)
    // What is retained is exactly what is no answer.
    precondition(publication.retain == (statement.answer == nil) && publication.step == statement.step)
    return statement
  }

  /// The claims of a good command to open or close, from a fresh challenge.
  func move(_ target: Command.Move.Target, _ step: StepID, as rider: Rider) -> Command.Move {
    let statement = send(rider.command(step, .status), to: step)[0]
    guard case .challenge(let challenge)? = statement.answer?.outcome else { fatalError("no challenge") }
    return Command.Move(
      target: target, epoch: statement.epoch, challenge: challenge.bytes, deadline: time.clock + 5_000,
      proof: .standing(at: step), proofTime: time.clock - 500)
  }

  func open(_ step: StepID = left, as rider: Rider) -> [Statement] {
    send(rider.command(step, .move(move(.open, step, as: rider))), to: step)
  }

  func close(_ step: StepID = left, as rider: Rider) -> [Statement] {
    send(rider.command(step, .move(move(.close, step, as: rider))), to: step)
  }
}

extension Bench {
  /// A command to stop a step, of this run unless another epoch is given.
  func stop(_ step: StepID = left, as rider: Rider, epoch: [UInt8]? = nil) -> [Statement] {
    send(rider.command(step, .stop(epoch: epoch ?? self.epoch)), to: step)
  }

  var epoch: [UInt8] { handle(.connected)[0].epoch }

  /// The places that the servo was given.
  var moves: [Double] {
    servo.orders.compactMap { if case .move(let place) = $0.action { place } else { nil } }
  }

  /// Why a step failed last.
  func failure(_ fault: Fault) -> String? {
    events.compactMap { if case .failed(_, fault, let reason, _) = $0 { reason } else { nil } }.last
  }
}

extension Proof {
  static func standing(at step: StepID, zone: Zone = .immediate, isLocated: Bool = true, minor: UInt16 = 7) -> Proof {
    let own = car.step(step)!.major
    return .beacon(
      zone: zone, isLocated: isLocated,
      beacons: car.steps.map {
        HeardBeacon(major: $0.major, minor: minor, rssi: $0.major == own ? -52 : -71, measuredPower: -59, packets: 11)
      })
  }
}

extension [Statement] {
  var refusal: RefusalCode? {
    count == 1 ? self[0].answer?.refusal?.code : nil
  }
}

extension Command.Move {
  /// The same with some claims changed.
  func with(
    epoch: [UInt8]? = nil, challenge: [UInt8]? = nil, deadline: Int64? = nil, proof: Proof? = nil,
    proofTime: Int64? = nil
  ) -> Command.Move {
    Command.Move(
      target: target, epoch: epoch ?? self.epoch, challenge: challenge ?? self.challenge,
      deadline: deadline ?? self.deadline, proof: proof ?? self.proof, proofTime: proofTime ?? self.proofTime)
  }
}
