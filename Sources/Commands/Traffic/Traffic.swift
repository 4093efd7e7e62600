import ArgumentParser

struct TrafficGroup: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "traffic",
    abstract: "Run, show, measure and record a traffic feed, and try a guard on it.",
    subcommands: [TrafficServe.self, TrafficWatch.self, TrafficDelay.self, TrafficGuardTrial.self])
}
