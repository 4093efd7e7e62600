import ArgumentParser
import CommandParts
import Domain
import Encoding
import Rider
import Terminal

struct Vehicles: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "vehicles", abstract: "List the vehicles that can be booked.",
    usage: "stepctl vehicles <options>")

  @Option(
    help: ArgumentHelp(
      "Say which are free from then on: 2026-11-23T08:00, 08:00 for the next time, or now.", valueName: "time"),
    transform: { try BookingTime($0) })
  var from: BookingTime?

  @Option(
    help: ArgumentHelp("Until when they are to be free.", valueName: "time"), transform: { try BookingTime($0) })
  var to: BookingTime?

  @Option(help: ArgumentHelp("Only those that stand in this zone.", valueName: "name"))
  var zone: String?

  @Flag(help: "Keep going: show the list again each time that it changes.")
  var watch = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (from == nil) == (to == nil) else { throw ValidationError("--from and --to belong together.") }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let client = try context.fleet(context.interruption())
    var time: Range<Int64>?
    if let from, let to {
      let begin = from.seconds(after: context.seconds)
      let end = to.seconds(after: begin)
      guard begin < end else { throw CommandFailure(.usage, "--to is not after --from") }
      time = begin..<end
    }
    // An older server would take no notice of the zone, and list all vehicles.
    if zone != nil { _ = try client.presentZones() }
    let place = zone.map { " in the zone \(printable($0))" } ?? ""
    let none = "\(client.server.host) has no vehicle that can be booked\(place)"
    if watch {
      try ListWatch(name: "vehicles") {
        try client.vehicles(since: $0, free: time, in: zone)
      } lines: { vehicles in
        vehicles.isEmpty ? [none] : Self.lines(vehicles)
      } json: {
        $0.map(\.json)
      }.run(client, context, console)
    }
    let vehicles = try client.vehicles(free: time, in: zone)
    if console.isJSON {
      for vehicle in vehicles { try console.result(vehicle.json) }
      return
    }
    for line in Self.lines(vehicles) { try console.result(line) }
    if vehicles.isEmpty { console.note(none) }
  }

  private static func lines(_ vehicles: [FleetVehicle]) -> [String] {
    let width = min(40, vehicles.map { printable($0.name).columns }.max() ?? 0)
    return vehicles.map { vehicle in
      let name = printable(vehicle.name).truncated(to: width, ellipsis: "…").aligned(to: width)
      let steps = vehicle.steps.map(\.id.description).joined(separator: ", ")
      return "\(name)  \(vehicle.availability.aligned(to: 15))  \(steps)"
    }
  }
}

extension FleetVehicle {
  /// Whether the vehicle is free, if that was asked; otherwise its state: MDS's word with spaces.
  fileprivate var availability: String {
    switch isFree {
    case true: "free"
    case false: "taken"
    case nil: state.substituting("_", by: " ")
    }
  }
}

/// A moment as people type it, or `now`.
struct BookingTime {
  /// Nil for now.
  private let time: LocalTime?

  init(_ text: String) throws(BookingOptionError) {
    time = LocalTime(argument: text)
    guard time != nil || text == "now" else { throw .time }
  }

  var isNow: Bool { time == nil }

  /// Unix time. A time of day means its next occurrence.
  func seconds(after now: Int64) -> Int64 { time?.seconds(after: now) ?? now }
}

extension Lifetime {
  init(ofBooking text: String) throws(BookingOptionError) {
    guard let length = Lifetime(argument: text) else { throw .length }
    self = length
  }
}

/// The form of a booking's time.
enum BookingOptionError: Error, CustomStringConvertible {
  case time, length

  var description: String {
    switch self {
    case .time: "a time is 2026-11-23T08:00, 08:00 for the next one, or now"
    case .length: "one number above 0 and one unit, as 45m, 2h or 3d"
    }
  }
}
