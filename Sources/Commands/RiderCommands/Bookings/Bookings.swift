import ArgumentParser
import CommandParts
import Domain
import Encoding
import Rider
import Terminal

struct Bookings: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bookings",
    abstract: "List, extend and end your bookings.",
    subcommands: [
      BookingsList.self, BookingsShow.self, BookingsExtend.self, BookingsCancel.self, BookingsEnd.self,
    ],
    defaultSubcommand: BookingsList.self)
}

/// Selects the booking.
struct BookingOptions: ParsableArguments {
  @Argument(help: "The booking, by the beginning of its id (default: the only one that has not ended).")
  var id: String?

  /// Asks the server for the booking, and stores its answer.
  ///
  /// - Parameter prefersActive: whether to choose the only active booking if there are several.
  func booking(_ client: FleetClient, prefersActive: Bool = false) throws -> Booking {
    let all = try client.keptBookings()
    var found = id.map { id in all.filter { $0.id.hasPrefix(id) } } ?? all.filter(\.isLive)
    if prefersActive, id == nil {
      let active = found.filter { $0.isActive(at: client.now) }
      if active.count == 1 { found = active }
    }
    guard let one = found.first else {
      throw CommandFailure(
        .noInput, id.map { "there is no booking \($0)" } ?? "you have no booking that has not ended",
        hint: "`stepctl bookings` lists them")
    }
    guard found.count == 1 else {
      throw CommandFailure(
        .usage,
        "you have \(found.count) bookings\(id.map { " that begin with \($0)" } ?? ""): "
          + found.prefix(8).map(\.shortID).joined(separator: ", "),
        hint: "name one by the beginning of its id")
    }
    return one
  }
}

extension FleetClient {
  /// The newest bookings. This device stores those that may still be useful.
  ///
  /// - Parameter all: whether to ask for all, however many there are.
  func keptBookings(all: Bool = false) throws -> [Booking] {
    let found = try all ? allBookings() : bookings()
    try folder.keep(found, now: now)
    return found
  }

  /// Stores a booking's new state.
  func keep(_ booking: Booking) throws {
    try folder.keep(booking, now: now)
  }
}

extension Booking {
  /// One line of at most 80 columns on a terminal, unless the name is long.
  var line: String {
    let time = "\(dateAndTime(from))  \(dateAndTime(to))"
    return "\(shortID)  \(time)  \(state.aligned(to: 9))  \(printable(title))"
      + (parking.map { ", \(printable($0.shortText))" } ?? "")
  }

  /// One line for each property.
  var lines: [(label: String, text: String)] {
    [
      ("vehicle", title), ("from", dateAndTime(from)), ("to", dateAndTime(to)), ("state", state),
      ("steps", steps.map(\.description).joined(separator: ", ")), ("id", id),
    ] + (parking.map { [("ended", $0.text)] } ?? [])
  }

  func print(_ console: Console) throws {
    if console.isJSON { return try console.result(report()) }
    for line in lines { try console.result(line.label, line.text) }
  }
}

/// Gives up a booking after the user has confirmed it.
struct ClosingOptions: ParsableArguments {
  @OptionGroup var which: BookingOptions

  @Flag(name: .shortAndLong, help: "Do it without asking.")
  var yes = false

  @OptionGroup var input: InputOptions
  @OptionGroup var output: OutputOptions

  /// - Parameter question: the question to confirm, unless asking is not wanted.
  func close(
    _ closing: FleetClient.Closing, prefersActive: Bool, asking question: String, in context: Context
  ) throws {
    let console = output.console(context)
    let interruption = try context.interruption()
    let client = try context.fleet(interruption, noInput: input.noInput)
    let old = try which.booking(client, prefersActive: prefersActive)
    if !yes {
      for line in old.lines { Console(context).note(line.label, line.text) }
      guard try input.confirm(question, suggestion: false, context, interruption) else {
        throw CommandFailure(.failure, "nothing was changed")
      }
    }
    let booking = try client.close(old, closing)
    try client.keep(booking)
    if console.isJSON { return try console.result(booking.report()) }
    try console.result("\(printable(booking.title)): \(booking.state)  (\(booking.shortID))")
    if let parking = booking.parking, parking.metres > 0 {
      console.note("the booking ended \(printable(parking.text))")
    }
  }
}

extension Parking {
  fileprivate var shortText: String { metres > 0 ? "\(metres) m from \(zone)" : "in \(zone)" }

  fileprivate var text: String {
    metres > 0 ? "\(metres) m from the parking zone \(zone)" : "in the parking zone \(zone)"
  }
}
