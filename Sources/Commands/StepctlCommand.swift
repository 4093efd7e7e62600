package import ArgumentParser
import Terminal

/// The tree of commands.
package struct StepctlCommand: ParsableCommand {
  package static let configuration = CommandConfiguration(
    commandName: "stepctl",
    abstract: "Move the entry step that you stand in front of, and no other.",
    discussion: """
      stepctl finds out at which side of a vehicle you are, proves it, and sends one encrypted command. See stepctl(1), \
      and stepctl-COMMAND(1) for each command.
      """,
    version: Program.version,
    groupedSubcommands: [
      CommandGroup(
        name: "Rider",
        subcommands: [Open.self, Close.self, Stop.self, Status.self, Find.self, Locate.self, Enroll.self, Config.self]),
      CommandGroup(
        name: "Booking",
        subcommands: [
          Login.self, Book.self, Bookings.self, Vehicles.self, Whoami.self, Logout.self, AccountGroup.self,
        ]),
      CommandGroup(
        name: "Technician",
        subcommands: [
          Scan.self, Doctor.self, Calibrate.self, Evaluate.self, Provision.self, Operator.self, TrafficGroup.self,
        ]),
    ])

  package init() {}
}
