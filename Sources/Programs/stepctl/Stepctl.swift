import CommandParts
import RiderCommands
import Terminal

@main
enum Stepctl {
  static func main() {
    let arguments = Array(CommandLine.arguments.dropFirst())
    if OperatorProgram.isMeant(by: arguments) { OperatorProgram.become(with: arguments) }
    Program.main(StepctlCommand.self, .stepctl())
  }
}
