import CommandParts
import RiderCommands
import SystemIO
import Terminal

@main
enum Stepctl {
  static func main() {
    let arguments = ProgramArguments.typed
    if OperatorProgram.isMeant(by: arguments) { OperatorProgram.become(with: arguments) }
    Program.main(StepctlCommand.self, .stepctl())
  }
}
