import Domain
import MQTT
import StepController
import StepProtocol
import SystemIO

/// A controller on an event loop: brings it requests, reports and ticks, and performs what it decides.
///
/// Nothing here waits for a broker, a disk, a servo, a radio or whoever reads the log: each has a thread of its own.
final class ControllerLoop {
  struct Parts {
    let link: any CommandLink
    /// What the log calls it.
    let broker: String
    let journal: any JournalStore
    let journalReports: Mailbox<JournalReport>
    let servo: any ServoDriver
    let servoReports: Mailbox<ServoReport>
    var inputs: InputReader?
    var beacons: [BeaconSender] = []
    var supervision: Supervision?
    let log: Log
  }

  /// How long the journal and the servos may take at the end, and then the broker.
  private static let patience = (settling: Duration.seconds(5), delivery: Duration.seconds(2))

  private enum Ending {
    case no
    /// What moves is brought to its end.
    case settling
    /// The last statements are on their way to the broker.
    case delivering
  }

  private var controller: Controller
  private let parts: Parts
  private let topic: TopicPrefix
  private let topics: [String: StepID]
  private let loop: EventLoop
  private let start = ContinuousClock.now
  private var ending = Ending.no
  private var tick: Registration?
  private var lastTick = ContinuousClock.now
  private var settling: Registration?
  private var unacknowledged: Set<PublishID> = []
  private var wasConnected = false
  private var lostInputs: Set<SensorID> = []
  private var inputsAnswer = true
  private var lost: (count: Int, told: ContinuousClock.Instant)

  init(_ controller: Controller, steps: [StepID], topic: TopicPrefix, _ parts: Parts) throws {
    self.controller = controller
    self.parts = parts
    self.topic = topic
    topics = Dictionary(uniqueKeysWithValues: steps.map { (topic.setPosition($0), $0) })
    loop = try EventLoop()
    lost = (0, start)
  }

  /// Runs until the interruption; a motion that is under way is brought to its end first, and the last statements to the
  /// broker, if there is one.
  func run(until interruption: Interruption) throws {
    var registrations = [
      try loop.watch(parts.link.descriptor) { [unowned self] in try takeEvent() },
      try loop.receive(parts.journalReports) { [unowned self] in handle(.journal($0)) },
      try loop.receive(parts.servoReports) { [unowned self] in handle(.servo($0)) },
    ]
    if let inputs = parts.inputs {
      registrations.append(try loop.receive(inputs.events) { [unowned self] in take($0) })
    }
    for sender in parts.beacons {
      registrations.append(try loop.receive(sender.events) { [parts] in parts.log.write($0, of: sender.plan) })
    }
    defer { for registration in registrations { registration.cancel() } }
    var signal: Registration?
    signal = try loop.watch(interruption.number) { [unowned self] in
      signal?.cancel()
      end()
    }
    loop.schedule(at: .now) { [unowned self] in parts.supervision?.begin(on: loop) }
    try loop.run()
  }

  private func handle(_ input: Controller.Input) {
    let time = ControllerTime(
      clock: Int64(start.duration(to: .now).inSeconds * 1000), wall: WallClock.seconds)
    for effect in controller.handle(input, at: time) {
      switch effect {
      case .publish(let publication):
        let id = parts.link.publish(
          topic: topic.status(publication.step), payload: publication.payload, retain: publication.retain)
        if let id { unacknowledged.insert(id) }
      case .commit(let journal, let ticket): parts.journal.commit(journal, ticket)
      case .servo(let order): parts.servo.execute(order)
      case .record(let event): parts.log.write(event)
      }
    }
    if controller.needsTicks, tick == nil { scheduleTick() }
    if ending == .settling { settle() }
  }

  /// In step with the last tick, unless that came late: two in a row would be one frame of the servo.
  private func scheduleTick() {
    let (now, length) = (ContinuousClock.now, Duration.milliseconds(MotionProfile.tick))
    lastTick = lastTick + length > now ? lastTick + length : now + length
    tick = loop.schedule(at: lastTick) { [unowned self] in
      tick = nil
      checkInputs()
      handle(.tick)
    }
  }

  // MARK: - Inputs

  private func take(_ event: InputReader.Event) {
    let sensor = event.report.sensor
    if let loss = event.loss {
      lostInputs.insert(sensor)
      parts.log.write(.warning, "the input \(sensor) is lost: \(loss); trying again")
    } else {
      let isActive = event.report.isActive == true
      let isBack = lostInputs.remove(sensor) != nil
      parts.log.write(
        isBack ? .notice : .debug, "the input \(sensor) is \(isActive ? "active" : "inactive")\(isBack ? " again" : "")"
      )
    }
    handle(.sensed(event.report))
  }

  /// While something may move, what was read last must not be older than it seems.
  private func checkInputs() {
    guard let inputs = parts.inputs else { return }
    let answers = inputs.answers()
    if inputsAnswer, !answers {
      parts.log.write(.error, "the inputs are lost: reading one of them does not come to an end")
      for sensor in inputs.sensors { handle(.sensed(SensorReport(sensor, isActive: nil))) }
    }
    inputsAnswer = answers
  }

  // MARK: - The broker

  /// One at a time: whoever sends more than can be read holds up neither a motion nor the signal.
  private func takeEvent() throws {
    switch try parts.link.next() {
    case .connected?:
      wasConnected = true
      unacknowledged = []
      parts.log.write(.notice, "connected to \(parts.broker)")
      parts.supervision?.tell(status: "connected to \(parts.broker)")
      handle(.connected)
    case .disconnected(let error)?:
      // Certificates that never served will not mend themselves; those that did may be in the middle of a renewal.
      if case .unusableFile = error, !wasConnected { throw error }
      if ending == .delivering { return loop.stop() }
      parts.log.write(.warning, "\(error); trying again")
      parts.supervision?.tell(status: "\(error); trying again")
    case .message(let message)?:
      guard ending == .no, let step = topics[message.topic] else { break }
      handle(.request(Request(message.payload, on: step, isRetained: message.isRetained)))
    case .acknowledged(let id)?:
      unacknowledged.remove(id)
      if ending == .delivering, unacknowledged.isEmpty { loop.stop() }
    case nil:
      break
    }
    tellLost()
  }

  private func tellLost() {
    let count = parts.link.lost
    guard count > lost.count, lost.told.duration(to: .now) > .seconds(1) else { return }
    parts.log.write(.warning, "\(count - lost.count) messages were lost: more come than can be read")
    lost = (count, .now)
  }

  // MARK: - The end

  private func end() {
    ending = .settling
    parts.supervision?.stopping()
    parts.log.write(.notice, controller.isMoving ? "ending when the step has stopped" : "ending")
    for sender in parts.beacons { sender.stop.interrupt() }
    handle(.ending)
  }

  private func settle() {
    if controller.isAtRest { return deliver() }
    // A motion has a limit of its own; a disk or a servo that hangs has none.
    guard !controller.needsTicks, settling == nil else { return }
    settling = loop.schedule(at: .now + Self.patience.settling) { [unowned self] in
      parts.log.write(.warning, "the journal or a servo does not answer")
      deliver()
    }
  }

  private func deliver() {
    guard ending == .settling else { return }
    ending = .delivering
    settling?.cancel()
    if unacknowledged.isEmpty { return loop.stop() }
    loop.schedule(at: .now + Self.patience.delivery) { [unowned self] in loop.stop() }
  }
}
