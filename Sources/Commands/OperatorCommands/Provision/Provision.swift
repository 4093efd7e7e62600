import ArgumentParser
import CommandParts

struct Provision: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "provision",
    abstract: TechnicianCommand.provision.abstract,
    subcommands: [
      ProvisionVehicle.self, ProvisionKeys.self, ProvisionToken.self, ProvisionBeacon.self, ProvisionTag.self,
      ProvisionQR.self, ProvisionWatcher.self,
    ])
}
