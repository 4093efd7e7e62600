import ArgumentParser

struct Config: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config",
    abstract: "Show stepctl's settings and where each comes from; list, add and forget vehicles.",
    subcommands: [ConfigShow.self, ConfigPath.self, ConfigList.self, ConfigImport.self, ConfigForget.self])
}
