import ArgumentParser
import FleetClient
import Terminal

struct BookingsEnd: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "end", abstract: "End a booking before its time.")

  @OptionGroup var which: BookingOptions

  @Flag(name: .shortAndLong, help: "Do it without asking.")
  var yes = false

  @OptionGroup var input: InputOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    try which.close(.end, asking: yes ? nil : "End it now?", input, context, output.console(context))
  }
}
