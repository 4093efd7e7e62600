import Access
import ArgumentParser
import CommandParts
import Domain
import Encoding
import Operator
import StepProtocol
import Terminal

struct ProvisionKeys: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "keys",
    abstract: "Make a vehicle's private keys on the vehicle, and print the public ones for its operator.",
    usage: "stepctl provision keys [<options>] <dir>")

  @Argument(help: ArgumentHelp("The vehicle's folder, on the vehicle.", valueName: "dir"), completion: .directory)
  var folder: String

  @OptionGroup var handover: HandoverOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    try check(folder: folder)
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let place = VehicleFolder(folder)
    let (text, signing, isNew) = try place.prepareKeys(now: context.seconds)
    if console.isJSON {
      try handover.write(text)
      return try console.result([
        "keys": .string(text), "signing_key": .string(signing.description), "is_new": .bool(isNew),
        "folder": .string(place.path), "file": handover.file.map { .string($0) } ?? .null,
      ])
    }
    console.note("\(isNew ? "made this vehicle's keys" : "this vehicle's keys"), in \(place.path); they stay there:")
    console.note(signing.grouped)
    try handover.put(text, console)
    console.note("give it to your operator: stepctl provision vehicle NAME --operator DIR --keys FILE")
  }
}
