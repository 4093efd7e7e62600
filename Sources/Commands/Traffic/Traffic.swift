import ArgumentParser

struct TrafficGroup: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "traffic",
    abstract: "Measure and record a traffic feed, and try a guard on it.",
    subcommands: [TrafficDelay.self, TrafficGuardTrial.self])
}
