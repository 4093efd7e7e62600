import ArgumentParser
import CommandParts
import Encoding
import SystemIO
import Terminal
import UserSettings

struct ConfigPath: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "path",
    abstract: "Print the files that stepctl reads, the most important first.")

  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let folders = try context.settings().folders
    let paths = try folders.configFiles + folders.vehicles().map(\.path)
    for path in paths {
      try console.isJSON
        ? console.result(["path": .string(path), "exists": .bool(Files.exists(path))])
        : console.result(Files.exists(path) ? path : "\(path) (missing)")
    }
  }
}
