import ArgumentParser
import Bluetooth
import Configuration
import Encoding
import SystemIO
import Terminal

struct Doctor: ContextCommand {
  static let configuration = CommandConfiguration(
    abstract: "Find out whether the radio works, and what to type where it does not.",
    usage: "stepctl doctor <options>",
    discussion: """
      Each radio is looked at and then listened to for three seconds. Without --radio that is every adapter of this \
      machine, directly (hci0) and by way of bluetoothd (bluez:hci0).
      """)

  @Option(
    help: ArgumentHelp("The only radio to look at (default: all of this machine).", valueName: "spec"),
    completion: RadioOptions.completion)
  var radio: String?

  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let interruption = try context.interruption()
    // The settings are for the other commands; here only what was asked for limits the view.
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

  /// Of a machine without adapters the first, so that it is said what is missing.
  private static var all: [RadioSpec] {
    let numbers = Adapter.all().map(\.number)
    return numbers.isEmpty ? [.hci(0)] : numbers.flatMap { [.hci($0), .bluez($0)] }
  }
}
