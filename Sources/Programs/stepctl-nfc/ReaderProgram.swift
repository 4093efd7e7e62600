import Glibc
import Tags
import SystemIO

/// `stepctl-nfc`: libnfc in a process of its own, which may end when libnfc does.
///
/// It reads requests from standard input and writes replies to standard output until its input ends.
package enum ReaderProgram {
  /// Seconds for one request, after which the kernel ends the process: stepctl may be gone, and libnfc may wait for ever.
  private static let longest: UInt32 = 10

  /// Far more than libnfc takes in a day, bytes of address space and seconds of processor time.
  private static let limits = (memory: UInt(1 << 30), seconds: UInt(3600))

  package static func run() -> Int32 {
    // Nor is a core of any use: what libnfc aborts for is known.
    guard (try? Confinement.limit(memory: limits.memory, seconds: limits.seconds)) != nil else { return EXIT_FAILURE }
    // What a terminal sends to the whole group is stepctl's business, which then closes our input.
    signal(SIGINT, SIG_IGN)
    signal(SIGHUP, SIG_IGN)
    // libnfc and libusb complain on standard error of what is no fault, unless somebody wants to hear it.
    setenv("LIBNFC_LOG_LEVEL", "0", 0)
    guard let reader = Reader() else { return EXIT_FAILURE }
    var frames = Frames()
    var chunk = [UInt8](repeating: 0, count: Frames.longestBody + 2)
    do throws(MalformedMessage) {
      while true {
        while let body = try frames.next() {
          let request = try NFCRequest(body: body)
          alarm(longest)
          let reply = reader.answer(request)
          alarm(0)
          guard let frame = reply.map({ Frames.frame($0.body) }) else { return EXIT_SUCCESS }
          guard write(STDOUT_FILENO, frame, frame.count) == frame.count else { return EXIT_FAILURE }
        }
        let count = read(STDIN_FILENO, &chunk, chunk.count)
        if count == 0 { return EXIT_SUCCESS }
        if count < 0 {
          guard errno == EINTR else { return EXIT_FAILURE }
          continue
        }
        frames.append(chunk[..<count])
      }
    } catch {
      return protocolError
    }
  }

  /// `EX_PROTOCOL` of sysexits.h, which the Glibc module leaves out.
  private static let protocolError: Int32 = 76
}
