public import ArgumentParser
import CommandParts
import Domain
import Encoding
import Operator
public import StepProtocol
import Terminal

struct OperatorRevoke: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke",
    abstract: "Take tokens back, and tell the vehicles.",
    usage: "stepctl operator revoke <options> <dir>")

  @OptionGroup var place: PlaceOptions

  @Option(help: "Every token of this rider that has not ended.", completion: LiveCompletion.rider)
  var rider: String?

  // A name, and a thumbprint, may begin with a hyphen.
  @Option(parsing: .unconditional, help: ArgumentHelp("One token, by its name.", valueName: "jti"))
  var token: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Every token of the device with this key, as `operator riders` shows it.", valueName: "thumbprint"))
  var device: Thumbprint?

  @OptionGroup var publish: PublishOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard [rider != nil, token != nil, device != nil].count(where: { $0 }) == 1 else {
      throw ValidationError("Give one of --rider, --token and --device.")
    }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let (operatorPlace, now) = (try place.place, context.seconds)
    let tokens = try operatorPlace.ledger().tokens
    let subjects: [Notice.Subject] =
      if let token { [.token(token)] } else if let device { [.device(device)] } else {
        tokens.filter { $0.rider == rider && $0.lasts(at: now) }.map { .token($0.id) }
      }
    let (revoked, isListNew) = try operatorPlace.revoke(subjects, now: now)
    if console.isJSON {
      try console.result([
        "revoked": .array(revoked.map { .string($0.id) }), "until": .integer(revoked.map(\.expires).max() ?? now),
        "is_list_new": .bool(isListNew),
      ])
    } else {
      for entry in revoked { try console.result("revoked \(entry.id) of \(printable(entry.rider))") }
    }
    if isListNew {
      let list = "\(operatorPlace.path)/tls/crl.pem"
      console.note("send SIGHUP to the broker: then it reads \(list) again, and refuses the device")
    }
    try publish.publish(operatorPlace.notices(now: now), context, console)
    console.note(
      "a vehicle refuses a revoked token once it has the notice; `stepctl operator log` shows which vehicles have it")
  }
}

extension Thumbprint: ExpressibleByArgument {
  public init?(argument: String) { self.init(String(argument.filter { $0 != " " })) }
}
