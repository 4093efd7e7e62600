import Encoding
import Glibc
import SystemIO
import Tags

/// `stepctl-nfc`: libnfc in a separate process, which ends if libnfc ends it.
///
/// It reads requests from standard input and writes replies to standard output until its input ends.
@main
enum ReaderProgram {
  /// The time limit for one request, seconds. Then the kernel ends the process: stepctl may be gone, and libnfc may
  /// wait forever.
  private static let longest: UInt32 = 10

  /// Bytes of address space and seconds of processor time: far more than libnfc needs in a day.
  private static let limits = (memory: UInt(1 << 30), seconds: UInt(3600))

  /// `EX_PROTOCOL` of sysexits.h: a request was malformed.
  private static let protocolError: Int32 = 76

  // Never closed before the process ends: stepctl takes the end of this output for the end of the process, but `Reader`
  // must still switch off the field.
  private static let input = Descriptor(adopting: STDIN_FILENO)
  private static let output = Descriptor(adopting: STDOUT_FILENO)

  static func main() { exit(run()) }

  private static func run() -> Int32 {
    // No core file: the reason for libnfc's aborts is known.
    guard (try? Confinement.limit(memory: limits.memory, seconds: limits.seconds)) != nil else { return EXIT_FAILURE }
    // A terminal sends these signals to the whole process group. They are for stepctl, which then closes this input.
    signal(SIGINT, SIG_IGN)
    signal(SIGHUP, SIG_IGN)
    // libnfc and libusb report harmless events on standard error, so their log is off by default.
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
