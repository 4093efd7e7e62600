import Configuration
import Domain
import StepController
import SystemIO

/// Reads the configuration again at each SIGHUP, on a thread of its own.
final class Reloader: Sendable {
  struct Reading: Sendable {
    let rules: Controller.Rules
    /// What else has changed: tables of `stepd.toml`, and what of the vehicle file takes a restart.
    let needsRestart: [String]
  }

  let readings: Mailbox<Result<Reading, any Error>>
  private let end: Interruption

  /// - Parameter hangups: made before any thread was started.
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

  /// - Parameter former: what the controller was started with.
  private static func read(_ former: ControllerSetup) throws -> Reading {
    let setup = try ControllerSetup(reading: former.file.path)
    var secrets = former.secrets
    // What is sent and what is heard go on as they were started.
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
