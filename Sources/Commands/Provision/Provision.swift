import ArgumentParser

struct Provision: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "provision",
    abstract: "Make keys, tokens, tags and codes for vehicles and riders.",
    subcommands: [
      ProvisionVehicle.self, ProvisionToken.self, ProvisionBeacon.self, ProvisionTag.self, ProvisionQR.self,
      ProvisionWatcher.self,
    ])
}
