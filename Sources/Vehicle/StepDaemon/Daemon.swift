import Bluetooth
import Domain
import FileFormats
import Glibc
import MQTT
import StepController
package import StepdConfiguration
import SystemIO

/// `stepd`: a controller with its broker, journal, servos, beacons, log and signals.
package struct Daemon {
  private let setup: ControllerSetup
  private let version: String
  private let isVerbose: Bool
  private let beacons: [BeaconPlan]

  /// Connects to nothing and moves nothing.
  ///
  /// - Parameter version: the version of this program.
  package init(_ setup: ControllerSetup, version: String, isVerbose: Bool = false) {
    self.setup = setup
    self.version = version
    self.isVerbose = isVerbose
    beacons = BeaconPlan.all(of: setup.vehicle, minors: setup.secrets.minors, radios: setup.beaconRadios)
  }

  /// Reads what otherwise only `run` reads: certificates, their key, and the journal. Also checks that the servos' and
  /// the beacons' hardware is there.
  ///
  /// - Parameter now: Unix time.
  /// - Returns: warnings about what will soon fail.
  package func check(now: Int64) throws -> [String] {
    try setup.broker.check()
    let warnings = try checkCertificates(now: now)
    try FileJournal.check(setup.journal)
    switch setup.servo {
    case .simulated: break
    case .pwm(let outputs): try outputs.check()
    case .pca9685(let outputs): try PCA9685(outputs).check()
    }
    for wiring in setup.inputs.wirings.values { try wiring.check() }
    try setup.watchdog?.check()
    try setup.trafficGuard?.feed.check()
    for plan in beacons {
      do throws(RadioError) { try plan.radio.checkAdvertising(plan.steps.count) } catch {
        throw BeaconError(cause: error)
      }
    }
    return warnings
  }

  private func checkCertificates(now: Int64) throws -> [String] {
    try (setup.broker.tls?.certificateFiles() ?? []).compactMap { file in
      let left = file.end - now
      guard left >= 0 else {
        throw ConfigurationError(file.path, "the certificate expired \(Self.days(-left)) ago; \(Self.renewal)")
      }
      return left < Broker.TLS.CertificateFile.notice
        ? "\(file.path): the certificate expires in \(Self.days(left)); \(Self.renewal)" : nil
    }
  }

  private static let renewal = "renew it: `stepctl provision vehicle DIR --renew`"

  private static func days(_ seconds: Int64) -> String {
    switch seconds / 86_400 {
    case 0: "less than a day"
    case 1: "1 day"
    case let count: "\(count) days"
    }
  }

  /// Runs until SIGINT or SIGTERM, then finishes present motions. SIGHUP makes it read the tags and the policy again.
  package func run() throws {
    // Comes before any thread starts, so that every thread leaves the signals to these two.
    let (interruption, hangups) = (try Interruption(atHangup: false), try Hangups())
    // Only stepd may have a raw socket, and not the feed's program.
    Confinement.keepCapabilities()
    let log = try Log(isVerbose: isVerbose)
    defer { log.finish() }
    let (journalReports, servoReports) = (try Mailbox<JournalReport>(), try Mailbox<ServoReport>())
    let journal = try FileJournal(
      setup.journal, steps: setup.vehicle.steps.map(\.id), installed: setup.installed,
      report: { journalReports.post($0) })
    let servo = try makeServo(servoReports)
    let awaited = AwaitedFrames()
    var ears: [Ear] = []
    defer { for ear in ears { ear.close() } }
    for step in setup.vehicle.steps {
      if let ear = setup.ears[step.id] { ears.append(try Ear(step.id, ear.radio, awaited)) }
    }
    let road = try setup.trafficGuard.map { try RoadListener($0.feed) }
    defer { road?.close() }
    let receiver = try setup.trafficGuard?.receiver.map { try ReceiverListener($0) }
    defer { receiver?.close() }
    var senders: [BeaconSender] = []
    defer { for sender in senders { sender.close() } }
    warnOfSharedRadios(log)
    for plan in beacons { senders.append(try BeaconSender(plan)) }
    let screen = try CommandScreen(
      Dictionary(uniqueKeysWithValues: setup.vehicle.steps.map { (setup.topic.setPosition($0.id), $0.id) }))
    let link = try connect(screen)
    defer { link.close() }
    log.write(.notice, "\(setup.vehicle.name), \(setup.vehicle.steps.count) steps, broker \(setup.broker)")
    let events = try EventSpool(
      "\(setup.journal).events", vehicle: setup.vehicle.uuid, key: setup.keys.signing, link: link,
      topic: setup.topic.events)
    defer { events.finish(within: .seconds(1)) }
    let supervision = Supervision(try ServiceManager(), try setup.watchdog.map(Watchdog.init))
    defer { supervision.end() }
    let metrics = try setup.file.metrics.map { try MetricsFile($0, version: version) }
    defer { metrics?.close() }
    let loop = try ControllerLoop(
      makeController(journal.found), steps: setup.vehicle.steps.map(\.id), topic: setup.topic,
      .init(
        link: link, screen: screen, broker: "\(setup.broker)", keys: setup.keys, journal: journal,
        journalReports: journalReports, servo: servo, servoReports: servoReports,
        inputs: setup.inputs.wirings.isEmpty ? nil : try InputReader(setup.inputs.wirings), beacons: senders,
        ears: ears, awaited: awaited, reloader: try Reloader(setup, hangups), road: road, receiver: receiver,
        supervision: supervision, events: events, metrics: metrics, log: log))
    try loop.run(until: interruption)
  }

  private func makeServo(_ reports: Mailbox<ServoReport>) throws -> any ServoDriver {
    switch setup.servo {
    case .simulated(let log): return try SimulatedServo(log: log, report: { reports.post($0) })
    case .pwm(let outputs): return try PulsedServos(outputs, report: { reports.post($0) })
    case .pca9685(let outputs): return try PulsedServos(outputs, report: { reports.post($0) })
    }
  }

  private func makeController(_ journal: Journal) -> Controller {
    Controller(
      vehicle: setup.vehicle, keys: setup.keys, policy: setup.policy, secrets: setup.secrets, profile: setup.profile,
      inputs: setup.inputs,
      hearing: setup.ears.isEmpty ? nil : Hearing(setup.vehicle, powers: setup.ears.mapValues(\.measuredPower)),
      traffic: setup.trafficGuard.map { FeedGuard($0.rules) }, journal: journal, version: version)
  }

  /// Connects to the broker. Messages that come faster than the loop reads stay with the broker.
  private func connect(_ screen: CommandScreen) throws -> MQTTConnection {
    var limits = MQTTConnection.Limits()
    limits.holdsBack = true
    return try MQTTConnection(
      broker: setup.broker, subscriptions: screen.steps.keys.sorted() + [setup.topic.availability, setup.topic.notice],
      quality: .zero, screen: screen.admits,
      will: Will(topic: setup.topic.availability, payload: Availability.offline.payload), reconnecting: .forever,
      limits: limits)
  }

  private func warnOfSharedRadios(_ log: Log) {
    for plan in beacons where plan.steps.count > 1 {
      log.write(
        .warning, "\(plan.names): \(plan.radio) sends all of these beacons, so nobody can tell the sides by them")
    }
  }
}
