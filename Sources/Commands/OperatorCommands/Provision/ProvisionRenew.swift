import ArgumentParser
import CommandParts
import Encoding
import Operator
import Terminal

/// The folder of a vehicle that was made before.
struct ProvisionedOptions: ParsableArguments {
  @Argument(help: ArgumentHelp("The vehicle's folder.", valueName: "dir"), completion: .directory)
  var folder: String

  func validate() throws { try check(folder: folder) }

  var place: VehicleFolder { VehicleFolder(folder) }
}

struct ProvisionRenew: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "renew", abstract: "Renew the certificates of a vehicle's broker and controller.",
    usage: "stepctl provision renew <options> <dir>")

  @OptionGroup var vehicle: ProvisionedOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let end = try vehicle.place.renewCertificates(now: context.seconds)
    try console.isJSON
      ? console.result(["certificates_end": .integer(end)])
      : console.result("the certificates of broker and controller end \(dateAndTime(end)); restart both to use them")
  }
}
