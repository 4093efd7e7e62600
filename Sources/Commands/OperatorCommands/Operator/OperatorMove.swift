import ArgumentParser
import CommandParts
import Domain
import Encoding
import Operator
import Terminal

struct OperatorMove: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "move", abstract: "Record the new address of the vehicles' broker.",
    usage: "stepctl operator move [<options>] <dir>")

  @OptionGroup var place: PlaceOptions

  @Option(help: "The broker's host name or address, as riders and vehicles reach it (default: as it is).")
  var host: BrokerHost?

  @Option(help: "The broker's port, 1 to 65535 (default: as it is).")
  var port: UInt16?

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard host != nil || port != nil else { throw ValidationError("Give --host, --port or both.") }
    guard port != 0 else { throw ValidationError("--port takes 1 to 65535.") }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let present = try place.place.broker()
    let address = BrokerAddress(host: host ?? present.host, port: port ?? present.port)
    let moved = try place.place.moveBroker(to: address, now: context.seconds)
    if console.isJSON {
      return try console.result([
        "vehicles": .array(moved.map { .string($0.vehicle.path) }),
        "stale": .array(Set(moved.flatMap(\.stale.others)).sorted().map { .string($0) }),
        "vehicle_files": .array(
          moved.flatMap { vehicle, stale in stale.reissued.map { .string(vehicle.copy(of: $0)) } }),
        "without_step": .array(Set(moved.flatMap(\.stale.withoutStep)).sorted().map { .string($0) }),
      ])
    }
    try console.result("the broker is at \(address); bring its files there, and restart it")
    for (vehicle, _) in moved { try console.result("bring \(vehicle.path)/vehicle.toml to the vehicle") }
    for (vehicle, stale) in moved { try console.tell(of: stale, vehicle) }
  }
}

extension Console {
  /// Says which riders need new files, because a vehicle's file has changed.
  func tell(of stale: VehicleFolder.StaleCopies, _ vehicle: VehicleFolder) throws {
    for rider in stale.reissued { try result("\(rider): has a new \(vehicle.copy(of: rider))") }
    let code = shellCommand("stepctl", "provision", "qr", "--vehicle", vehicle.path)
    for rider in stale.others { try result("\(printable(rider)): needs the vehicle's code, from `\(code)`") }
    for rider in stale.withoutStep {
      try result("\(printable(rider)): has a token for a step that no longer exists; give a new one")
    }
  }
}
