package import Domain
package import StepController
import StepProtocol
package import StepdConfiguration
package import SystemIO

/// The user interface for leading a servo: gives the orders and shows the results.
package protocol BringUpPanel: AnyObject {
  /// Readable when there is typed input.
  var descriptor: Int32 { get }
  /// Whether the orders come from a script. Then each order waits for the one before it, and a failed order ends the
  /// run, because nobody is there to choose another order.
  var isScript: Bool { get }
  /// The servo can be led from now on.
  func begin()
  /// The input since the last call; nil at its end.
  func typed() throws -> [BringUpLoop.Typed]?
  func show(_ readout: BringUp.Readout)
  func show(_ message: BringUp.Message)
  func showWritten(_ pulses: ServoPulses, to path: String)
}

/// Why a servo cannot be set up.
package enum BringUpError: Failure, Equatable {
  case noStep(StepID, [StepID])
  case noServo(StepID)
  case notCarriedOut(String)
  case stillDriven(String)
  case journal(String)

  package var exitStatus: ExitStatus {
    switch self {
    case .noStep: .usage
    case .noServo: .configuration
    case .notCarriedOut, .stillDriven: .failure
    case .journal: .inputOutput
    }
  }

  package var hint: String? {
    switch self {
    case .stillDriven: "cut the servo's power before you touch the step"
    case .noStep, .noServo, .notCarriedOut, .journal: nil
    }
  }

  package var description: String {
    switch self {
    case .noStep(let id, let steps):
      "the vehicle has no step \(id): it has \(steps.map(\.description).joined(separator: ", "))"
    case .noServo(let id): "[servo.steps.\(id)] is missing"
    case .notCarriedOut(let reason): reason
    case .stillDriven(let reason): "the servo is still driven: \(reason)"
    case .journal(let reason): "the journal cannot be written: \(reason)"
    }
  }
}

/// Runs a `BringUp` on an event loop, with the servo, inputs and journal of a vehicle whose stepd does not run.
///
/// It holds stepd's locks, so that the two programs never drive one servo. Before the step can move, the journal says
/// that its position is unknown. At the end the journal says where the servo was released, if that is an end by the
/// pulses in `stepd.toml`.
package final class BringUpLoop {
  package enum Typed: Equatable, Sendable {
    case order(BringUp.Order)
    /// Write the ends to `stepd.toml`.
    case write
    case quit
  }

  /// How long the first order waits for the inputs to be read: an unread input counts as inactive.
  private static let inputTimeout = Duration.seconds(1)
  /// How long a write of the journal may take.
  private static let journalTimeout = Duration.seconds(5)

  /// The ticket of the last journal.
  private static let last = 2

  private let path: String
  private let panel: any BringUpPanel
  private let identity: VehicleLock
  private let journal: FileJournal
  private let journalReports: Mailbox<JournalReport>
  private let servo: any ServoDriver
  private let servoReports: Mailbox<ServoReport>
  private let inputs: InputReader?
  private let loop: EventLoop
  private let start = Instant.now
  private var bringUp: BringUp
  private var unread: Set<SensorID>
  private var waiting: [Typed] = []
  private var (isInputOver, isEnding, isCommitted) = (false, false, false)
  /// The ends in `stepd.toml`.
  private var writtenEnds: ServoPulses
  private var failure: (any Failure)?
  private var tick: Registration?
  private var ticks = Ticks()
  private var typing: Registration?

  /// Moves nothing. From here on no other program can use the vehicle's servos.
  package init(_ setup: ControllerSetup, step: StepID, _ panel: any BringUpPanel) throws {
    let steps = setup.vehicle.steps.map(\.id)
    guard steps.contains(step) else { throw BringUpError.noStep(step, steps) }
    (path, self.panel) = (setup.file.path, panel)
    (journalReports, servoReports) = (try Mailbox(), try Mailbox())
    identity = try VehicleLock(setup)
    var hardware = setup.file.servo
    switch hardware {
    case .simulated: writtenEnds = ServoPulses()
    case .pwm(var outputs):
      guard let channel = outputs.channels[step] else { throw BringUpError.noServo(step) }
      writtenEnds = channel.pulses
      outputs.channels[step]?.pulses = BringUp.scale
      hardware = .pwm(outputs)
    case .pca9685(var outputs):
      guard let channel = outputs.channels[step] else { throw BringUpError.noServo(step) }
      writtenEnds = channel.pulses
      outputs.channels[step]?.pulses = BringUp.scale
      hardware = .pca9685(outputs)
    }
    servo = try hardware.driver(configuration: setup.file.absolutePath) { [servoReports] in servoReports.post($0) }
    journal = try FileJournal(
      setup.file.journal, steps: steps, installed: setup.file.installed,
      report: { [journalReports] in journalReports.post($0) })
    bringUp = BringUp(step, ends: writtenEnds, inputs: setup.file.inputs)
    let wirings = setup.file.inputs.wirings.filter { $0.key.step == step || $0.key.step == nil }
    unread = Set(wirings.keys)
    inputs = wirings.isEmpty ? nil : try InputReader(wirings)
    loop = try EventLoop()
  }

  /// Runs until the panel or the interruption ends it. It releases the servo in any case.
  package func run(until interruption: Interruption) throws {
    defer { identity.close() }
    panel.begin()
    var registrations = [
      try loop.receive(journalReports) { [unowned self] in written($0) },
      try loop.receive(servoReports) { [unowned self] in handle(.servo($0)) },
    ]
    if let inputs { registrations.append(try loop.receive(inputs.events) { [unowned self] in sensed($0) }) }
    registrations.append(
      try loop.watch(interruption.number) { [unowned self] in
        registrations.last?.cancel()
        end()
      })
    defer { for registration in registrations { registration.cancel() } }
    loop.schedule(at: .now + Self.inputTimeout) { [unowned self] in
      unread = []
      try work()
    }
    commit(.lost)
    let timeout = loop.schedule(at: .now + Self.journalTimeout) { [unowned self] in
      if !isCommitted { failJournal("it does not answer") }
    }
    try loop.run()
    timeout.cancel()
    if let failure { throw failure }
  }

  // MARK: - The journal

  /// - Parameter entry: the new state of the step; the last challenge stays used.
  private func commit(_ entry: Journal.Entry) {
    var content = journal.found
    content.entries[bringUp.step] = entry
    content.entries[bringUp.step]?.challenge = journal.found.entries[bringUp.step]?.challenge
    journal.commit(content, isEnding ? Self.last : 1)
  }

  private func written(_ report: JournalReport) {
    switch report {
    case .failed(_, let reason): failJournal(reason)
    case .committed(Self.last): loop.stop()
    case .committed:
      guard !isEnding else { return }
      isCommitted = true
      handle(.started)
    }
  }

  private func failJournal(_ reason: String) {
    failure = failure ?? BringUpError.journal(reason)
    loop.stop()
  }

  /// Ends the run, and keeps the reason.
  private func fail(_ reason: any Failure) {
    failure = failure ?? reason
    end()
  }

  // MARK: - What is typed

  private func listen() throws {
    guard typing == nil, !isInputOver else { return }
    typing = try loop.watch(panel.descriptor) { [unowned self] in try typed() }
  }

  private func typed() throws {
    let typed: [Typed]?
    do { typed = try panel.typed() } catch {
      // Whatever the error is, the servo is released first.
      return fail(error as? any Failure ?? BringUpError.notCarriedOut("\(error)"))
    }
    if let typed {
      waiting += typed
      // A stop waits for nothing, and voids all earlier input.
      if let last = waiting.lastIndex(of: .order(.stop)) {
        waiting.removeSubrange(...last)
        handle(.ordered(.stop))
      }
    } else {
      isInputOver = true
      typing?.cancel()
    }
    try work()
  }

  private func work() throws {
    while !isEnding, !bringUp.awaitsServo, unread.isEmpty, !(panel.isScript && bringUp.isMoving), !waiting.isEmpty {
      switch waiting.removeFirst() {
      case .order(let order): handle(.ordered(order), callsWork: false)
      case .write: write()
      case .quit: end()
      }
    }
    if isInputOver, !isEnding, waiting.isEmpty, !(panel.isScript && bringUp.isMoving) { end() }
  }

  private func write() {
    do {
      let pulses = bringUp.ends
      try Files.edit(path) { try ControllerFile.setting(pulses, of: bringUp.step, in: $0, path: path) }
      writtenEnds = pulses
      panel.showWritten(pulses, to: path)
    } catch {
      refuse("not written: \(error)")
    }
  }

  private func refuse(_ reason: String) {
    if panel.isScript {
      fail(BringUpError.notCarriedOut(reason))
    } else {
      panel.show(.refused(reason))
    }
  }

  // MARK: - The servo

  private func handle(_ input: BringUp.Input, callsWork: Bool = true) {
    let clock = Int64(start.duration(to: .now).inSeconds * 1000)
    for effect in bringUp.handle(input, at: clock) {
      switch effect {
      case .servo(let order): servo.execute(order)
      case .show(let message): show(message)
      }
    }
    if bringUp.needsTicks, tick == nil { scheduleTick() }
    if !isEnding { panel.show(bringUp.readout) }
    if callsWork, !isEnding { loop.schedule(at: .now) { [unowned self] in try work() } }
  }

  private func scheduleTick() {
    tick = loop.schedule(at: ticks.next()) { [unowned self] in ticked() }
  }

  private func ticked() {
    tick = nil
    checkInputs()
    handle(.tick)
  }

  private func show(_ message: BringUp.Message) {
    switch message {
    case .refused(let reason):
      return refuse(reason)
    case .ready:
      panel.show(message)
      do { try listen() } catch { fail(BringUpError.notCarriedOut("\(error)")) }
      return
    case .held(_, let reason) where panel.isScript || bringUp.readout.pulse == nil && bringUp.awaitsServo:
      panel.show(message)
      return fail(BringUpError.notCarriedOut(reason))
    case .missed(let end) where panel.isScript:
      panel.show(message)
      let name = end == .open ? "open" : "closed"
      return fail(BringUpError.notCarriedOut("the switch at the \(name) end does not see the step"))
    case .released, .driven:
      panel.show(message)
      if case .driven(let reason) = message { failure = BringUpError.stillDriven(reason) }
      return leave()
    case .arrived, .stopped, .held, .marked, .reached, .missed, .passed: break
    }
    panel.show(message)
  }

  // MARK: - Inputs

  private func sensed(_ event: InputEvent) {
    unread.remove(event.report.sensor)
    handle(.sensed(event.report))
  }

  /// While something may move, a reader that does not answer makes all its inputs count as lost.
  private func checkInputs() {
    guard let inputs, bringUp.isMoving, !inputs.answers() else { return }
    for sensor in inputs.sensors { handle(.sensed(SensorReport(sensor, isActive: nil))) }
  }

  // MARK: - The end

  private func end() {
    guard !isEnding else { return }
    isEnding = true
    typing?.cancel()
    // Nothing was set up before the journal has answered.
    if isCommitted { handle(.ended) } else { leave() }
  }

  private func leave() {
    isEnding = true
    let position = bringUp.position(by: writtenEnds)
    let found = journal.found.entries[bringUp.step] ?? .lost
    commit(!bringUp.hasDriven ? found : position == .unknown ? .lost : Journal.Entry(position: position))
    loop.schedule(at: .now + Self.journalTimeout) { [unowned self] in failJournal("it does not answer") }
  }
}
