public import ArgumentParser
import Domain
import MQTT
import StepDaemon
import StepdConfiguration
import SystemIO
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
  var config = Self.usualConfig

  private static let usualConfig = "/etc/stepctl/stepd.toml"
  /// Where the systemd unit looks.
  private static let servicesConfig = "/var/lib/stepctl/stepd.toml"

  @Flag(help: "Check the files, the keys, the journal, the radios, the servos and the inputs, and end.")
  var check = false

  @Option(
    help: ArgumentHelp(
      "Set up this step's servo by hand: lead it, note its ends, try it. stepd must not run.", valueName: "step"))
  var servo: StepID?

  @Flag(name: .shortAndLong, help: "Also log each answered request, not only motions, stops, refusals and faults.")
  var verbose = false

  func validate() throws {
    if servo != nil, check { throw ValidationError("--servo and --check exclude each other.") }
  }

  func run() throws {
    if config == Self.usualConfig, !Files.exists(config) {
      throw CommandFailure(
        .noInput, "there is no \(config)",
        hint: "give the file with --config; the systemd service reads \(Self.servicesConfig)")
    }
    if let servo { return try setUp(servo) }
    let build = Build(version: Program.version, commit: Program.commit, architecture: Program.architecture)
    let daemon = Daemon(try ControllerSetup(reading: config), build: build, isVerbose: verbose)
    guard check else { return try daemon.run() }
    let console = Console(.process)
    let (found, warnings) = try daemon.check(now: WallClock.microseconds / 1_000_000)
    for line in found { console.note("stepd: \(line)") }
    for warning in warnings { console.note("stepd: warning: \(warning)") }
  }

  private func setUp(_ servo: StepID) throws {
    // Comes before any thread starts, so that every thread leaves the signals to this one.
    let interruption = try Interruption()
    let setup = try ControllerSetup(reading: config)
    let panel = ServoPanel(.process, servo)
    defer { panel.close() }
    try BringUpLoop(setup, step: servo, panel).run(until: interruption)
    if interruption.isPending { throw Interrupted() }
  }

  static func main() { Program.main(Stepd.self, ProgramText(libraries: { LibraryVersions.all }), locksMemory: true) }
}

extension StepID: ExpressibleByArgument {
  package init?(argument: String) { self.init(argument) }
}
