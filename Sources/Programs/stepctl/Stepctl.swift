import StepCommands
import Terminal

@main
enum Stepctl {
  static func main() { Program.run(StepctlCommand.self, explain: StepctlCommand.explain) }
}
