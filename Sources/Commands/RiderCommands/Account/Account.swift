import ArgumentParser

struct AccountGroup: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "account",
    abstract: "Make, export and delete your account at your operator's server.",
    subcommands: [
      AccountCreate.self, AccountConfirm.self, AccountPassword.self, AccountExport.self, AccountDelete.self,
    ])
}

/// Selects the account.
struct EmailOptions: ParsableArguments {
  @Option(help: "The account's address (default: the one that was used last).")
  var email: String?

  func email(or known: String?) throws -> String {
    guard let email = email ?? known else { throw ValidationError("Give --email.") }
    return email
  }
}
