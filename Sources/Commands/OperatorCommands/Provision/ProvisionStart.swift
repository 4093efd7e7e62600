import ArgumentParser
import CommandParts
import Encoding
import Operator
import Terminal

struct ProvisionStart: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "start", abstract: "On the vehicle: have systemd run its broker and stepd from now on.",
    usage: "stepctl provision start <options> <dir>")

  @OptionGroup var vehicle: ProvisionedOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let place = try vehicle.place(in: context)
    let services = try VehicleServices(hasBroker: place.hasBroker)
    try services.start(place, context.interruption())
    try console.isJSON ? console.result(["started": services.json]) : console.tell(of: services, place)
  }
}

extension Console {
  /// Says which services run, and where their files are.
  func tell(of services: VehicleServices, _ place: VehicleFolder) throws {
    try result("started \(services.names), now and at each start of this computer")
    note("the services use the files in \(services.folders); a later change in \(place.path) has no effect on them")
  }
}
