import ArgumentParser

struct Config: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config",
    abstract: "Show stepctl's settings and where each comes from, and add vehicles.",
    subcommands: [ConfigShow.self, ConfigPath.self, ConfigImport.self])
}
