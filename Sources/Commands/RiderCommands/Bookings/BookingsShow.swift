import ArgumentParser
import CommandParts

struct BookingsShow: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a booking.",
    usage: "stepctl bookings show [<options>] [<id>]")

  @OptionGroup var which: BookingOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let client = try context.fleet(context.interruption())
    try which.booking(client).print(output.console(context))
  }
}
