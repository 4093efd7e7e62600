package import Bluetooth
package import Configuration
import Glibc
package import MQTT
import Domain
package import StepController
import StepProtocol
package import SystemIO

/// `stepd`: joins the controller to a broker, a clock and the signals that end it. One loop on one thread; the
/// broker has another, so that a connection that hangs does not hold up a motion.
package struct Daemon {
  private let setup: ControllerSetup
  private var log: Log
  let beaconPlans: [BeaconPlan]

  /// Reads what the configuration names; nothing is connected and nothing moves.
  package init(
    _ setup: ControllerSetup, isVerbose: Bool = false, isJournal: Bool = false
  ) {
    self.setup = setup
    log = Log(isVerbose: isVerbose, isJournal: isJournal)
    beaconPlans = BeaconPlan.all(of: setup.vehicle, minors: setup.secrets.minors, radios: setup.beaconRadios)
  }

  /// Why the daemon cannot start. Once it runs, only a signal ends it.
  package enum Failure: Error {
    case journal(Journal.Failure)
    case broker(MQTTError)
    case beacon(RadioError)
    case system(SystemError)
  }

  /// Reads what only `run` would read: certificates, their key, and the journal; and sees whether there is what the
  /// servos and the beacons need.
  package func check() throws(Failure) {
    do throws(MQTTError) { try setup.broker.check() } catch { throw .broker(error) }
    do throws(Journal.Failure) { try Journal.check(setup.journal) } catch { throw .journal(error) }
    try checkServo()
    try checkBeacons()
  }

  /// A chip that the kernel does not have would be noticed by the first rider.
  private func checkServo() throws(Failure) {
    guard case .pwm(let pwm) = setup.servo else { return }
    for chip in Set(pwm.channels.values.map(\.chip)).sorted() {
      let folder = "\(pwm.root)/pwmchip\(chip)"
      guard Files.exists(folder) else { throw .system(SystemError("open", folder, code: ENOENT)) }
    }
  }

  /// Runs until SIGINT, SIGTERM or SIGHUP; a motion that is under way is brought to its end first.
  package mutating func run() throws(Failure) {
    let interruption = try system { () throws(SystemError) in try Interruption() }
    let journal: Journal
    do throws(Journal.Failure) {
      journal = try Journal.open(
        setup.journal, steps: setup.vehicle.steps.map(\.id), installed: setup.installed)
    } catch {
      throw .journal(error)
    }
    let log = LogBox(log)
    let controller = Controller(
      vehicle: setup.vehicle, keys: setup.keys, policy: setup.policy, secrets: setup.secrets,
      profile: setup.profile, journal: journal, servo: driver(), record: { log.log.write($0) })
    let topics = Dictionary(uniqueKeysWithValues: setup.vehicle.steps.map { (setup.topic.setPosition($0.id), $0.id) })
    let beacons = try startBeacons(interruption) { log.log.write($0, $1) }
    defer { for beacon in beacons { beacon.close() } }
    let connection: MQTTConnection
    do throws(MQTTError) {
      connection = try MQTTConnection(
        broker: setup.broker, subscriptions: topics.keys.sorted(), reconnecting: .forever)
    } catch {
      throw .broker(error)
    }
    defer { connection.close() }

    let start = ContinuousClock.now
    func time() -> ControllerTime {
      ControllerTime(
        clock: Int64(start.duration(to: .now).inSeconds * 1000), wall: WallClock.seconds)
    }
    var unacknowledged: Set<PublishID> = []
    func publish(_ publications: [Controller.Publication]) {
      for publication in publications {
        let id = connection.publish(
          topic: setup.topic.status(publication.step), payload: publication.payload, retain: publication.retain)
        if let id { unacknowledged.insert(id) }
      }
    }

    log.log.write(.notice, "\(setup.vehicle.name), \(setup.vehicle.steps.count) steps, broker \(setup.broker)")
    var isEnding = false
    var wasConnected = false
    var lost = (count: 0, told: start)
    while !isEnding || controller.isMoving {
      let tick = controller.isMoving ? ContinuousClock.now + .milliseconds(MotionProfile.tick) : nil
      // What nobody takes any more stays readable.
      let waited = (isEnding ? [] : [connection.descriptor, interruption.number]) + beacons.map(\.descriptor)
      _ = try system { () throws(SystemError) in try waitReadable(waited, until: tick) }
      if !isEnding, interruption.isPending {
        isEnding = true
        log.log.write(.notice, controller.isMoving ? "ending when the step has stopped" : "ending")
      }
      publish(controller.advance(to: time()))
      for (priority, line) in beacons.flatMap(\.news) { log.log.write(priority, line) }
      // One at a time: whoever sends more than can be read holds up neither a motion nor the signal.
      if !isEnding, let event = try next(connection) {
        switch event {
        case .connected:
          wasConnected = true
          unacknowledged = []
          log.log.write(.notice, "connected to \(setup.broker)")
          publish(controller.announcements(at: time()))
        case .disconnected(let error):
          // Certificates that never served will not mend themselves; those that did may be in the middle of a renewal.
          if case .unusableFile = error, !wasConnected { throw .broker(error) }
          log.log.write(.warning, "\(error); trying again")
        case .message(let message):
          if let step = topics[message.topic] {
            publish(controller.receive(message.payload, on: step, retained: message.isRetained, at: time))
          }
        case .acknowledged(let id):
          unacknowledged.remove(id)
        }
      }
      let overflowing = connection.discarded.overflowing
      if overflowing > lost.count, lost.told.duration(to: .now) > .seconds(1) {
        log.log.write(.warning, "\(overflowing - lost.count) messages were lost: more come than can be read")
        lost = (overflowing, .now)
      }
    }
    // The last word of a motion that has just ended is to reach the broker, if there is one.
    let patience = ContinuousClock.now + .seconds(2)
    while !unacknowledged.isEmpty, .now < patience, let event = try? connection.next(until: patience) {
      if case .acknowledged(let id) = event { unacknowledged.remove(id) }
      if case .disconnected = event { break }
    }
  }

  private func next(_ connection: MQTTConnection) throws(Failure) -> MQTTConnection.Event? {
    do throws(MQTTError) { return try connection.next(until: .now) } catch { throw .broker(error) }
  }

  private func system<Result>(_ call: () throws(SystemError) -> Result) throws(Failure) -> Result {
    do throws(SystemError) { return try call() } catch { throw .system(error) }
  }

  private func driver() -> any ServoDriver {
    switch setup.servo {
    case .simulated(let log):
      SimulatedServo(log: log)
    case .pwm(let pwm):
      PWMServo(
        root: pwm.root, frequency: pwm.frequency,
        channels: pwm.channels.mapValues {
          PWMServo.Channel(
            chip: $0.chip, channel: $0.channel, closedPulse: $0.closedPulse, openPulse: $0.openPulse)
        })
    }
  }

  /// The log counts what it leaves out, and the controller's record and the loop share that count.
  private final class LogBox {
    var log: Log
    init(_ log: Log) { self.log = log }
  }
}
