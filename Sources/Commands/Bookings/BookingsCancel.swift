import ArgumentParser
import FleetClient
import Terminal

struct BookingsCancel: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "cancel", abstract: "Give a booking up before it was used.")

  @OptionGroup var which: BookingOptions

  @Flag(name: .shortAndLong, help: "Do it without asking.")
  var yes = false

  @OptionGroup var input: InputOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    try which.close(.cancel, asking: yes ? nil : "Cancel it?", input, context, output.console(context))
  }
}
