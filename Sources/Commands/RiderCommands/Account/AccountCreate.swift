import ArgumentParser
import CommandParts
import Domain
import Encoding
import Rider
import Terminal

struct AccountCreate: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Make an account.",
    usage: "stepctl account create [<options>] [<url>] --email <email>")

  @Argument(
    help: ArgumentHelp("The server's address (default: the one that is known).", valueName: "url"),
    transform: { try FleetAddress($0) })
  var url: FleetAddress?

  @OptionGroup var address: EmailOptions
  @OptionGroup var acceptance: TermsOptions
  @OptionGroup var server: ServerOptions
  @OptionGroup var input: InputOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let interruption = try context.interruption()
    let client = try server.client(at: url, context, interruption, input)
    let email = try address.email(or: client.folder.login()?.email)
    let terms = try client.terms()
    try acceptance.accept(terms, input, or: "nothing was changed", context, interruption)
    let credentials = try input.credentials(of: email, isNew: true, context, interruption)
    let account = NewAccount(
      client: client, acceptance: acceptance, input: input, context: context, interruption: interruption)
    _ = try account.create(credentials, terms)
    if console.isJSON {
      return try console.result([
        "email": .string(email), "server": .string(client.server.description), "terms": .string(terms.version),
      ])
    }
    try console.result("a code is on its way to \(printable(email))")
    console.note("then type: stepctl account confirm CODE")
  }
}
