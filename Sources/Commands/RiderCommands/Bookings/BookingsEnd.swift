import ArgumentParser
import CommandParts
import Rider

struct BookingsEnd: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "end", abstract: "End a booking early.",
    usage: "stepctl bookings end [<options>] [<id>]")

  @OptionGroup var closing: ClosingOptions

  func run(in context: Context) throws {
    try closing.close(.end, prefersActive: true, asking: "End it now?", in: context)
  }
}
