import ArgumentParser
import CommandParts
import Rider

struct BookingsCancel: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "cancel", abstract: "Cancel a booking before it is used.",
    usage: "stepctl bookings cancel [<options>] [<id>]")

  @OptionGroup var closing: ClosingOptions

  func run(in context: Context) throws {
    try closing.close(.cancel, prefersActive: false, asking: "Cancel it?", in: context)
  }
}
