import ArgumentParser

struct TrafficGroup: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "traffic",
    abstract: "Try on recorded traffic what keeps a step in while something comes.",
    subcommands: [TrafficDelay.self, TrafficGuardTrial.self])
}
