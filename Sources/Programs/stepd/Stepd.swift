import ArgumentParser
import Bluetooth
import Configuration
import Domain
import Glibc
import MQTT
import StepController
import StepDaemon
import Terminal

@main
struct Stepd: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stepd",
    abstract: "Move a vehicle's entry steps for riders who may and who are there.",
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
    var daemon = try Daemon(
      ControllerSetup(reading: config), isVerbose: verbose, isJournal: Self.isJournal)
    try check ? daemon.check() : daemon.run()
  }

  /// Whether standard error is systemd's journal (systemd.exec(5), `JOURNAL_STREAM`). The variable alone does not say
  /// so: what is started from a service, as a terminal is on many desktops, inherits it.
  private static var isJournal: Bool {
    var status = stat()
    guard let stream = getenv("JOURNAL_STREAM"), fstat(STDERR_FILENO, &status) == 0 else { return false }
    return String(cString: stream) == "\(status.st_dev):\(status.st_ino)"
  }

  static func main() { Program.main(Stepd.self, explain: explain) }

  private static func explain(_ error: any Error) -> any Error {
    switch error as? Daemon.Failure {
    case .journal(.unavailable(let error)), .system(let error): error
    case .journal(.inUse(let path)): CommandFailure(.unavailable, Journal.Failure.inUse(path).description)
    case .journal(let failure): CommandFailure(.badData, failure.description)
    case .broker(let error): error
    case .beacon(.notPermitted(let radio, let program)):
      // systemd's confinement keeps programs from what their files would allow them.
      CommandFailure(
        .noPermission, RadioError.notPermitted(radio: radio, program: program).description,
        hint: "as a service it takes what the comments in stepd.service say")
    case .beacon(let error): CommandFailure(error.exitStatus, error.description)
    case nil: error
    }
  }
}
