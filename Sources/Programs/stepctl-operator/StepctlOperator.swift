import OperatorCommands
import Terminal

@main
enum StepctlOperator {
  static func main() { Program.main(StepctlOperatorCommand.self, .stepctlOperator()) }
}
