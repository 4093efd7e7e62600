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

/// What a controller gave to a disk that hangs, or to a servo.
private enum Order: Equatable {
  case journal
  case place(StepID)
}

extension Mailbox<Order> {
  /// Whether an order comes so many times, whatever comes in between. None comes from a controller that is held up.
  fileprivate func brings(_ order: Order, times: Int = 1) -> Bool {
    var missing = times
    while missing > 0, let came = next(self, within: .seconds(60)) { if came == order { missing -= 1 } }
    return missing == 0
  }
}

/// Hangs until it is told to go on, from when the left step's motion is to be written.
private final class HangingJournal: JournalStore, Sendable {
  private let worker: Worker<(Journal, CommitTicket)>
  private let orders: Mailbox<Order>

  init(
    until isBack: Interruption, _ orders: Mailbox<Order>, report: @escaping @Sendable (JournalReport) -> Void
  ) throws {
    self.orders = orders
    worker = try Worker { commits in
      for (journal, ticket) in commits {
        if Self.hangs(at: journal) { _ = try? waitReadable([isBack.number], until: nil) }
        report(.committed(ticket))
      }
    }
  }

  private static func hangs(at journal: Journal) -> Bool { journal.entries[left]?.motion != nil }

  func commit(_ journal: Journal, _ ticket: CommitTicket) {
    if Self.hangs(at: journal) { orders.post(.journal) }
    worker.post((journal, ticket))
  }
}

/// Takes the right step's places at once, and those of the left one when it is told to go on.
private final class UnevenServo: ServoDriver, Sendable {
  private let orders: Mailbox<Order>
  private let workers: [StepID: Worker<ServoOrder>]

  init(
    until isBack: Interruption, _ orders: Mailbox<Order>, report: @escaping @Sendable (ServoReport) -> Void
  ) throws {
    self.orders = orders
    var workers: [StepID: Worker<ServoOrder>] = [:]
    for step in [left, right] {
      workers[step] = try Worker { orders in
        for order in orders {
          if case .prepare = order.action {
            report(ServoReport(order, .ready(at: nil)))
          } else {
            if step == left { _ = try? waitReadable([isBack.number], until: nil) }
            report(ServoReport(order, .done))
          }
        }
      }
    }
    self.workers = workers
  }

  func execute(_ order: ServoOrder) {
    if case .move = order.action { orders.post(.place(order.step)) }
    workers[order.step]!.post(order)
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
    _ link: PlayedLink, travel: Int64, timeouts: (settling: Duration, delivery: Duration) = ControllerLoop.timeouts,
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
          servoReports: servoReports, log: log, timeouts: timeouts))
      try loop.run(until: interruption)
      log.finish()
    }
    try DetachedThread.start { [ended] in
      // A loop that a busy machine holds up for 200 ms tells of a fault, as it should. Who may give it precedence does.
      var parameter = sched_param()
      parameter.sched_priority = 1
      _ = sched_setscheduler(0, SCHED_RR, &parameter)
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
  func statement(_ step: StepID, within patience: Duration = .seconds(60), _ fits: (Statement) -> Bool) throws
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
  func ends(within patience: Duration = .seconds(60)) throws -> Bool {
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
    var timeouts = ControllerLoop.timeouts
    #expect(timeouts.delivery == .seconds(2))
    // Nothing else ends it.
    timeouts.settling = .seconds(3_600)
    let running = try Running(try PlayedLink(acknowledges: false), travel: 200, timeouts: timeouts, store: file) {
      try SimulatedServo(log: folder.path + "/servo.jsonl", configuration: "stepd.toml", report: $0)
    }
    _ = try running.statement(left) { _ in true }
    let began = Instant.now
    running.isSignalled()
    #expect(try running.ends())
    #expect(began.duration(to: .now) > .seconds(1.9))
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
    // Only the broker's word ends it.
    let timeouts = (settling: Duration.seconds(3_600), delivery: Duration.seconds(3_600))
    let running = try Running(link, travel: 200, timeouts: timeouts, store: file) {
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
    link.happens(.acknowledged(PublishID(7)))
    #expect(try running.ends())
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
    // It waits for no acknowledgement. Should the broker come back meanwhile, it gets this in the place of "online".
    #expect(link.availability.take() == "offline")
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

  @Test("a disk that is slow leaves the other step its ticks")
  func slowDisk() throws {
    let (isBack, orders) = (try Interruption.manual(), try Mailbox<Order>())
    defer { isBack.interrupt() }
    let running = try Running(
      try PlayedLink(), travel: 6_000, store: { try HangingJournal(until: isBack, orders, report: $0) },
      servo: { try UnevenServo(until: isBack, orders, report: $0) })
    _ = try running.moves(.open, right)
    #expect(try running.statement(right) { $0.phase == .moving } != nil)
    let command = try running.moves(.open, left)
    #expect(orders.brings(.journal))
    // More than may fail to come without a fault, and fewer than there are until the command is refused.
    #expect(orders.brings(.place(right), times: 15))
    isBack.interrupt()
    #expect(try running.statement(left) { $0.answer?.command == command }?.phase == .moving)
  }

  @Test("a disk that hangs refuses a command meanwhile, and the step begins nothing when the disk is back")
  func hungDisk() throws {
    let isBack = try Interruption.manual()
    defer { isBack.interrupt() }
    let running = try Running(
      try PlayedLink(), travel: 200, store: { try HangingJournal(until: isBack, try Mailbox(), report: $0) },
      servo: { try SimulatedServo(log: folder.path + "/servo.jsonl", configuration: "stepd.toml", report: $0) })
    let refused = try running.moves(.open, left)
    // `StepControllerTests` has the time: a second.
    let answer = try running.statement(left) { $0.answer?.command == refused }?.answer
    #expect(answer?.outcome == .refused(Refusal(.unavailable)))
    isBack.interrupt()
    // What the disk says late comes before what it says of this command: the step is closed, and was not opened.
    let closing = try running.moves(.close, left)
    #expect(try running.statement(left) { $0.answer?.command == closing }?.position == .close)
    let log = folder.path + "/servo.jsonl"
    #expect(try !Files.exists(log) || TemporaryFolder.text(log).isEmpty)
    let command = try running.moves(.open, left)
    #expect(try running.statement(left) { $0.answer?.command == command }?.phase == .moving)
    #expect(try running.statement(left) { $0.answer?.command == command }?.position == .open)
    #expect(try TemporaryFolder.text(folder.path + "/servo.jsonl").split(separator: "\n").count == 1)
  }

  @Test("a servo that does not answer ends in a fault, and leaves the other step its ticks")
  func slowServo() throws {
    let (isBack, orders) = (try Interruption.manual(), try Mailbox<Order>())
    defer { isBack.interrupt() }
    let running = try Running(try PlayedLink(), travel: 6_000, store: file) {
      try UnevenServo(until: isBack, orders, report: $0)
    }
    _ = try running.moves(.open, right)
    #expect(try running.statement(right) { $0.phase == .moving } != nil)
    _ = try running.moves(.open, left)
    #expect(orders.brings(.place(left)))
    // Ten pass until the fault.
    #expect(orders.brings(.place(right), times: 15))
    #expect(try running.statement(left) { $0.phase == .fault }?.fault == .driver)
  }
}
