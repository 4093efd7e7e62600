import Domain
import FileFormats
import MQTT
import StepController
import StepdConfiguration
import SystemIO

/// Reads the configuration again at each SIGHUP, on a separate thread.
final class Reloader: Sendable {
  struct Reading: Sendable {
    let rules: Controller.Rules
    /// Other changes, which need a restart: tables of `stepd.toml`, and parts of the vehicle file.
    let needsRestart: [String]
  }

  let readings: Mailbox<Result<Reading, any Error>>
  private let thread: WorkerThread

  /// - Parameter hangups: must be made before any thread is started.
  init(_ setup: ControllerSetup, _ hangups: Hangups) throws(SystemError) {
    readings = try Mailbox()
    thread = try WorkerThread()
    try thread.start { [readings, end = thread.stop] in
      while (try? waitReadable([hangups.number, end.number], until: nil)) == [true, false] {
        hangups.clear()
        readings.post(Result { try Self.read(setup) })
      }
    }
  }

  /// - Parameter former: the setup with which the controller was started.
  private static func read(_ former: ControllerSetup) throws -> Reading {
    let setup = try ControllerSetup(reading: former.file.path)
    var secrets = former.secrets
    // Sending and listening go on as they were started.
    secrets.tags = setup.secrets.tags
    let rules = Controller.Rules(
      vehicle: setup.vehicle, policy: setup.file.policy, secrets: secrets, insteadOf: former.vehicle)
    guard let rules, setup.file.policy.methods.contains(.heard) == former.file.policy.methods.contains(.heard) else {
      throw ConfigurationError(
        former.file.path, "the vehicle's steps or the proof \"heard\" changed; restart stepd to apply this")
    }
    var changes = former.file.changesForRestart(to: setup.file)
    func place(_ setup: ControllerSetup) -> [String?] {
      ["\(setup.broker)", setup.broker.tls?.authority, "\(setup.topic)"]
    }
    if place(former) != place(setup) { changes.append("the vehicle's broker") }
    return Reading(rules: rules, needsRestart: changes)
  }
}
