import Access
import ArgumentParser
import CommandParts
import Encoding
import Rider
import StepProtocol
import Terminal

struct Whoami: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "whoami", abstract: "Say where you are logged in, and as whom.")

  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let client = try context.fleet(context.interruption())
    let account = try client.account()
    let device = try EnrolledDevice(context.folders).verificationKey().thumbprint
    if console.isJSON {
      return try console.result([
        "server": .string(client.server.description), "email": .string(account.email),
        "device_key": .string(device.description), "account": account.json,
      ])
    }
    try console.result("account", account.email)
    try console.result("server", client.server.host)
    // 43 characters, split into two lines to fit 80 columns.
    try console.result("device", device.grouped)
    if let logins = account.json["logins"]?.array, logins.count > 1 {
      try console.result("logins", "\(logins.count); `stepctl logout --everywhere` ends them")
    }
  }
}
