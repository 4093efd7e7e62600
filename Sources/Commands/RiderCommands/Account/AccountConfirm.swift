import ArgumentParser
import CommandParts
import Encoding
import Rider
import Terminal

struct AccountConfirm: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "confirm", abstract: "Confirm your address with the code that was mailed.",
    usage: "stepctl account confirm [<options>] <code>")

  @Argument(help: "The six digits.")
  var code: MailedCode

  @OptionGroup var address: EmailOptions
  @OptionGroup var server: ServerOptions
  @OptionGroup var input: InputOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let client = try server.client(at: nil, context, context.interruption(), input)
    let email = try address.email(or: client.folder.login()?.email)
    try client.confirmAccount(email: email, code: code.digits)
    try console.isJSON
      ? console.result(["email": .string(email), "server": .string(client.server.description)])
      : console.result("\(printable(email)) is confirmed; log in with `stepctl login`")
  }
}

/// The code in the server's mail: six digits.
struct MailedCode: ExpressibleByArgument {
  let digits: String

  init?(argument: String) {
    guard argument.utf8.count == 6, argument.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    digits = argument
  }
}
