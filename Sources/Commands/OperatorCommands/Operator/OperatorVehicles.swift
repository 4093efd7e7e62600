import Access
import ArgumentParser
import CommandParts
import Domain
import Encoding
import FileFormats
import MQTT
import Operator
import StepProtocol
import Terminal

struct OperatorVehicles: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "vehicles", abstract: "List the operator's vehicles.",
    usage: "stepctl operator vehicles [<options>] <dir> [<entry>]")

  @OptionGroup var place: PlaceOptions
  @OptionGroup var entry: EntryOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let operatorPlace = try place.place
    /// The time of the last stored event, by the vehicle's clock.
    func lastEvent(of vehicle: Vehicle) throws -> Int64? {
      try operatorPlace.archive(of: vehicle.uuid).last()?.event.content.time
    }
    let folders = try operatorPlace.vehicles(named: entry.entry)
    if folders.isEmpty { console.note("no vehicles") }
    for folder in folders {
      let file = try VehicleFile(reading: folder.path("vehicle.toml"))
      let broker = file.broker.map { "\($0)" }
      if console.isJSON {
        var members: [JSON.Member] = [
          .init("name", .string(file.vehicle.name)), .init("uuid", .string(file.vehicle.uuid.description)),
          .init("steps", .array(file.vehicle.steps.map { .string($0.id.description) })),
          .init("topic", file.topic.map { .string($0.description) } ?? .null),
          .init("broker", broker.map { .string($0) } ?? .null), .init("folder", .string(folder.path)),
        ]
        if entry.entry != nil {
          members += [
            .init("encryption_key", (file.controller?.encryption.thumbprint.description).map { .string($0) } ?? .null),
            .init("signing_key", (file.controller?.signing.thumbprint.description).map { .string($0) } ?? .null),
            .init("last_event", try lastEvent(of: file.vehicle).map { .integer($0) } ?? .null),
          ]
        }
        try console.result(.object(members))
        continue
      }
      let steps = file.vehicle.steps.map(\.id.description).joined(separator: ", ")
      try console.result(
        printable("\(file.vehicle.name): \(file.vehicle.uuid), \(steps), broker \(broker ?? "-"), \(folder.path)"))
      guard entry.entry != nil else { continue }
      if let keys = file.controller {
        try console.result("  encryption  \(keys.encryption.thumbprint.grouped)")
        try console.result("  signing     \(keys.signing.thumbprint.grouped)")
      }
      let command = shellCommand("stepctl", "operator", "log", operatorPlace.path)
      let last = try lastEvent(of: file.vehicle).map(dateAndTime) ?? "none is stored; `\(command)` asks"
      try console.result("  last event  \(last)")
    }
  }
}
