import ArgumentParser
import CommandParts
import Domain
import Encoding
import FileFormats
import Rider
import Terminal
import UserSettings

struct ConfigForget: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "forget", abstract: "Remove a known vehicle, with your access to it.",
    usage: "stepctl config forget [<options>] <vehicle>")

  @Argument(help: "The vehicle: its name here or its own, its folder or its file.", completion: LiveCompletion.vehicle)
  var vehicle: String

  @Flag(name: .shortAndLong, help: "Do it without asking.")
  var yes = false

  @OptionGroup var input: InputOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let settings = try context.settings()
    let store = VehicleStore(settings.folders)
    let entry = try entry(among: settings.folders.vehicles())
    let known = try? KnownVehicle(reading: entry.path)
    let path = settings.folders.displayed(entry.path)
    if !yes {
      // What the question is about is shown even with -q.
      let console = Console(context)
      console.note("vehicle", "\(known?.file.vehicle.name ?? entry.name) (\(path))")
      if let known { console.note("access", known.summary(at: context.seconds)) }
      guard try input.confirm("Forget it?", suggestion: false, context, context.interruption()) else {
        throw CommandFailure(.failure, "nothing was changed")
      }
    }
    try store.forget(entry)
    let uuid = known?.file.vehicle.uuid
    if let uuid { RememberedRefusal.forget(of: uuid, in: context.folders) }
    if console.isJSON {
      try console.result([
        "name": .string(entry.name), "uuid": uuid.map { .string($0.description) } ?? .null,
        "vehicle_file": .string(entry.path),
      ])
    } else {
      try console.result("\(printable(entry.name)) is forgotten")
    }
    if let booking = uuid.flatMap(context.activeBooking) {
      console.note("the booking \(booking.shortID) is active: `stepctl open` fetches its access again")
    }
    if case .file = settings.vehicle.origin, settings.vehicle.value == entry.name {
      console.note("\(settings.vehicle.origin) still names it")
    }
  }

  private func entry(among known: [(name: String, path: String)]) throws -> (name: String, path: String) {
    let exact = known.first { [$0.name, $0.path].contains(vehicle) || $0.path == "\(vehicle)/vehicle.toml" }
    if let exact { return exact }
    let named = known.filter { entry in
      (try? VehicleFile(reading: entry.path)).map { Vehicle.isMeant($0.vehicle.name, by: vehicle) } ?? false
    }
    if named.count == 1 { return named[0] }
    guard named.isEmpty else {
      throw CommandFailure(
        .usage, "\(named.count) vehicles are named \"\(vehicle)\"",
        hint: "use \(alternatives(named.map { shellWord($0.name) }))")
    }
    let meant = Spelling.nearest(to: vehicle, among: known.map(\.name))
    throw CommandFailure(
      .noInput, "you know no vehicle \"\(vehicle)\"",
      hint: meant.map { "did you mean \"\($0)\"?" } ?? "`stepctl config list` lists them")
  }
}
