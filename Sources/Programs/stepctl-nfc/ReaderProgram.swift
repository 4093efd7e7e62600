import Encoding
import Glibc
import SystemIO
import Tags

/// `stepctl-nfc`: libnfc in a process of its own, which ends when libnfc ends it.
///
/// It reads requests from standard input and writes replies to standard output until its input ends.
@main
enum ReaderProgram {
  /// Seconds for one request. Then the kernel ends the process: stepctl may be gone, and libnfc may wait for ever.
  private static let longest: UInt32 = 10

  /// Bytes of address space and seconds of processor time: far more than libnfc takes in a day.
  private static let limits = (memory: UInt(1 << 30), seconds: UInt(3600))

  /// `EX_PROTOCOL` of sysexits.h: a request was no message of ours.
  private static let protocolError: Int32 = 76

  // Never closed before the process ends: stepctl takes the end of our output for our end, and `Reader` has yet to
  // switch off the field.
  private static let input = Descriptor(adopting: STDIN_FILENO)
  private static let output = Descriptor(adopting: STDOUT_FILENO)

  static func main() { exit(run()) }

  private static func run() -> Int32 {
    // It leaves no core: why libnfc aborts is known.
    guard (try? Confinement.limit(memory: limits.memory, seconds: limits.seconds)) != nil else { return EXIT_FAILURE }
    // A terminal sends these to the whole group. They are for stepctl, which then closes our input.
    signal(SIGINT, SIG_IGN)
    signal(SIGHUP, SIG_IGN)
    // libnfc and libusb complain on standard error of what is no fault, unless somebody wants to hear it.
    setenv("LIBNFC_LOG_LEVEL", "0", 0)
    guard let reader = Reader() else { return EXIT_FAILURE }
    var frames = Frames(longest: NFCRequest.longest)
    var chunk = [UInt8](repeating: 0, count: 4096)
    do {
      while true {
        while let body = try frames.next() {
          let request = try NFCRequest(body: body)
          alarm(longest)
          let reply = reader.answer(request)
          alarm(0)
          try output.write(Frames.frame(reply.body))
        }
        let count = try chunk.withUnsafeMutableBytes { try input.read(into: $0) }
        if count == 0 { return EXIT_SUCCESS }
        frames.append(chunk[..<count])
      }
    } catch is MalformedMessage {
      return protocolError
    } catch {
      return EXIT_FAILURE
    }
  }
}
