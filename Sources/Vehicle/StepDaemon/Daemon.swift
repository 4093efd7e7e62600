import Bluetooth
import Domain
import Encoding
import FileFormats
import Glibc
import MQTT
import StepController
import StepProtocol
package import StepdConfiguration
import SystemIO

/// What the program was built from, and for.
package struct Build: Sendable {
  package var version: String
  /// Nil if unknown.
  package var commit: String?
  package var architecture: String

  package init(version: String, commit: String?, architecture: String) {
    self.version = version
    self.commit = commit
    self.architecture = architecture
  }
}

/// `stepd`: a controller with its broker, journal, servos, beacons, log and signals.
package struct Daemon {
  private let setup: ControllerSetup
  private let build: Build
  private let isVerbose: Bool
  private let beacons: [BeaconPlan]

  /// Connects to nothing and moves nothing.
  ///
  package init(_ setup: ControllerSetup, build: Build, isVerbose: Bool = false) {
    self.setup = setup
    self.build = build
    self.isVerbose = isVerbose
    beacons = BeaconPlan.all(of: setup.vehicle, minors: setup.secrets.minors, radios: setup.beaconRadios)
  }

  /// Reads what otherwise only `run` reads: certificates, their key, and the journal. Also checks that the servos' and
  /// the beacons' hardware is there.
  ///
  /// - Parameter now: Unix time.
  /// - Returns: the hardware that was found, and warnings about what will soon fail.
  package func check(now: Int64) throws -> (found: [String], warnings: [String]) {
    try setup.broker.check()
    let findings = try certificateFindings(now: now)
    if let fault = findings.first(where: { $0.condition != .endsSoon }) { throw fault.error }
    try FileJournal.check(setup.file.journal)
    var found: [String] =
      switch setup.file.servo {
      case .simulated: []
      case .pwm(let outputs): try outputs.check()
      case .pca9685(let outputs): try outputs.check()
      }
    for (sensor, wiring) in setup.file.inputs.wirings.sorted(by: { $0.key.description < $1.key.description }) {
      if let line = try wiring.check() { found.append("the input \(sensor) is \(line)") }
    }
    try setup.file.watchdog?.check()
    try setup.trafficGuard?.feed.check()
    for plan in beacons {
      do throws(RadioError) { try plan.radio.checkAdvertising(plan.steps.count) } catch {
        throw BeaconError(cause: error)
      }
    }
    if let line = try checkLink() { found.append(line) }
    return (found, findings.map { $0.error.description })
  }

  /// - Returns: what was found; nil if no links are to be taken.
  private func checkLink() throws -> String? {
    guard let adapter = setup.file.link else { return nil }
    let radio = RadioSpec.hci(adapter)
    do throws(RadioError) {
      let sent = beacons.first { $0.radio == radio }?.steps.count ?? 0
      try radio.checkAdvertising(sent + 1)
      try LinkAcceptor.check(adapter: adapter)
      return "\(radio) takes riders' links, beside \(sent == 1 ? "1 beacon" : "\(sent) beacons")"
    } catch {
      throw BeaconError(cause: error)
    }
  }

  private typealias CertificateFile = Broker.TLS.CertificateFile
  /// What is wrong with a file of certificates, or soon will be.
  private typealias CertificateFinding = (error: ConfigurationError, condition: CertificateFile.Condition)

  /// What this computer's clock makes of the certificates.
  ///
  /// - Parameter now: Unix time.
  private func certificateFindings(now: Int64) throws -> [CertificateFinding] {
    guard let tls = setup.broker.tls else { return [] }
    let files = try tls.certificateFiles()
    let authorityEnd = files.first { $0.path == tls.authority }?.end ?? .max
    return files.compactMap { file in
      let condition = file.condition(at: now)
      func finding(_ text: String, hint: String? = nil) -> CertificateFinding {
        (ConfigurationError(file.path, text, hint: hint), condition)
      }
      if condition == .valid { return nil }
      if condition == .early {
        return finding(
          CertificateFile.meaning(ofEarly: Timestamp.text(file.begin)),
          hint: CertificateFile.clockRemedy.map { "set the clock: `\($0)`" })
      }
      let left = file.end - now
      let end = left < 0 ? "expired \(Self.days(-left)) ago" : "expires in \(Self.days(left))"
      if file.path == tls.authority { return finding("the certificate authority \(end); \(Self.replacement)") }
      // A renewed certificate would end with its authority, too: then only the authority is named.
      return file.end < authorityEnd ? finding("the certificate \(end); \(Self.renewal)") : nil
    }
  }

  private static let renewal = "renew it: `stepctl provision renew DIR`"
  private static let replacement = "make the vehicle again: `stepctl provision vehicle DIR --force`"

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
    // Before anything that belongs to the vehicle is written.
    let identity = try VehicleLock(setup)
    defer { identity.close() }
    if let stranger = identity.stranger { log.write(stranger) }
    let (journalReports, servoReports) = (try Mailbox<JournalReport>(), try Mailbox<ServoReport>())
    let servo = try makeServo(servoReports)
    let journal = try FileJournal(
      setup.file.journal, steps: setup.vehicle.steps.map(\.id), installed: setup.file.installed,
      report: { journalReports.post($0) })
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
    let standing = try setup.file.placeReceiver.map { try ReceiverListener($0) }
    defer { standing?.close() }
    var senders: [BeaconSender] = []
    defer { for sender in senders { sender.close() } }
    warnOfSharedRadios(log)
    for plan in beacons { senders.append(try BeaconSender(plan)) }
    let links = try setup.file.link.map {
      try LinkListener($0, key: setup.keys.decryption.encryptionKey, measures: !setup.ears.isEmpty)
    }
    defer { links?.close() }
    let screen = try CommandScreen(
      Dictionary(uniqueKeysWithValues: setup.vehicle.steps.map { (setup.topic.setPosition($0.id), $0.id) }))
    let link = try connect(screen)
    defer { link.close() }
    log.write(.notice, "\(setup.vehicle.name), \(setup.vehicle.steps.count) steps, broker \(setup.broker)")
    warnOfCertificates(log)
    let events = try EventSpool(
      "\(setup.file.journal).events", vehicle: setup.vehicle.uuid, key: setup.keys.signing, link: link,
      topic: setup.topic.events)
    defer { events.finish(within: .seconds(1)) }
    let supervision = Supervision(try ServiceManager(), try setup.file.watchdog.map(Watchdog.init))
    defer { supervision.end() }
    let metrics = try setup.file.metrics.map { try MetricsFile($0, build: build) }
    defer { metrics?.close() }
    let loop = try ControllerLoop(
      makeController(journal.found), steps: setup.vehicle.steps.map(\.id), topic: setup.topic,
      .init(
        link: link, screen: screen, broker: "\(setup.broker)", keys: setup.keys, journal: journal,
        journalReports: journalReports, servo: servo, servoReports: servoReports,
        inputs: setup.file.inputs.wirings.isEmpty ? nil : try InputReader(setup.file.inputs.wirings), beacons: senders,
        ears: ears, links: links, awaited: awaited, reloader: try Reloader(setup, hangups), road: road,
        receiver: receiver, standing: standing,
        supervision: supervision, events: events, metrics: metrics, log: log))
    try loop.run(until: interruption)
  }

  private func makeServo(_ reports: Mailbox<ServoReport>) throws -> any ServoDriver {
    try setup.file.servo.driver(configuration: setup.file.absolutePath) { reports.post($0) }
  }

  private func makeController(_ journal: Journal) -> Controller {
    Controller(
      vehicle: setup.vehicle, keys: setup.keys, policy: setup.file.policy, secrets: setup.secrets,
      profile: setup.file.profile, inputs: setup.file.inputs,
      hearing: setup.ears.isEmpty ? nil : Hearing(setup.vehicle, powers: setup.ears.mapValues(\.measuredPower)),
      guards: setup.trafficGuard.map { [FeedGuard($0.rules)] } ?? [], journal: journal, version: build.version)
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

  /// A wrong clock is no reason to end: a time service may set it later, and the connection is tried again without end.
  private func warnOfCertificates(_ log: Log) {
    let now = WallClock.seconds
    // A file that cannot be read is reported with the connection.
    let findings = (try? certificateFindings(now: now)) ?? []
    for finding in findings { log.write(.warning, "\(finding.error)") }
    guard findings.contains(where: { $0.condition == .early }) else { return }
    log.write(.warning, "waiting until this computer's clock is set: it shows \(Timestamp.text(now))")
  }

  private func warnOfSharedRadios(_ log: Log) {
    for plan in beacons where plan.steps.count > 1 {
      log.write(
        .warning, "\(plan.names): \(plan.radio) sends all of these beacons, so nobody can tell the sides by them")
    }
  }
}
