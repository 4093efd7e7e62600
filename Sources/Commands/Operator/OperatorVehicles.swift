import ArgumentParser
import Configuration
import Domain
import Encoding
import MQTT
import Provisioning
import Terminal

struct OperatorVehicles: ContextCommand {
  static let configuration = CommandConfiguration(commandName: "vehicles", abstract: "List the operator's vehicles.")

  @OptionGroup var place: PlaceOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    for folder in try place.place.vehicles() {
      let file = try VehicleFile(reading: folder.path("vehicle.toml"))
      let broker = file.broker.map { "\($0.host):\($0.port)" }
      if console.isJSON {
        try console.result([
          "name": .string(file.vehicle.name), "uuid": .string(file.vehicle.uuid.description),
          "steps": .array(file.vehicle.steps.map { .string($0.id.description) }),
          "topic": file.topic.map { .string($0.description) } ?? .null, "broker": broker.map { .string($0) } ?? .null,
          "folder": .string(folder.path),
        ])
        continue
      }
      let steps = file.vehicle.steps.map(\.id.description).joined(separator: ", ")
      try console.result(
        printable("\(file.vehicle.name): \(file.vehicle.uuid), \(steps), broker \(broker ?? "-"), \(folder.path)"))
    }
  }
}
