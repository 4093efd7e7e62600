import ArgumentParser
import CommandParts
import Rider
import Terminal

struct BookingsList: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List your bookings.",
    usage: "stepctl bookings list <options>")

  @Flag(help: "Also those that have ended.")
  var all = false

  @Flag(help: "Keep going: show the list again each time that it changes.")
  var watch = false

  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let client = try context.fleet(context.interruption())
    if watch {
      try ListWatch(name: "bookings") { known in
        let list = try client.bookings(since: known, all: all)
        try client.folder.keep(list.items, now: client.now)
        return list
      } lines: { bookings in
        let shown = shown(bookings)
        return shown.isEmpty ? [Self.none] : shown.map(\.line)
      } json: {
        shown($0).map { $0.report() }
      }.run(client, context, console)
    }
    let bookings = shown(try client.keptBookings(all: all))
    for booking in bookings { try console.isJSON ? console.result(booking.report()) : console.result(booking.line) }
    if bookings.isEmpty { console.note(Self.none) }
  }

  private static let none = "no booking; `stepctl book` makes one"

  private func shown(_ bookings: [Booking]) -> [Booking] {
    bookings.filter { all || $0.isLive }.sorted { $0.from < $1.from }
  }
}
