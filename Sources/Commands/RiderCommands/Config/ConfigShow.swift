import ArgumentParser
import CommandParts
import Domain
import Encoding
import FileFormats
import MQTT
import SystemIO
import Terminal
import UserSettings

struct ConfigShow: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Print each setting, its value and where it comes from.",
    usage: "stepctl config show [<options>] [<vehicle>]")

  @OptionGroup var vehicle: NamedVehicleOptions
  @OptionGroup var radio: RadioOptions
  @OptionGroup var nfc: NFCOptions
  @OptionGroup var timeout: TimeoutOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let settings = try context.settings(
      vehicle: vehicle.vehicle, radio: radio.radio, nfc: nfc.nfc, timeout: timeout.typed)
    let booking = try ActiveBooking(settings, context)
    let vehicle = settings.vehicle.value ?? booking?.vehicleFile
    let rows: [(name: String, value: String, origin: String)] = [
      ("vehicle", vehicle ?? "", booking.map { "booking \($0.booking.shortID)" } ?? "\(settings.vehicle.origin)"),
      ("radio", settings.radio.value, "\(settings.radio.origin)"),
      ("nfc", settings.nfc.value ?? "", "\(settings.nfc.origin)"),
      ("via", settings.via.value, "\(settings.via.origin)"),
      ("timeout", "\(tenths(settings.timeout.value)) s", "\(settings.timeout.origin)"),
    ]
    let file = try vehicleFile(settings, booking, context)

    if console.isJSON {
      let values: [JSON] = [
        vehicle.map { .string($0) } ?? .null, .string(settings.radio.value),
        settings.nfc.value.map { .string($0) } ?? .null, .string(settings.via.value), .number(settings.timeout.value),
      ]
      var members = zip(["vehicle", "radio", "nfc", "via", "timeout_s"], zip(rows, values)).map { name, row in
        JSON.Member(name, ["value": row.1, "origin": .string(row.0.origin)])
      }
      members.append(JSON.Member("vehicle_file", file.map(ConfigShow.json) ?? .null))
      try console.result(JSON.object(members))
      return
    }
    for row in rows {
      let value = row.value.isEmpty ? "-" : printable(row.value)
      try console.result("\(row.name.aligned(to: 8)) \(value.aligned(to: 32)) (\(row.origin))")
    }
    if let file { try show(file, console) }
  }

  /// The file of the vehicle that `status` would ask. Nil, without an error, if none was named and no one is meant.
  private func vehicleFile(
    _ settings: Settings, _ booking: ActiveBooking?, _ context: Context
  ) throws -> VehicleFile? {
    if let booking { return try booking.vehicleFile.map { try VehicleFile(reading: $0) } }
    let path: String
    do { path = try settings.usableVehicleFile(at: context.seconds) } catch let error as ConfigurationError
      where settings.vehicle.value == nil && error.path == "vehicle"
    { return nil }
    return try VehicleFile(reading: path)
  }

  /// Prints the files of keys and tokens, never their content.
  private func show(_ file: VehicleFile, _ console: Console) throws {
    // The author of the file chose these names and paths.
    func line(_ text: String) throws { try console.result(printable(text)) }
    let vehicle = file.vehicle
    try line("")
    try line("\(vehicle.name) (\(file.path))")
    try line("  uuid       \(vehicle.uuid)")
    for step in vehicle.steps {
      let power = step.measuredPower.map { ", \($0) dBm at 1 m" } ?? ""
      try line("  step       \(step.id), at the \(step.side.rawValue) side, major \(step.major)\(power)")
    }
    if let topic = file.topic { try line("  topic      \(topic)") }
    if let broker = file.broker {
      try line("  broker     \(broker)")
      if let authority = broker.tls?.authority { try line("             CA \(authority)") }
    }
    if let rider = file.rider {
      try line("  rider      \(rider.name)")
      try line("             token \(rider.token)")
      try line("             device key \(rider.deviceKey)")
    }
  }

  private static func json(_ file: VehicleFile) -> JSON {
    [
      "path": .string(file.path), "name": .string(file.vehicle.name), "uuid": .string(file.vehicle.uuid.description),
      "steps": .array(
        file.vehicle.steps.map {
          [
            "id": .string($0.id.description), "side": .string($0.side.rawValue), "major": .integer(Int64($0.major)),
            "measured_power_dbm": $0.measuredPower.map { .integer(Int64($0)) } ?? .null,
          ]
        }),
      "topic": file.topic.map { .string($0.description) } ?? .null,
      "broker": file.broker.map { ["host": .string($0.host), "port": .integer(Int64($0.port))] } ?? .null,
      "rider": file.rider.map { .string($0.name) } ?? .null,
    ]
  }
}
