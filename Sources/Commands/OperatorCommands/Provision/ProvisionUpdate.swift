import ArgumentParser
import CommandParts
import Domain
import Encoding
import Operator
import Terminal

struct ProvisionUpdate: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "update", abstract: "Update the broker's and the riders' files after a change of vehicle.toml.",
    usage: "stepctl provision update <options> <dir>")

  @OptionGroup var vehicle: ProvisionedOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let place = try vehicle.place(in: context)
    let updated = try place.update(now: context.seconds)
    if console.isJSON {
      return try console.result([
        "reissued": .array(updated.flatMap(\.stale.reissued).map { .string($0.description) }),
        "stale": .array(updated.flatMap(\.stale.others).map { .string($0) }),
        "without_step": .array(updated.flatMap(\.stale.withoutStep).map { .string($0) }),
      ])
    }
    try console.result("\(place.path) is updated from its vehicle.toml; restart its broker and its controller")
    for (vehicle, stale) in updated { try console.tell(of: stale, vehicle) }
  }
}
