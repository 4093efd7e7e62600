import ArgumentParser
import Domain
import Encoding
import Provisioning
import Terminal

struct OperatorMove: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "move", abstract: "Note that the broker of several vehicles is elsewhere.",
    usage: "stepctl operator move [<options>] <dir>")

  @OptionGroup var place: PlaceOptions
  @OptionGroup var broker: BrokerOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let (vehicles, riders) = try place.place.moveBroker(to: broker.host, broker.port, now: context.seconds)
    if console.isJSON {
      return try console.result([
        "vehicles": .array(vehicles.map { .string($0.path) }), "stale": .array(riders.map { .string($0) }),
      ])
    }
    try console.result("the broker is at \(broker.host):\(broker.port); bring its files there, and restart it")
    for vehicle in vehicles { try console.result("bring \(vehicle.path)/vehicle.toml to the vehicle") }
    for rider in riders {
      try console.result("\(printable(rider)): needs the vehicle's code, from `stepctl provision qr`")
    }
  }
}
