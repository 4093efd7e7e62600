import ArgumentParser
import CommandParts
import Domain
import Encoding
import Rider
import Terminal

struct AccountDelete: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "delete", abstract: "Delete your account; asks you to type its address.",
    usage: "stepctl account delete [<options>]")

  @OptionGroup var input: InputOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let interruption = try context.interruption()
    let client = try context.fleet(interruption, noInput: input.noInput)
    let account = try client.account()
    let live = try client.bookings().filter(\.isLive)
    let notes = Console(context)
    notes.note("this deletes the account \(printable(account.email)) at \(client.server.host):")
    notes.note("  bookings    \(live.count) that have not ended are cancelled")
    notes.note("  access      that was given out stops working")
    guard try input.questions(context, interruption).ask("type its address to delete it: ") == account.email else {
      throw CommandFailure(.failure, "that is not the account's address; nothing was changed")
    }
    try client.deleteAccount()
    try console.isJSON
      ? console.result(["email": .string(account.email), "server": .string(client.server.description)])
      : console.result("the account \(printable(account.email)) is deleted")
  }
}
