import CommandParts
import Domain
import Encoding
import Rider
import SystemIO
import Terminal

/// Makes an account, in a dialogue on a terminal.
struct NewAccount {
  let client: FleetClient
  let acceptance: TermsOptions
  let input: InputOptions
  let context: Context
  let interruption: Interruption

  /// Makes an account and confirms its address, if the user wants one.
  ///
  /// - Parameters:
  ///   - tried: what the server did not accept as a login.
  ///   - refusal: the error if the user wants no account.
  /// - Returns: the account's address and password.
  func make(_ tried: FleetClient.Credentials, or refusal: FleetError) throws -> FleetClient.Credentials {
    let notes = Console(context)
    let terms = try client.terms()
    notes.note("no account at \(client.server.host) has this address and this password")
    if !acceptance.yes { terms.show(notes) }
    let account = "Make an account for \(printable(tried.email))"
    let question = acceptance.yes ? "\(account)?" : "\(account), and accept these terms?"
    guard try input.confirm(question, suggestion: false, context, interruption) else { throw refusal }
    let fault = InputOptions.fault("password", of: tried.password.utf8.count)
    if let fault { notes.note(fault) }
    let credentials = try create(fault == nil ? tried : newCredentials(tried.email), terms)
    try confirm(credentials.email)
    return credentials
  }

  /// Sends an account to the server. On a terminal it asks for another password until the server takes it.
  ///
  /// - Returns: the account's address and password.
  func create(
    _ credentials: FleetClient.Credentials, _ terms: FleetClient.Terms
  ) throws -> FleetClient.Credentials {
    var credentials = credentials
    while true {
      do throws(FleetError) {
        try client.createAccount(credentials, terms: terms.version)
        break
      } catch {
        guard case .problem(let problem, _) = error, problem.code == "password", input.canAsk(context) else {
          throw error
        }
        Console(context).note(printable(problem.text))
        credentials = try newCredentials(credentials.email)
      }
    }
    try client.keepServer()
    try client.keepName(credentials.email)
    return credentials
  }

  private func newCredentials(_ email: String) throws -> FleetClient.Credentials {
    try input.credentials(of: email, isNew: true, context, interruption)
  }

  /// As often as the server lets somebody try.
  private static let attempts = 5

  private func confirm(_ email: String) throws {
    let notes = Console(context)
    notes.note("a code is on its way to \(printable(email))")
    let questions = input.questions(context, interruption)
    var attempts = Self.attempts
    while attempts > 0 {
      let typed = try questions.ask("the code (Enter to stop): ")
      if typed.isEmpty { break }
      // Some mail programs show `123 456`.
      guard let code = MailedCode(argument: typed.filter { !$0.isWhitespace }) else {
        notes.note("the code has six digits")
        continue
      }
      do throws(FleetError) {
        return try client.confirmAccount(email: email, code: code.digits)
      } catch {
        guard case .problem(let problem, _) = error, problem.status == 400 else { throw error }
        notes.note(printable(problem.text))
        attempts -= 1
      }
    }
    throw CommandFailure(
      .failure, "the account is not confirmed",
      hint: "with the code: stepctl account confirm CODE; then: stepctl login")
  }
}
