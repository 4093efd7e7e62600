package import ArgumentParser
import CommandParts
import Terminal

/// The tree of `stepctl`'s commands. Those of technicians and operators are only named here.
package struct StepctlCommand: ParsableCommand {
  package static let configuration = tree([
    ListedCalibrate.self, ListedEvaluate.self, ListedProvision.self, ListedOperator.self, ListedTraffic.self,
  ])

  /// The whole tree.
  ///
  /// - Parameter technicians: the commands of `TechnicianCommand`, in its order; nil leaves out what only a technician
  ///   types.
  package static func tree(_ technicians: [any ParsableCommand.Type]?) -> CommandConfiguration {
    CommandConfiguration(
      commandName: "stepctl",
      abstract: "Move the entry step that you stand in front of, and no other.",
      discussion: """
        stepctl finds out at which side of a vehicle you are, proves it, and sends one encrypted command. See \
        stepctl(1), and stepctl-COMMAND(1) for each command.
        """,
      version: Program.version,
      groupedSubcommands: [
        CommandGroup(
          name: "Rider",
          subcommands: [
            Open.self, Close.self, Stop.self, Status.self, Find.self, Locate.self, Enroll.self, Unlock.self, Lock.self,
            Config.self, Doctor.self,
          ]),
        CommandGroup(
          name: "Booking",
          subcommands: [
            Login.self, Book.self, Bookings.self, Vehicles.self, Zones.self, Whoami.self, Logout.self,
            AccountGroup.self,
          ]),
      ] + (technicians.map { [CommandGroup(name: "Technician", subcommands: [Scan.self] + $0)] } ?? []))
  }

  package init() {}
}

/// What `stepctl --help` lists: `stepctl help --all` lists the commands of technicians and operators too.
struct RiderHelp: ParsableCommand {
  static let configuration = StepctlCommand.tree(nil)
}

// What `stepctl help --all` lists, and what a mistyped word is compared with. `stepctl-operator` runs these commands.

private struct ListedCalibrate: ParsableCommand { static let configuration = TechnicianCommand.calibrate.listed }
private struct ListedEvaluate: ParsableCommand { static let configuration = TechnicianCommand.evaluate.listed }
private struct ListedProvision: ParsableCommand { static let configuration = TechnicianCommand.provision.listed }
private struct ListedOperator: ParsableCommand { static let configuration = TechnicianCommand.operator.listed }
private struct ListedTraffic: ParsableCommand { static let configuration = TechnicianCommand.traffic.listed }
