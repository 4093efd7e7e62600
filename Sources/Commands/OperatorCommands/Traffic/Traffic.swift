import ArgumentParser
import CommandParts

struct TrafficGroup: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "traffic",
    abstract: TechnicianCommand.traffic.abstract,
    subcommands: [TrafficServe.self, TrafficWatch.self, TrafficDelay.self, TrafficGuardTrial.self])
}
