import Glibc

@main
enum StepctlNFC {
  static func main() { exit(ReaderProgram.run()) }
}
