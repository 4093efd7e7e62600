import ArgumentParser
import CommandParts
import Encoding
import Rider
import Terminal

struct AccountPassword: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "password", abstract: "Set a new password, with a code that is mailed.",
    usage: "stepctl account password [<options>] [<code>]")

  @Argument(help: "The six digits.")
  var code: MailedCode?

  @OptionGroup var address: EmailOptions
  @OptionGroup var server: ServerOptions
  @OptionGroup var input: InputOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let interruption = try context.interruption()
    let client = try server.client(at: nil, context, interruption, input)
    let email = try address.email(or: client.folder.login()?.email)
    if let code {
      let credentials = try input.credentials(of: email, isNew: true, context, interruption)
      try client.setPassword(credentials, code: code.digits)
    } else {
      try client.requestPassword(email: email)
    }
    if console.isJSON {
      return try console.result(["email": .string(email), "is_set": .bool(code != nil)])
    }
    if code != nil {
      try console.result("the new password is set, and every login has ended; log in with `stepctl login`")
    } else {
      try console.result("a code is on its way to \(printable(email)), if it has an account")
      console.note("then type: stepctl account password CODE")
    }
  }
}
