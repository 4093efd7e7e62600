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
    if let email {
      try logIn(email, client, context, interruption, console)
    } else if let typed = try browse(client, isKnown: known?.email != nil, context, interruption, console) {
      try logIn(typed, mayBeNew: true, client, context, interruption, console)
    }

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

  /// Waits until somebody confirms a code in a browser. On a terminal, a user without an account may type an address
  /// meanwhile.
  ///
  /// - Parameter isKnown: whether this device knows an account's address.
  /// - Returns: the address; nil when this device is logged in.
  private func browse(
    _ client: FleetClient, isKnown: Bool, _ context: Context, _ interruption: Interruption, _ console: Console
  ) throws -> String? {
    let code = try client.beginLogin()
    try show(code, context, console)
    guard !isKnown, !console.isJSON, input.canAsk(context) else {
      try finish(code, isConfirmed: false, client, console)
      return nil
    }
    let questions = input.questions(context, interruption)
    console.note("Waiting \(span(code.lifetime)) for somebody to confirm the code.")
    func offer() { questions.offer("No account yet? Type your email address: ") }
    offer()
    var address: String?
    do {
      try client.finishLogin(
        code,
        met: { reason in
          questions.withdraw()
          console.note(Self.waitsOn(reason))
          offer()
        },
        pause: { time in
          let deadline = Instant.now + time
          while let typed = try questions.accepted(before: deadline) {
            // Every address has this sign.
            if typed.contains("@") {
              address = typed
              return false
            }
            offer()
          }
          return true
        }, waiting: { _ in })
    } catch {
      questions.withdraw()
      throw error
    }
    if address == nil { questions.withdraw() }
    return address
  }

  /// Logs in here with an address and its password. On a terminal it offers to make the account if there is none.
  ///
  /// - Parameter mayBeNew: whether the user was offered a new account already.
  private func logIn(
    _ email: String, mayBeNew: Bool = false, _ client: FleetClient, _ context: Context, _ interruption: Interruption,
    _ console: Console
  ) throws {
    var code = try client.beginLogin()
    let credentials: FleetClient.Credentials
    if mayBeNew {
      // Typed once: whoever mistypes a new one can set another, with a code by mail.
      let question = "password of \(printable(email)), or one for a new account"
      credentials = .init(
        email: email,
        password: try input.secret("password", question, isNew: true, isRepeated: false, context, interruption))
    } else {
      credentials = try input.credentials(of: email, context, interruption)
    }
    do {
      try confirm(code, credentials, client, context, interruption)
    } catch let error as FleetError where error.isWrongLogin && input.canAsk(context) {
      let account = NewAccount(
        client: client, acceptance: acceptance, input: input, context: context, interruption: interruption)
      let made = try account.make(credentials, or: error)
      // The first code may have expired while the mail was on its way.
      code = try client.beginLogin()
      try confirm(code, made, client, context, interruption)
    }
    try finish(code, isConfirmed: true, client, console)
  }

  private func finish(_ code: LoginCode, isConfirmed: Bool, _ client: FleetClient, _ console: Console) throws {
    let progress = console.progress
    defer { progress.clear() }
    try client.finishLogin(
      code, isConfirmed: isConfirmed,
      met: { reason in
        progress.clear()
        console.note(Self.waitsOn(reason))
      },
      waiting: { progress.show("waiting for somebody to confirm the code, \($0) s left") })
  }

  private static func waitsOn(_ reason: String) -> String { "\(printable(reason)); still waiting" }

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

extension FleetError {
  /// Whether no account has the address and the password.
  fileprivate var isWrongLogin: Bool {
    if case .problem(let problem, _) = self { problem.code == "wrong_login" } else { false }
  }
}
