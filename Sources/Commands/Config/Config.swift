import ArgumentParser

struct Config: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show what stepctl is configured to do, and by which file, and take over vehicles.",
    subcommands: [ConfigShow.self, ConfigPath.self, ConfigImport.self])
}
