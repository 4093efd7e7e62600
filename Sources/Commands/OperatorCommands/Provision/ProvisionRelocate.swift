import ArgumentParser
import CommandParts
import Encoding
import FileFormats
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
    let place = try vehicle.place(in: context)
    try place.relocate()
    let file = place.path("mosquitto.conf")
    if console.isJSON { return try console.result(["files": [.string(file)]]) }
    try console.result("rewrote \(file)")
    if let obstacle = place.place.brokerObstacle {
      console.note("\(obstacle.description): `\(obstacle.remedy)`")
    }
  }
}
