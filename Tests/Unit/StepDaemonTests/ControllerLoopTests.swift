import Cryptography
import Domain
import Foundation
import MQTT
import StepController
import StepProtocol
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import StepDaemon

/// A broker in memory: it acknowledges what is published, unless a test wants it not to.
private final class PlayedLink: CommandLink, Sendable {
  struct Published: Sendable {
    let topic: String
    let payload: [UInt8]
    let retain: Bool
  }

  /// Statements.
  let published: Mailbox<Published>
  /// What was said of the controller's being there.
  let availability: Mailbox<String>
  private let events: Mailbox<MQTTConnection.Event>
  private let last = Mutex<UInt64>(0)
  private let acknowledges: Bool

  init(acknowledges: Bool = true) throws {
    self.acknowledges = acknowledges
    published = try Mailbox()
    availability = try Mailbox()
    events = try Mailbox()
  }

  func happens(_ event: MQTTConnection.Event) { events.post(event) }

  var descriptor: Int32 { events.descriptor }
  func next() -> MQTTConnection.Event? { events.take() }

  func publish(topic: String, payload: [UInt8], retain: Bool) -> PublishID? {
    let id = last.withLock { last in
      last += 1
      return PublishID(last)
    }
    if topic == Running.topic.availability, retain {
      availability.post(String(decoding: payload, as: UTF8.self))
    } else {
      published.post(Published(topic: topic, payload: payload, retain: retain))
    }
    if acknowledges { events.post(.acknowledged(id)) }
    return id
  }

  var holdUps: Int { 0 }
}

/// Writes as slowly as a worn card.
private final class SlowJournal: JournalStore, Sendable {
  private let worker: Worker<CommitTicket>

  init(_ delay: useconds_t, report: @escaping @Sendable (JournalReport) -> Void) throws {
    worker = try Worker { tickets in
      usleep(delay)
      for ticket in tickets { report(.committed(ticket)) }
    }
  }

  func commit(_ journal: Journal, _ ticket: CommitTicket) { worker.post(ticket) }
}

/// Takes a step's positions at once and those of the other slowly, and notes when they came.
private final class UnevenServo: ServoDriver, Sendable {
  let times = Mutex<[StepID: [Instant]]>([:])
  private let workers: [StepID: Worker<ServoOrder>]

  init(_ delays: [StepID: useconds_t], report: @escaping @Sendable (ServoReport) -> Void) throws {
    var workers: [StepID: Worker<ServoOrder>] = [:]
    for (step, delay) in delays {
      workers[step] = try Worker { orders in
        for order in orders {
          usleep(delay)
          if case .prepare = order.action {
            report(ServoReport(order, .ready(at: nil)))
          } else {
            report(ServoReport(order, .done))
          }
        }
      }
    }
    self.workers = workers
  }

  func execute(_ order: ServoOrder) {
    if case .move = order.action { times.withLock { $0[order.step, default: []].append(.now) } }
    workers[order.step]!.post(order)
  }

  /// The longest time between two positions of a step.
  func worstTick(_ step: StepID) -> Duration {
    let times = times.withLock { $0[step] ?? [] }
    return zip(times, times.dropFirst()).map { $0.duration(to: $1) }.max() ?? .zero
  }
}

/// A controller on its loop, on a thread of its own, and a rider.
private final class Running {
  static let car = try! Vehicle(
    name: "Rolling Chassis", uuid: UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!,
    steps: [Step(id: left, side: .left, major: 1), Step(id: right, side: .right, major: 2)])
  static let topic = TopicPrefix("arena/car")!

  let link: PlayedLink
  private let interruption: Interruption
  private let ended: Mailbox<(any Error)?>
  private let keys: Controller.Keys
  private let device = SigningKey()
  private let token: String

  init(
    _ link: PlayedLink, travel: Int64,
    store: (@escaping @Sendable (JournalReport) -> Void) throws -> any JournalStore & Sendable,
    servo: (@escaping @Sendable (ServoReport) -> Void) throws -> any ServoDriver & Sendable
  ) throws {
    self.link = link
    let (operatorKey, signing) = (SigningKey(), SigningKey())
    let keys = Controller.Keys(
      decryption: DecryptionKey(), signing: signing, operatorKey: operatorKey.verificationKey)
    self.keys = keys
    token = Token(
      issuer: "test", subject: "alice", vehicle: Self.car.uuid, steps: [left, right],
      notBefore: WallClock.seconds - 60, expires: WallClock.seconds + 600, device: device.verificationKey
    ).signed(by: operatorKey)
    interruption = try Interruption.manual()
    ended = try Mailbox()
    let journalReports = try Mailbox<JournalReport>()
    let servoReports = try Mailbox<ServoReport>()
    let store = try store { journalReports.post($0) }
    let servo = try servo { servoReports.post($0) }
    let controller = { @Sendable in
      let closed = Journal.Entry(position: .close)
      return Controller(
        vehicle: Self.car, keys: keys, policy: Policy(methods: [.qr], zone: .near, proofAge: 10_000),
        profile: MotionProfile(travel: travel, limit: 10_000),
        journal: Journal(entries: [left: closed, right: closed]))
    }
    let run = { @Sendable [interruption] in
      let null = try Descriptor.open("/dev/null", O_WRONLY)
      let log = try Log(isVerbose: false, to: null.number)
      let loop = try ControllerLoop(
        controller(), steps: [left, right], topic: Self.topic,
        .init(
          link: link, screen: CommandScreen([left, right].reduce(into: [:]) { $0[Self.topic.setPosition($1)] = $1 }),
          broker: "memory", keys: keys, journal: store, journalReports: journalReports, servo: servo,
          servoReports: servoReports, log: log))
      try loop.run(until: interruption)
      log.finish()
    }
    try DetachedThread.start { [ended] in
      do {
        try run()
        ended.post(nil)
      } catch {
        ended.post(error)
      }
    }
    link.happens(.connected)
  }

  deinit { interruption.interrupt() }

  /// The next statement about a step that fits.
  func statement(_ step: StepID, within patience: Duration = .seconds(8), _ fits: (Statement) -> Bool) throws
    -> Statement?
  {
    let end = Instant.now + patience
    while .now < end, let published = next(link.published, within: Instant.now.duration(to: end)) {
      let statement = try Statement(payload: published.payload, verifiedBy: keys.signing.verificationKey)
      #expect(published.topic == Self.topic.status(statement.step))
      #expect(published.retain == (statement.answer == nil))
      if statement.step == step, fits(statement) { return statement }
    }
    return nil
  }

  private func send(_ step: StepID, _ request: Command.Request) -> CommandDigest {
    let command = Command(
      vehicle: Self.car.uuid, step: step, request: request, nonce: randomBytes(Command.nonceSize), token: token
    ).sealed(by: device, to: keys.decryption.encryptionKey)
    link.happens(
      .message(Message(topic: Self.topic.setPosition(step), payload: command.bytes, isRetained: false)))
    return command.digest
  }

  /// Asks for a challenge and sends a move.
  func moves(_ target: Command.Move.Target, _ step: StepID) throws -> CommandDigest {
    let asked = send(step, .status)
    let answer = try #require(try statement(step) { $0.answer?.command == asked })
    guard case .challenge(let challenge)? = answer.answer?.outcome else { throw SystemError("ask", code: EPROTO) }
    return send(
      step,
      .move(
        Command.Move(
          target: target, epoch: answer.epoch, challenge: challenge.bytes, deadline: answer.clock + 9_000,
          proof: .code(content: StepLabel(vehicle: Self.car.uuid, step: step).text), proofTime: answer.clock)))
  }

  func isSignalled() { interruption.interrupt() }

  /// Whether it ends.
  ///
  /// - Throws: what it ends with.
  func ends(within patience: Duration = .seconds(10)) throws -> Bool {
    guard let error = next(ended, within: patience) else { return false }
    if let error { throw error }
    return true
  }
}

@Suite("The controller on its loop", .serialized) struct ControllerLoopTests {
  private let folder = try! TemporaryFolder()

  private func file(_ report: @escaping @Sendable (JournalReport) -> Void) throws -> FileJournal {
    try FileJournal(folder.path + "/journal.json", steps: [left, right], installed: .close, report: report)
  }

  private var journal: Journal {
    get throws { try Journal(parsing: Files.read(folder.path + "/journal.json")) }
  }

  @Test("opens a step over link, journal and PWM, and answers twice")
  func opens() throws {
    let pwm = try PWMFolder()
    let running = try Running(try PlayedLink(), travel: 200, store: file) {
      try PulsedServos(pwm.outputs, configuration: "stepd.toml", report: $0)
    }
    let command = try running.moves(.open, left)
    #expect(try running.statement(left) { $0.answer?.command == command }?.phase == .moving)
    let ended = try running.statement(left) { $0.answer?.command == command }
    #expect(ended?.phase == .idle && ended?.position == .open)
    #expect(try pwm.values == [1, 20_000_000, 2_000_000])
    running.isSignalled()
    #expect(try running.ends())
    #expect(try journal.entries[left]?.position == .open)
    #expect(try journal.entries[left]?.motion == nil)
  }

  @Test("a signal lets a motion come to its end, and its last word reach the broker")
  func signalled() throws {
    let running = try Running(try PlayedLink(), travel: 600, store: file) {
      try SimulatedServo(log: folder.path + "/servo.jsonl", configuration: "stepd.toml", report: $0)
    }
    let command = try running.moves(.open, left)
    #expect(try running.statement(left) { $0.answer?.command == command }?.phase == .moving)
    running.isSignalled()
    let ended = try running.statement(left) { $0.answer?.command == command }
    #expect(ended?.phase == .idle && ended?.position == .open)
    #expect(try running.ends())
    #expect(try journal.entries[left]?.position == .open)
  }

  @Test("a broker that acknowledges nothing holds up the end for two seconds")
  func silentBroker() throws {
    let running = try Running(try PlayedLink(acknowledges: false), travel: 200, store: file) {
      try SimulatedServo(log: folder.path + "/servo.jsonl", configuration: "stepd.toml", report: $0)
    }
    _ = try running.statement(left) { _ in true }
    let began = Instant.now
    running.isSignalled()
    #expect(try running.ends(within: .seconds(5)))
    let taken = began.duration(to: .now)
    #expect(taken > .seconds(1.9) && taken < .seconds(4))
  }

  @Test("says that it is there when it is connected, when a late will says otherwise, and that it goes")
  func availability() throws {
    let link = try PlayedLink()
    func says(_ word: String, retained: Bool) {
      link.happens(
        .message(Message(topic: Running.topic.availability, payload: Array(word.utf8), isRetained: retained)))
    }
    let running = try Running(link, travel: 200, store: file) {
      try SimulatedServo(log: folder.path + "/servo.jsonl", configuration: "stepd.toml", report: $0)
    }
    #expect(next(link.availability) == "online")
    says("online", retained: false)
    says("offline", retained: true)
    says("offline", retained: false)
    #expect(next(link.availability) == "online")
    running.isSignalled()
    #expect(try running.ends())
    #expect(next(link.availability) == "offline")
    #expect(link.availability.take() == nil)
  }

  @Test("what it said before of its being there is not waited for at the end: the link may never have sent it")
  func supersededAvailability() throws {
    let link = try PlayedLink(acknowledges: false)
    let running = try Running(link, travel: 200, store: file) {
      try SimulatedServo(log: folder.path + "/servo.jsonl", configuration: "stepd.toml", report: $0)
    }
    #expect(next(link.availability) == "online")
    let will = Message(topic: Running.topic.availability, payload: Array("offline".utf8), isRetained: false)
    for _ in 1...3 {
      link.happens(.message(will))
      #expect(next(link.availability) == "online")
    }
    // The states of the two steps, and the last word.
    for id in [2, 3, 6] as [UInt64] { link.happens(.acknowledged(PublishID(id))) }
    running.isSignalled()
    #expect(next(link.availability) == "offline")
    let signalled = Instant.now
    link.happens(.acknowledged(PublishID(7)))
    #expect(try running.ends())
    #expect(signalled.duration(to: .now) < .milliseconds(1_500))
  }

  @Test("says nothing of itself to a broker that is away")
  func availabilityWithoutBroker() throws {
    let link = try PlayedLink()
    let running = try Running(link, travel: 200, store: file) {
      try SimulatedServo(log: folder.path + "/servo.jsonl", configuration: "stepd.toml", report: $0)
    }
    #expect(next(link.availability) == "online")
    link.happens(.disconnected(.lost(Broker(host: "memory", port: 1, tls: nil), .established)))
    // A message that comes after it: what it is answered with shows that the loop knows of both.
    _ = try running.moves(.open, left)
    running.isSignalled()
    #expect(try running.ends())
    #expect(link.availability.take() == nil)
  }

  @Test("certificates that never served end it")
  func unusable() throws {
    let link = try PlayedLink()
    let error = MQTTError.unusableFile(.key, path: "/key", .mismatch)
    link.happens(.disconnected(error))
    let running = try Running(link, travel: 200, store: file) {
      try SimulatedServo(log: folder.path + "/servo.jsonl", configuration: "stepd.toml", report: $0)
    }
    #expect(throws: error) { try running.ends() }
  }

  @Test("a disk that takes 0.8 s to sync leaves the other step its 20 ms tick")
  func slowDisk() throws {
    let times = Mutex<UnevenServo?>(nil)
    let running = try Running(
      try PlayedLink(), travel: 6_000, store: { try SlowJournal(800_000, report: $0) },
      servo: {
        let servo = try UnevenServo([left: 0, right: 0], report: $0)
        times.withLock { $0 = servo }
        return servo
      })
    _ = try running.moves(.open, right)
    #expect(try running.statement(right) { $0.phase == .moving } != nil)
    let command = try running.moves(.open, left)
    #expect(try running.statement(left) { $0.answer?.command == command }?.phase == .moving)
    let ended = try running.statement(right) { $0.phase != .moving }
    #expect(ended?.position == .open)
    let worst = times.withLock { $0!.worstTick(right) }
    print("worst tick while the other step's journal took 0.8 s: \(worst)")
    // A busy machine may add some; a longer gap would be a fault.
    #expect(worst < .milliseconds(MotionProfile.longestGap))
  }

  @Test("a disk that hangs refuses a command within a second, and the step begins nothing when the disk is back")
  func hungDisk() throws {
    let running = try Running(
      try PlayedLink(), travel: 200, store: { try SlowJournal(3_000_000, report: $0) },
      servo: { try SimulatedServo(log: folder.path + "/servo.jsonl", configuration: "stepd.toml", report: $0) })
    let command = try running.moves(.open, left)
    let began = Instant.now
    let answer = try running.statement(left) { $0.answer?.command == command }?.answer
    #expect(answer?.outcome == .refused(Refusal(.unavailable)))
    #expect(began.duration(to: .now) < .milliseconds(1_300))
    usleep(3_000_000)
    #expect(!Files.exists(folder.path + "/servo.jsonl"))
  }

  @Test("a servo that takes 500 ms for each position ends in a fault, and leaves the other step its 20 ms tick")
  func slowServo() throws {
    let times = Mutex<UnevenServo?>(nil)
    let running = try Running(try PlayedLink(), travel: 3_000, store: file) {
      let servo = try UnevenServo([left: 500_000, right: 0], report: $0)
      times.withLock { $0 = servo }
      return servo
    }
    _ = try running.moves(.open, right)
    #expect(try running.statement(right) { $0.phase == .moving } != nil)
    _ = try running.moves(.open, left)
    #expect(try running.statement(left) { $0.phase == .fault }?.fault == .driver)
    #expect(try running.statement(right) { $0.phase != .moving }?.position == .open)
    let worst = times.withLock { $0!.worstTick(right) }
    print("worst tick while the other step's servo took 500 ms a position: \(worst)")
    // A busy machine may add some; a longer gap would be a fault.
    #expect(worst < .milliseconds(MotionProfile.longestGap))
  }
}
