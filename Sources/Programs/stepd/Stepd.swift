import ArgumentParser
import Bluetooth
import Configuration
import Domain
import MQTT
import StepDaemon
import Terminal

@main
struct Stepd: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stepd",
    abstract: "Moves entry steps for authorized riders who stand at them.",
    version: Program.version)

  @Option(
    help: ArgumentHelp("The controller's configuration.", valueName: "file"),
    completion: .file(extensions: ["toml"]))
  var config = "/etc/stepctl/stepd.toml"

  @Flag(help: "Check the configuration, the vehicle file, the keys and the radios, and end.")
  var check = false

  @Flag(name: .shortAndLong, help: "Log answers too, and not only what moves or is refused.")
  var verbose = false

  func run() throws {
    let daemon = try Daemon(ControllerSetup(reading: config), isVerbose: verbose)
    try check ? daemon.check() : daemon.run()
  }

  static func main() { Program.main(Stepd.self, explain: explain) }

  /// Goes when these errors say it themselves.
  private static func explain(_ error: any Error) -> any Error {
    switch error {
    case let error as MQTTError: CommandFailure(error)
    case let error as RadioError: CommandFailure(error.exitStatus, error.description, hint: error.hint)
    default: error
    }
  }
}

extension RadioError {
  fileprivate var exitStatus: ExitStatus {
    switch self {
    case .notPermitted: .noPermission
    case .tooFewSets, .cannotAdvertise: .configuration
    default: .unavailable
    }
  }

  /// systemd's confinement keeps programs from what their files would allow them.
  fileprivate var hint: String? {
    if case .notPermitted = self { "as a service it takes what the comments in stepd.service say" } else { nil }
  }
}
