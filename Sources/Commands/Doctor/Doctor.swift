import ArgumentParser
import Bluetooth
import Configuration
import Encoding
import SystemIO
import Terminal

struct Doctor: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Check whether the radios work, and say what to type if they do not.",
    usage: "stepctl doctor <options>",
    discussion: """
      It looks at each radio and then listens with it for three seconds. Without --radio it checks every adapter of \
      this machine, directly (hci0) and through bluetoothd (bluez:hci0).
      """)

  @Option(
    help: ArgumentHelp("The only radio to check (default: all of this machine).", valueName: "spec"),
    completion: RadioOptions.completion)
  var radio: String?

  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let interruption = try context.interruption()
    // The radio of the settings is for the other commands: this one checks all, or the one that was typed.
    let specs = try radio.map { [try context.settings(radio: $0).radioSpec()] } ?? Self.all
    let progress = console.progress
    var reports: [RadioReport] = []
    for spec in specs {
      progress.show("\(spec): listening")
      let report = try RadioExamination(spec, interruption).report()
      progress.clear()
      if !console.isJSON { for line in report.lines(style: console.styled) { try console.result(line) } }
      reports.append(report)
    }

    let usable = reports.filter { $0.failure == nil }.map(\.radio.description)
    if console.isJSON {
      try console.result([
        "usable": .bool(!usable.isEmpty), "radios": .array(reports.map(\.json)),
      ])
    } else {
      try console.result(usable.isEmpty ? "no radio is usable" : "usable: \(usable.joined(separator: ", "))")
    }
    if usable.isEmpty, let failure = reports.lazy.compactMap(\.failure).first {
      throw Ended(failure.exitStatus)
    }
  }

  /// A machine without adapters has its first one checked, which says what is missing.
  private static var all: [RadioSpec] {
    let numbers = Adapter.all().map(\.number)
    return numbers.isEmpty ? [.hci(0)] : numbers.flatMap { [.hci($0), .bluez($0)] }
  }
}
