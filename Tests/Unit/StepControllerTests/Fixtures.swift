import Domain
import Foundation
import StepController
import StepProtocol
import TestSupport

/// A servo that writes down what it is told, and fails where a test wants it to.
///
/// It stands in for a motor, which no machine that runs tests has.
final class ServoScript: @unchecked Sendable {
  enum Call: Equatable {
    case begin(StepID, from: Position, to: Position)
    case move(StepID, Double)
    case release(StepID)
  }

  var calls: [Call] = []
  var failure: ServoError?
  /// Looked at whenever something begins: what is on disk at that moment.
  var atBegin: () -> Void = {}

  struct Driver: ServoDriver {
    let script: ServoScript

    mutating func begin(_ step: StepID, from: Position, to: Position) throws(ServoError) {
      script.atBegin()
      if let failure = script.failure { throw failure }
      script.calls.append(.begin(step, from: from, to: to))
    }
    mutating func move(_ step: StepID, to extension: Double) throws(ServoError) {
      if let failure = script.failure { throw failure }
      script.calls.append(.move(step, `extension`))
    }
    mutating func release(_ step: StepID) { script.calls.append(.release(step)) }
  }

  var motions: Int { calls.count { if case .begin = $0 { true } else { false } } }
}

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

  func command(_ step: StepID, _ request: Command.Request, vehicle: UUID = car.uuid, nonce: [UInt8]? = nil) -> [UInt8] {
    Command(
      vehicle: vehicle, step: step, request: request, nonce: nonce ?? randomBytes(Command.nonceSize), token: token
    ).sealed(by: device, to: controller).bytes
  }
}

/// A controller with its keys, its folder and its servo, at any hour that a test likes.
final class Bench {
  let folder = try! TemporaryFolder()
  let decryption = DecryptionKey()
  let signing = SigningKey()
  let operatorKey = SigningKey()
  let servo = ServoScript()
  var controller: Controller!
  var events: [Controller.Event] = []
  var time = ControllerTime(clock: 1_000, wall: 1_800_000_000)
  /// How long the medium takes: what passes between two looks at the clock, milliseconds.
  var delay: Int64 = 0
  var policy = Policy(methods: [.beacon], zone: .near, proofAge: 10_000)
  var secrets = StepSecrets()
  var vehicle = car

  var journal: String { folder.path + "/journal.json" }

  init() { start() }

  /// Starts the controller, or starts it anew as after a power cut.
  func start() {
    controller = nil
    let log = Box()
    controller = Controller(
      vehicle: vehicle,
      keys: .init(decryption: decryption, signing: signing, operatorKey: operatorKey.verificationKey),
      policy: policy, secrets: secrets, profile: MotionProfile(travel: 1_000, limit: 3_000),
      journal: try! Journal.open(journal, steps: [left, right], installed: .close),
      servo: ServoScript.Driver(script: servo), record: { log.events.append($0) })
    box = log
  }

  final class Box { var events: [Controller.Event] = [] }
  var box = Box()

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
    let clock = {
      defer { self.wait(self.delay) }
      return self.time
    }
    return controller.receive(payload, on: step, retained: retained, at: clock).map(read)
  }

  /// Lets time pass in ticks.
  func run(for milliseconds: Int64) -> [Statement] {
    var statements: [Statement] = []
    let end = time.clock + milliseconds
    while time.clock < end {
      wait(MotionProfile.tick)
      statements += controller.advance(to: time).map(read)
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
