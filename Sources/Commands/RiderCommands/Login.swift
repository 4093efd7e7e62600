import ArgumentParser
import CodeDrawing
import CommandParts
import Domain
import Encoding
import HTTP
import Rider
import StepProtocol
import SystemIO
import Terminal

struct Login: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "login", abstract: "Log in at your operator's server.",
    usage: "stepctl login [<options>] [<url>]")

  @Argument(
    help: ArgumentHelp("The server's address (default: the one that is known).", valueName: "url"),
    transform: { try FleetAddress($0) })
  var url: FleetAddress?

  @Option(help: "Log in here, with this address and a password, and not in a browser.")
  var email: String?

  @OptionGroup var acceptance: TermsOptions
  @OptionGroup var server: ServerOptions
  @OptionGroup var input: InputOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let interruption = try context.interruption()
    let client = try server.client(at: url, context, interruption, input)
    let known = try client.folder.login()
    if let known, known.tokens != nil, known.server != client.server {
      throw FleetError.otherServer(known.server.host)
    }
    let code = try client.beginLogin()
    if let email {
      try confirm(code, input.credentials(of: email, context, interruption), client, context, interruption)
    } else {
      try show(code, context, console)
    }
    let progress = console.progress
    defer { progress.clear() }
    try client.finishLogin(code, isConfirmed: email != nil) { left in
      progress.show("waiting until somebody confirms it, \(left) s left")
    }
    progress.clear()

    let account = try client.account()
    try client.keepName(account.email)
    let device = try EnrolledDevice(context.folders).verificationKey().thumbprint
    if console.isJSON {
      try console.result([
        "email": .string(account.email), "server": .string(client.server.description),
        "device_key": .string(device.description),
      ])
    } else {
      try console.result("logged in at \(client.server.host) as \(printable(account.email))")
    }
  }

  /// The rider must see this, even with -q.
  private func show(_ code: LoginCode, _ context: Context, _ console: Console) throws {
    if console.isJSON {
      try console.result([
        "user_code": .string(code.user), "page": .string(code.page),
        "complete_page": code.completePage.map(JSON.string) ?? .null, "expires_in_s": .integer(code.lifetime),
      ])
      return
    }
    let console = Console(context, isColored: console.isColored)
    let page = code.completePage ?? code.page
    if let columns = context.errors.size?.columns, let drawn = try? QRCode(Array(page.utf8), level: .low),
      drawn.columns <= columns
    {
      for line in drawn.lines(isColored: console.isColored) { console.note(line) }
    }
    console.note("Open this page, or scan the code, and log in there:")
    console.note("  \(code.page)")
    console.note("It has to show \(console.styled(code.user, .strong)).")
  }

  private func confirm(
    _ code: LoginCode, _ credentials: FleetClient.Credentials, _ client: FleetClient, _ context: Context,
    _ interruption: Interruption
  ) throws {
    do {
      try client.confirm(code, as: credentials)
    } catch FleetError.problem(let problem, _) where problem.code == "terms" {
      let terms = try client.terms()
      try acceptance.accept(terms, input, or: "you are not logged in", context, interruption)
      try client.confirm(code, as: credentials, terms: terms.version)
    }
  }
}
