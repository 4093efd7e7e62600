import ArgumentParser
import CommandParts
import Domain
import Encoding
import Operator
import Terminal

struct OperatorRenew: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "renew", abstract: "Renew the certificates that end soon.",
    usage: "stepctl operator renew [<options>] <dir>")

  @OptionGroup var place: PlaceOptions

  @Option(help: ArgumentHelp("Those that end within this time, 1s to 36500d, as 30d.", valueName: "time"))
  var within = Lifetime(seconds: 30 * 86_400)

  @Flag(help: "Only list all certificates, the one that ends first on top.")
  var list = false

  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let (operatorPlace, now) = (try place.place, context.seconds)
    // A wrong clock tells wrongly what ends soon.
    if !list { try operatorPlace.checkClock(now) }
    var renewed: [OperatorPlace.IssuedCertificate] = []
    for certificate in try operatorPlace.certificates() {
      let isDue = certificate.end - now <= within.seconds
      guard list || isDue else { continue }
      if !list { renewed.append(certificate) }
      let end = list ? certificate.end : try operatorPlace.renewCertificate(certificate.name, now: now)
      if console.isJSON {
        try console.result([
          "file": .string(certificate.name), "end": .integer(end), "is_due": .bool(list && isDue),
        ])
      } else {
        try console.result("\(dateAndTime(end))  \(printable(certificate.name))\(list && isDue ? "  (due)" : "")")
      }
    }
    guard !list else { return }
    for certificate in renewed {
      let file = printable("\(operatorPlace.path)/\(certificate.name)")
      switch certificate.holder {
      case .operator, .broker, .controller(elsewhere: false): break
      case .controller(elsewhere: true):
        console.note("bring \(file) to the vehicle, into tls/, and restart stepd there")
      }
    }
    console.note(
      renewed.isEmpty
        ? "no certificate ends that soon; `--list` shows them"
        : "the programs use new certificates from their next start on")
  }
}
