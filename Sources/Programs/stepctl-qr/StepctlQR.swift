@main
enum StepctlQR {
  static func main() { DecoderProgram.run(Array(CommandLine.arguments.dropFirst())) }
}
