import ArgumentParser
import CommandParts
import Domain
import Rider
import Terminal

struct BookingsExtend: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "extend", abstract: "Extend a booking.",
    usage: """
      stepctl bookings extend [<options>] [<id>] --for <time>
      stepctl bookings extend [<options>] [<id>] --to <time>
      """)

  @OptionGroup var which: BookingOptions

  @Option(
    name: .customLong("for"), parsing: .unconditional,
    help: ArgumentHelp("How much longer, as 45m, 2h or 3d.", valueName: "time"),
    transform: { try Lifetime(ofBooking: $0) })
  var length: Lifetime?

  @Option(
    help: ArgumentHelp("The new end: 2026-11-23T08:00, or 08:00 for the next time.", valueName: "time"),
    transform: { try BookingTime($0) })
  var to: BookingTime?

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (length == nil) != (to == nil) else { throw ValidationError("Give either --for or --to.") }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let client = try context.fleet(context.interruption())
    let old = try which.booking(client, prefersActive: true)
    // `validate` ensures that exactly one of the two is set.
    let end = length.map { old.to + $0.seconds } ?? to!.seconds(after: client.now)
    let booking: Booking
    do { booking = try client.extend(old, to: end) } catch let error as FleetError {
      guard case .problem(let problem, _) = error, let latest = problem.latestEnd else { throw error }
      throw CommandFailure(
        error.exitStatus, error.description, hint: "the latest end is \(dateAndTime(latest))", details: error.details)
    }
    try client.keep(booking)
    try booking.print(console)
    guard booking.from - Booking.lead <= client.now else { return }
    // Access that was fetched before still ends at the old end. The booking itself has its new end in any case.
    do { _ = try BookedAccess(of: booking, from: client, context) } catch let error as any Failure {
      if error.isInterruption { throw error }
      throw BookedAccess.isMissing("it is extended", error)
    }
  }
}
