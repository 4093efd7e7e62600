import ArgumentParser
import CommandParts
import Encoding
import Operator
import Terminal

struct ProvisionRelocate: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "relocate", abstract: "Rewrite mosquitto.conf after a vehicle's folder was moved.",
    usage: "stepctl provision relocate <options> <dir>")

  @OptionGroup var vehicle: ProvisionedOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    try vehicle.place.relocate(now: context.seconds)
    let file = vehicle.place.path("mosquitto.conf")
    try console.isJSON ? console.result(["files": [.string(file)]]) : console.result("rewrote \(file)")
  }
}
