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

  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let client = try context.fleet(context.interruption())
    let bookings = try client.keptBookings(all: all).filter { all || $0.isLive }.sorted { $0.from < $1.from }
    for booking in bookings { try console.isJSON ? console.result(booking.report()) : console.result(booking.line) }
    if bookings.isEmpty { console.note("no booking; `stepctl book` makes one") }
  }
}
