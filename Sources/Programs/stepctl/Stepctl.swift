import StepCommands
import Terminal

@main
enum Stepctl {
  static func main() { Program.main(StepctlCommand.self, .stepctl) }
}
