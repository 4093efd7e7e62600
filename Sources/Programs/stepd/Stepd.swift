import ArgumentParser
import Configuration
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

  @Flag(help: "Check the files, the keys, the journal, the radios, the servos and the inputs, and end.")
  var check = false

  @Flag(name: .shortAndLong, help: "Log answers too, and not only what moves or is refused.")
  var verbose = false

  func run() throws {
    let daemon = Daemon(try ControllerSetup(reading: config), version: Program.version, isVerbose: verbose)
    guard check else { return try daemon.run() }
    let console = Console(.process)
    for warning in try daemon.check(now: Context.process.seconds) { console.note("stepd: warning: \(warning)") }
  }

  static func main() { Program.main(Stepd.self, locksMemory: true) }
}
