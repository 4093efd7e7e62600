import Access
import ArgumentParser
import CommandParts
import Domain
import Encoding
import HTTP
import Rider
import StepProtocol
import SystemIO
import Terminal

struct Book: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "book", abstract: "Book a vehicle, and get access to its steps.",
    usage: "stepctl book [<options>] <vehicle> --for <time>")

  @Argument(help: "The vehicle's name, or its UUID.")
  var vehicle: String

  @Option(
    help: ArgumentHelp(
      "When it begins: 2026-11-23T08:00, or 08:00 for the next time (default: now).", valueName: "time"),
    transform: { try BookingTime($0) })
  var from: BookingTime?

  @Option(
    name: .customLong("for"), parsing: .unconditional,
    help: ArgumentHelp("For how long, as 45m, 2h or 3d.", valueName: "time"), transform: { try Lifetime(ofBooking: $0) }
  )
  var length: Lifetime

  @Option(help: ArgumentHelp("The steps, joined by commas (default: all).", valueName: "ids"))
  var steps: StepList?

  @Flag(name: .shortAndLong, help: "Book without asking.")
  var yes = false

  @OptionGroup var input: InputOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let interruption = try context.interruption()
    let client = try context.fleet(interruption, noInput: input.noInput)
    let device = try EnrolledDevice(context.folders)
    _ = try device.prepare()
    // Runs while libcurl is loaded.
    let identity = try device.identity()
    let chosen = try FleetVehicle.named(vehicle, among: client.vehicles())
    let known = chosen.steps.map(\.id)
    for step in steps?.ids ?? [] where !known.contains(step) {
      throw CommandFailure(
        .usage, "\(chosen.name) has no step \(step)",
        hint: "it has \(known.map(\.description).joined(separator: ", "))")
    }
    // The server's clock counts, because this computer's may be wrong.
    let begin = from.flatMap { $0.isNow ? nil : $0.seconds(after: client.now) }
    let end = (begin ?? client.now) + length.seconds
    if !yes {
      let console = Console(context)
      show(chosen, begin, end, client, console)
      guard try input.confirm("Book it?", suggestion: true, context, interruption) else {
        throw CommandFailure(.failure, "nothing was booked")
      }
    }
    let booking: Booking
    do {
      booking = try client.book(chosen, from: begin, to: end, steps: steps?.ids) { error in
        console.note("\(printable(error.description)); asking once more, which books once")
      }
    } catch let error as FleetError {
      throw explained(error, chosen, (begin ?? client.now)..<end, isNow: begin == nil, client)
    }
    try fetch(booking, client, identity, context, console)
  }

  private func show(_ vehicle: FleetVehicle, _ begin: Int64?, _ end: Int64, _ client: FleetClient, _ console: Console) {
    let chosen = steps?.ids ?? vehicle.steps.map(\.id)
    console.note("vehicle", vehicle.name)
    console.note("from", begin.map(dateAndTime) ?? "now, \(dateAndTime(client.now))")
    console.note("to", "\(dateAndTime(end)) (\(span(length.seconds)))")
    console.note("steps", chosen.map(\.description).joined(separator: ", "))
    if abs(client.lead) >= 60 {
      let side = client.lead < 0 ? "ahead of" : "behind"
      console.note("clock", "this computer's is \(span(abs(client.lead))) \(side) the server's, which counts")
    }
  }

  /// The error, with the times at which the vehicle is free, and the vehicles that are free at this time.
  private func explained(
    _ error: FleetError, _ chosen: FleetVehicle, _ time: Range<Int64>, isNow: Bool, _ client: FleetClient
  ) -> any Failure {
    guard case .problem(let problem, _) = error, !problem.next.isEmpty else { return error }
    // In whole minutes, so that the user can type them.
    let times = problem.next.map { dateAndTime(($0.lowerBound + 59) / 60 * 60) }
    // If the server does not say, the times are enough.
    let others = ((try? client.vehicles(free: time)) ?? []).filter { $0.isFree == true && $0.id != chosen.id }
    var hint = "free from \(times.joined(separator: ", "))"
    if !others.isEmpty {
      let more = others.count > 5 ? " and \(others.count - 5) more" : ""
      hint += "; free \(isNow ? "now" : "then"): \(others.prefix(5).map(\.name).joined(separator: ", "))\(more)"
    }
    return CommandFailure(error.exitStatus, error.description, hint: hint, details: error.details)
  }

  /// Stores the booking, and fetches its access if the server already gives it.
  private func fetch(
    _ booking: Booking, _ client: FleetClient, _ identity: EnrolledDevice.Identity, _ context: Context,
    _ console: Console
  ) throws {
    // The disk and the server work at the same time.
    let (folder, now) = (client.folder, client.now)
    let keeping = try Meanwhile { try folder.keep(booking, now: now) }
    var file: String?
    var failure: (any Failure)?
    if booking.from - Booking.lead <= client.now {
      do {
        let access = try BookedAccess(of: booking, from: client, context, identity: identity)
        file = access.place.vehicleFile
        if let key = access.newOperator { console.note("its operator is known from now on: \(key.grouped)") }
      } catch let error as any Failure {
        failure = error
      }
    }
    try keeping.result()
    if let failure, failure.isInterruption { throw failure }
    if console.isJSON {
      try console.result(booking.report(vehicleFile: file))
    } else {
      let time = booking.from > client.now ? "from \(dateAndTime(booking.from)) to" : "until"
      try console.result("booked \(printable(booking.title)) \(time) \(dateAndTime(booking.to))  (\(booking.shortID))")
    }
    if let failure {
      // The booking is made, and its line is printed.
      throw BookedAccess.isMissing("it is booked", failure)
    }
    if file == nil {
      console.note("`stepctl open` fetches its access within the 24 hours before it begins")
    } else if booking.from <= client.now {
      console.note("at the step, type: stepctl open")
    }
  }
}

extension FleetVehicle {
  /// The vehicle with that UUID, or the only one with that name.
  fileprivate static func named(_ text: String, among vehicles: [FleetVehicle]) throws(CommandFailure) -> FleetVehicle {
    if let uuid = UUID(text), let vehicle = vehicles.first(where: { $0.id == uuid }) { return vehicle }
    var same = vehicles.filter { $0.name == text }
    if same.isEmpty { same = vehicles.filter { Vehicle.isMeant($0.name, by: text) } }
    switch same.count {
    case 1: return same[0]
    case 0:
      let meant = Spelling.nearest(to: text, among: vehicles.map { $0.name.lowercased() })
      let near = vehicles.first { $0.name.lowercased() == meant }?.name
      throw CommandFailure(
        .noInput, "there is no vehicle \"\(text)\"",
        hint: near.map { "did you mean \"\($0)\"?" } ?? "`stepctl vehicles` lists those in service")
    default:
      throw CommandFailure(
        .usage, "\(same.count) vehicles are named \"\(text)\"",
        hint: "use one of the UUIDs \(same.map(\.id.description).joined(separator: ", "))")
    }
  }
}
