package import ArgumentParser
package import CommandParts
import RiderCommands
package import Terminal

/// The tree of `stepctl-operator`: all commands, so that its help, its suggestions and its completion scripts are those
/// of one program.
package struct StepctlOperatorCommand: ParsableCommand {
  package static let configuration = StepctlCommand.tree([
    Calibrate.self, Evaluate.self, Provision.self, OperatorGroup.self, TrafficGroup.self,
  ])

  package init() {}
}

extension ProgramText {
  /// `stepctl-operator`.
  package static func stepctlOperator(in context: Context = .process) -> ProgramText {
    .stepctl(in: context, adding: Examples.ofTechnicians)
  }
}
