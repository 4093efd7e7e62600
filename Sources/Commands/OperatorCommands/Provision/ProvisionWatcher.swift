import ArgumentParser
import CommandParts
import Domain
import Encoding
import FileFormats
import MQTT
import Operator
import Terminal

struct ProvisionWatcher: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "watcher", abstract: "Let a program see how the steps stand, and nothing else.",
    usage: "stepctl provision watcher [<options>] <dir> --name <name>")

  @OptionGroup var vehicle: ProvisionedOptions

  @Option(help: "What to call it: letters, digits, dots, hyphens and underscores.")
  var name: RiderName

  @Option(
    name: .customLong("for"), parsing: .unconditional,
    help: ArgumentHelp("How long it may watch, in whole days, as 30d.", valueName: "time"))
  var lifetime = Lifetime(seconds: 365 * 86_400)

  @Flag(help: "Also make the messages by which Home Assistant finds the steps.")
  var homeAssistant = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard lifetime.seconds % 86_400 == 0 else { throw ValidationError("--for takes whole days, as 30d.") }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let place = try vehicle.place(in: context)
    let broker = try VehicleFile(reading: place.path("vehicle.toml")).broker
    let summary = try place.provisionWatcher(
      WatcherPlan(name: name, lifetime: lifetime.seconds, isForHomeAssistant: homeAssistant), now: context.seconds)
    if console.isJSON {
      return try console.result([
        "name": .string(name.description), "folder": .string(place.path(summary.folder)),
        "files": .array(summary.files.map { .string(place.path($0)) }),
        "topics": .array(summary.topics.map { .string($0) }), "certificate_end": .integer(summary.end),
      ])
    }
    let own = place.path(summary.folder)
    try console.result("\(name) may watch until \(dateAndTime(summary.end)): \(own)")
    guard let broker else { return }
    let login = ["--cafile", "\(own)/ca.pem", "--cert", "\(own)/watcher.pem", "--key", "\(own)/watcher.key"]
    let topics = summary.topics.flatMap { ["-t", $0] }
    let words = ["mosquitto_sub", "-h", broker.host, "-p", "\(broker.port)"] + login + ["-q", "1", "-v"] + topics
    console.note("try: \(words.map(shellWord).joined(separator: " "))")
    console.note(
      """
      if this vehicle is older than watchers, let its broker accept them: \
      \(shellCommand("stepctl", "provision", "update", place.path))
      """
    )
  }
}
