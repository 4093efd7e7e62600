import Domain
import FileFormats
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
  private let end: Interruption

  /// - Parameter hangups: must be made before any thread is started.
  init(_ setup: ControllerSetup, _ hangups: Hangups) throws(SystemError) {
    readings = try Mailbox()
    end = try Interruption.manual()
    try DetachedThread.start { [readings, end] in
      while (try? waitReadable([hangups.number, end.number], until: nil)) == [true, false] {
        hangups.clear()
        readings.post(Result { try Self.read(setup) })
      }
    }
  }

  deinit { end.interrupt() }

  /// - Parameter former: the setup with which the controller was started.
  private static func read(_ former: ControllerSetup) throws -> Reading {
    let setup = try ControllerSetup(reading: former.file.path)
    var secrets = former.secrets
    // Sending and listening go on as they were started.
    secrets.tags = setup.secrets.tags
    let rules = Controller.Rules(
      vehicle: setup.vehicle, policy: setup.policy, secrets: secrets, insteadOf: former.vehicle)
    guard let rules, setup.policy.methods.contains(.heard) == former.policy.methods.contains(.heard) else {
      throw ConfigurationError(
        former.file.path, "the vehicle's steps or the proof \"heard\" changed; restart stepd to apply this")
    }
    var changes = former.file.changesForRestart(to: setup.file)
    if "\(former.broker)" != "\(setup.broker)" || former.topic != setup.topic { changes.append("the vehicle's broker") }
    return Reading(rules: rules, needsRestart: changes)
  }
}
