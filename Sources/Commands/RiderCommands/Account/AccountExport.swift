import ArgumentParser
import Certificates
import CommandParts
import Encoding
import Rider
import SystemIO
import Terminal

struct AccountExport: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Print all that the server keeps about you, as JSON.",
    usage: "stepctl account export <options>")

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("Write into this file, mode 0600 (default: standard output).", valueName: "file"),
    completion: .file())
  var file: String?

  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let text = try context.fleet(context.interruption()).exportAccount().text
    guard let file else { return try console.result(text) }
    try Files.deliver(Array((text + "\n").utf8), to: file, mode: 0o600)
    try console.isJSON ? console.result(["file": .string(file)]) : console.result("wrote \(file)")
  }
}
