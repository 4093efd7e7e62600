import Domain
import MQTT
import StepController
import StepProtocol
import SystemIO
import Traffic

/// Runs a controller on an event loop: passes requests, reports and ticks to the controller, and performs its effects.
///
/// The loop never waits for a broker, a disk, a servo, a radio or a reader of the log: each has its own thread.
final class ControllerLoop {
  struct Parts {
    let link: any CommandLink
    let screen: CommandScreen
    /// The broker's name in the log.
    let broker: String
    let keys: Controller.Keys
    let journal: any JournalStore
    let journalReports: Mailbox<JournalReport>
    let servo: any ServoDriver
    let servoReports: Mailbox<ServoReport>
    var inputs: InputReader?
    var beacons: [BeaconSender] = []
    var ears: [Ear] = []
    /// Nil if the vehicle takes no links.
    var links: LinkListener?
    var awaited = AwaitedFrames()
    var reloader: Reloader?
    var road: RoadListener?
    /// Says where the vehicle is, for the traffic guard.
    var receiver: ReceiverListener?
    /// Says where the vehicle is, for the events.
    var standing: ReceiverListener?
    var supervision: Supervision?
    /// Nil if no operator gets events.
    var events: EventSpool?
    /// Nil if no metrics are written.
    var metrics: MetricsFile?
    let log: Log
    var timeouts = ControllerLoop.timeouts
  }

  /// How long the journal and the servos may take at the end, and after that the broker.
  static let timeouts = (settling: Duration.seconds(5), delivery: Duration.seconds(2))

  /// A connection that lasted so long is no part of an outage.
  private static let steadiness = Duration.seconds(60)

  private enum Ending {
    case no
    /// Steps that move come to the end of their motions.
    case settling
    /// The last statements are being delivered to the broker.
    case delivering
  }

  private var controller: Controller
  private let parts: Parts
  private let topic: TopicPrefix
  private let opener: CommandOpener
  private let loop: EventLoop
  private let start = Instant.now
  private var ending = Ending.no
  private var tick: Registration?
  private var look: Registration?
  private var ticks = Ticks()
  private var settling: Registration?
  private var unacknowledged: Set<PublishID> = []
  /// The last message about whether the controller is online.
  private var availability: PublishID?
  private var wasConnected = false
  /// When the present connection began; nil while there is none.
  private var connected: Instant?
  private var outages = Recurrences()
  /// Whether the last line of the log about the broker says that it is there.
  private var isLoggedAsConnected = false
  private var lostInputs: Set<SensorID> = []
  private var inputsAnswer = true
  private var noticePause: Registration?
  private var standingPlace = StandingPlace()
  private var waitingNotice: [UInt8]?
  private var holdUps: (count: Int, reported: Instant)
  /// Nil if no metrics are written.
  private var metrics: Metrics?
  private let steps: [StepID]

  init(_ controller: Controller, steps: [StepID], topic: TopicPrefix, _ parts: Parts) throws {
    self.controller = controller
    self.parts = parts
    self.topic = topic
    self.steps = steps
    metrics = parts.metrics.map { Metrics(of: steps, build: $0.build, at: WallClock.seconds) }
    opener = try CommandOpener(
      parts.link, parts.screen, links: parts.links, decryption: parts.keys.decryption,
      operatorKeys: controller.operatorKeys)
    loop = try EventLoop()
    holdUps = (0, start)
  }

  /// Runs until the interruption. Then it finishes present motions, and delivers the last statements if a broker is
  /// connected.
  func run(until interruption: Interruption) throws {
    let registrations = try receiveReports()
    defer {
      opener.close()
      for registration in registrations { registration.cancel() }
    }
    var signal: Registration?
    signal = try loop.watch(interruption.number) { [unowned self] in
      signal?.cancel()
      interrupted()
    }
    loop.schedule(at: .now) { [unowned self] in parts.supervision?.begin(on: loop) }
    handle(.started)
    try loop.run()
  }

  /// Connects each part's reports to the loop.
  private func receiveReports() throws -> [Registration] {
    var registrations = [
      try loop.receive(opener.arrivals) { [unowned self] in try arrived($0) },
      try loop.receive(parts.journalReports) { [unowned self] in written($0) },
      try loop.receive(parts.servoReports) { [unowned self] in handle(.servo($0)) },
    ]
    if let inputs = parts.inputs {
      registrations.append(try loop.receive(inputs.events) { [unowned self] in sensed($0) })
    }
    for sender in parts.beacons {
      registrations.append(
        try loop.receive(sender.events) { [unowned self] in
          metrics?.note($0, of: sender.plan)
          parts.log.write($0, of: sender.plan)
        })
    }
    for ear in parts.ears {
      registrations.append(try loop.receive(ear.events) { [unowned self] in listened($0, at: ear) })
    }
    if let links = parts.links {
      registrations.append(
        try loop.receive(links.events) { [unowned self] in
          metrics?.note($0)
          parts.log.write($0, of: links)
        })
    }
    if let events = parts.events {
      registrations.append(
        try loop.receive(events.reports) { [unowned self] in
          metrics?.count($0)
          parts.log.write($0)
        })
      if let notice = controller.notice { events.obey(notice) }
    }
    if let reloader = parts.reloader {
      registrations.append(try loop.receive(reloader.readings) { [unowned self] in reloaded($0) })
    }
    if let file = parts.metrics {
      registrations.append(
        try loop.receive(file.failures) { [parts] in
          parts.log.write(.warning, "cannot write the metrics: \($0); trying again")
        })
      loop.schedule(at: .now) { [unowned self] in writeMetrics(to: file) }
    }
    if let road = parts.road {
      registrations.append(try loop.receive(road.events) { [unowned self] in roadChanged($0, from: road) })
    }
    if let receiver = parts.receiver {
      registrations.append(try loop.receive(receiver.events) { [unowned self] in located($0) })
    }
    if let standing = parts.standing {
      registrations.append(
        try loop.receive(standing.events) { [unowned self] event in
          switch event {
          case .fix(let fix): standingPlace.take(fix, at: .now)
          case .lost(let reason):
            standingPlace.take(nil, at: .now)
            if let reason { parts.log.write(.warning, "\(reason); trying again") }
          }
        })
    }
    return registrations
  }

  /// Milliseconds since the start.
  private func clock(at instant: Instant) -> Int64 {
    Int64(start.duration(to: instant).inSeconds * 1000)
  }

  private func handle(_ input: Controller.Input) {
    let time = ControllerTime(clock: clock(at: .now), wallMilliseconds: WallClock.microseconds / 1000)
    for effect in controller.handle(input, at: time) {
      switch effect {
      case .publish(let publication):
        if let origin = publication.origin {
          parts.links?.send(
            LinkFrame(.answer, of: publication.step, origin.key.seal(publication.payload)), to: origin.link)
          continue
        }
        let id = parts.link.publish(
          topic: topic.status(publication.step), payload: publication.payload, retain: publication.retain)
        if let id { unacknowledged.insert(id) }
      case .commit(let journal, let ticket):
        metrics?.begin(ticket)
        parts.journal.commit(journal, ticket)
      case .servo(let order): parts.servo.execute(order)
      case .log(let entry):
        metrics?.count(entry)
        parts.log.write(entry)
      case .obey(let notice):
        opener.trust(notice.keys)
        parts.events?.obey(notice)
      case .report(var content):
        if content.kind.tellsPlace { content.place = standingPlace.place(at: .now) }
        parts.events?.add(content)
      case .await(let frames): parts.awaited.add(frames)
      case .forget(let frames): parts.awaited.remove(frames)
      case .watch(let road):
        parts.road?.watch(
          .init(until: start + .milliseconds(road.until), position: road.position, error: road.error))
      }
    }
    if controller.needsTicks, tick == nil { scheduleTick() }
    if controller.awaitsCalls, look == nil { scheduleLook() }
    if ending == .settling { settle() }
  }

  private func scheduleTick() {
    tick = loop.schedule(at: ticks.next()) { [unowned self] in ticked() }
  }

  private func ticked() {
    tick = nil
    checkInputs()
    handle(.tick)
  }

  private func written(_ report: JournalReport) {
    metrics?.written(report)
    handle(.journal(report))
  }

  // MARK: - Ears

  private func listened(_ event: EarEvent, at ear: Ear) {
    switch event {
    case .listening:
      metrics?.set(.listening, 1, [("step", ear.step.description)])
      handle(.ear(ear.step, isListening: true))
    case .failed:
      metrics?.set(.listening, 0, [("step", ear.step.description)])
      handle(.ear(ear.step, isListening: false))
    case .heard(let frame, let rssi, let instant):
      handle(.heard(HeardFrame(frame, at: ear.step, rssi: rssi, clock: clock(at: instant))))
    }
    parts.log.write(event, of: ear)
  }

  private func scheduleLook() {
    look = loop.schedule(at: .now + .milliseconds(Hearing.interval)) { [unowned self] in
      look = nil
      handle(.listened)
    }
  }

  // MARK: - The configuration

  private func reloaded(_ reading: Result<Reloader.Reading, any Error>) {
    switch reading {
    case .success(let reading):
      handle(.rules(reading.rules))
      parts.log.write(.notice, "read the configuration again: tags and policy are those of the files")
      if !reading.needsRestart.isEmpty {
        parts.log.write(
          .warning, "restart stepd to apply what else has changed: \(reading.needsRestart.joined(separator: ", "))")
      }
    case .failure(let error):
      parts.log.write(.error, "\(error); the former configuration stays in force")
    }
  }

  // MARK: - The road

  private func roadChanged(_ event: FeedEvent, from listener: RoadListener) {
    switch event {
    case .connected(let wall, let instant):
      metrics?.set(.road, 1)
      handle(.road(.connected(origin: wall - start.duration(to: instant).inSeconds)))
    case .frame(let frame, let instant):
      handle(.road(.frame(frame, clock: clock(at: instant))))
      listener.taken()
    case .lost:
      metrics?.set(.road, 0)
      handle(.road(.lost))
    }
    parts.log.write(event, of: listener)
  }

  private func located(_ event: ReceiverEvent) {
    switch event {
    case .fix(let fix): handle(.road(.fix(fix.flatMap(VehiclePlace.Fix.init))))
    case .lost(let reason):
      handle(.road(.fix(nil)))
      if let reason { parts.log.write(.warning, "\(reason); trying again") }
    }
  }

  // MARK: - Metrics

  private func writeMetrics(to file: MetricsFile) {
    let now = clock(at: .now)
    for step in steps {
      guard let condition = controller.condition(of: step) else { continue }
      metrics?.set(condition, of: step)
      if parts.road != nil { metrics?.set(controller.watch(of: step, at: now), of: step) }
    }
    metrics?.set(.connected, connected == nil ? 0 : 1)
    metrics?.set(.notice, controller.notice.map { Double($0.sequence) } ?? 0)
    metrics?.set(.lostLines, Double(parts.log.lost))
    metrics?.set(.holdUps, Double(parts.link.holdUps))
    if let text = metrics?.text { file.write(text) }
    loop.schedule(at: .now + MetricsFile.interval) { [unowned self] in writeMetrics(to: file) }
  }

  // MARK: - Inputs

  private func sensed(_ event: InputEvent) {
    let sensor = event.report.sensor
    metrics?.set(.lostInput, event.report.isActive == nil ? 1 : 0, [("input", sensor.description)])
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

  /// While something may move, a reader that does not answer makes all its inputs count as lost.
  private func checkInputs() {
    guard let inputs = parts.inputs else { return }
    let answers = inputs.answers()
    if inputsAnswer, !answers {
      parts.log.write(.error, "all inputs count as lost: the thread that reads them does not answer")
      for sensor in inputs.sensors { handle(.sensed(SensorReport(sensor, isActive: nil))) }
    }
    inputsAnswer = answers
  }

  // MARK: - The broker

  private func arrived(_ arrival: CommandOpener.Arrival) throws {
    opener.taken()
    switch arrival {
    case .event(let event): try connectionChanged(event)
    // A step that still moves can be stopped; the controller itself begins nothing more.
    case .request(let request): if ending != .delivering { handle(.request(request)) }
    case .notice(let payload): if ending == .no { noticeArrived(payload) }
    case .ignored(let step, let reason, let count):
      metrics?.count(Outcome(step, .ignored, cause: reason.cause), times: count)
      parts.log.write(step, reason, count: count)
    case .failed(let error): throw error
    }
    warnOfHoldUps()
  }

  private func connectionChanged(_ event: MQTTConnection.Event) throws {
    switch event {
    case .connected:
      wasConnected = true
      unacknowledged = []
      connected = .now
      metrics?.count(.connections)
      if !isLoggedAsConnected { parts.log.write(.notice, "connected to \(parts.broker)") }
      isLoggedAsConnected = true
      parts.supervision?.show(status: "connected to \(parts.broker)")
      publish(.online)
      handle(.connected)
      parts.events?.connected()
    case .disconnected(let error):
      if let connected, connected.duration(to: .now) >= Self.steadiness { outages.forget() }
      connected = nil
      parts.events?.disconnected()
      // Certificates that never worked will not start to work. Those that did may be in the middle of a renewal.
      if case .unusableFile = error, !wasConnected { throw error }
      if ending == .delivering { return loop.stop() }
      if let count = outages.note(error.description, at: .now) {
        let more = count > 1 ? " (\(count) times since the last such line)" : ""
        parts.log.write(.warning, "\(error); trying again\(more)")
        isLoggedAsConnected = false
      }
      parts.supervision?.show(status: "\(error); trying again")
    case .message(let message) where message.topic == topic.notice:
      if ending == .no { noticeArrived(message.payload) }
    case .message(let message):
      // The broker has noticed only now that an older connection of this controller is gone, and has published its
      // will.
      if ending == .no, message.topic == topic.availability, !message.isRetained,
        message.payload != Availability.online.payload
      {
        publish(.online)
      }
    case .acknowledged(let id):
      let isStatement = unacknowledged.remove(id) != nil
      if !isStatement || parts.events?.isStalled == true { parts.events?.acknowledged(id) }
      if ending == .delivering, unacknowledged.isEmpty { loop.stop() }
    }
  }

  /// Takes the operator's notice. A client that may write to the topic must not keep the loop busy: of more than five
  /// notices in a second only the last counts.
  private func noticeArrived(_ payload: [UInt8]) {
    guard noticePause == nil else {
      waitingNotice = payload
      return
    }
    handle(.notice(payload))
    noticePause = loop.schedule(at: .now + .milliseconds(200)) { [unowned self] in
      noticePause = nil
      if let payload = waitingNotice.take() { noticeArrived(payload) }
    }
  }

  private func publish(_ availability: Availability) {
    let id = parts.link.publish(topic: topic.availability, payload: availability.payload, retain: true)
    guard let id else { return }
    // The link may drop the former message unsent, and a broker that keeps publishing "offline" must not fill the set.
    if let former = self.availability { unacknowledged.remove(former) }
    unacknowledged.insert(id)
    self.availability = id
  }

  private func warnOfHoldUps() {
    let count = parts.link.holdUps
    guard count > holdUps.count, holdUps.reported.duration(to: .now) > .seconds(1) else { return }
    parts.log.write(.warning, "more messages come than can be read: the broker may lose some")
    holdUps = (count, .now)
  }

  // MARK: - The end

  private func interrupted() {
    ending = .settling
    parts.supervision?.stopping()
    parts.log.write(.notice, controller.isMoving ? "ending when the step has stopped" : "ending")
    for sender in parts.beacons { sender.stop() }
    handle(.ending)
  }

  private func settle() {
    if controller.isAtRest { return deliver() }
    // A motion has its own limit; a disk or a servo that hangs has none.
    guard !controller.needsTicks, settling == nil else { return }
    settling = loop.schedule(at: .now + parts.timeouts.settling) { [unowned self] in
      parts.log.write(.warning, "the journal or a servo does not answer")
      deliver()
    }
  }

  private func deliver() {
    guard ending == .settling else { return }
    ending = .delivering
    settling?.cancel()
    // Should the broker come back now, this is sent in the place of "online".
    publish(.offline)
    // Without a connection, the broker has already published the will.
    guard connected != nil, !unacknowledged.isEmpty else { return loop.stop() }
    loop.schedule(at: .now + parts.timeouts.delivery) { [unowned self] in loop.stop() }
  }
}
