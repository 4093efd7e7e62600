import Glibc
import NFCDevice

@main
enum StepctlNFC {
  static func main() { exit(ReaderProgram.run()) }
}
