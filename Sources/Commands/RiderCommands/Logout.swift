import ArgumentParser
import CommandParts
import Encoding
import Rider
import Terminal

struct Logout: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "logout", abstract: "End the login on this device.",
    usage: "stepctl logout <options>")

  @Flag(help: "End every login of the account, on all devices.")
  var everywhere = false

  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let client = try context.fleet(context.interruption())
    do {
      try client.logout(everywhere: everywhere)
    } catch let error as FleetError {
      if try client.folder.login()?.tokens == nil {
        console.note("you are logged out here; the server could not be told")
      }
      throw error
    }
    try console.isJSON
      ? console.result(["server": .string(client.server.description), "everywhere": .bool(everywhere)])
      : console.result("logged out of \(client.server.host)\(everywhere ? ", everywhere" : "")")
  }
}
