import ArgumentParser

struct Provision: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make what vehicles and riders need.",
    subcommands: [
      ProvisionVehicle.self, ProvisionToken.self, ProvisionBeacon.self, ProvisionTag.self, ProvisionQR.self,
    ])
}
