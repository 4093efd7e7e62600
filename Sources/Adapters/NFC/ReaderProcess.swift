import Glibc
import Tags
import SystemIO

/// `stepctl-nfc`, in which libnfc is: started here, spoken to, and given up when it does not answer.
final class ReaderProcess {
  private var process: ChildProcess
  private var frames = Frames()
  private let interruption: Interruption

  /// Longer than what libnfc waits for in any request of ours.
  private static let patience = Duration.seconds(4)
  /// How long it may take to switch off the field.
  private static let farewell = Duration.milliseconds(150)

  /// - Parameter program: the path of `stepctl-nfc`.
  init(_ program: String, interruption: Interruption) throws(NFCError) {
    self.interruption = interruption
    do throws(SystemError) {
      // Where somebody wants to see libnfc's log, it is on standard error; else nothing is.
      process = try ChildProcess(program, isHeard: getenv("LIBNFC_LOG_LEVEL") != nil)
    } catch {
      throw .system(error)
    }
  }

  /// Sends a request and waits for its reply. After an error this process is of no more use.
  func ask(_ request: NFCRequest) throws(NFCError) -> NFCReply {
    try send(request)
    let deadline = ContinuousClock.now + Self.patience
    while true {
      do throws(MalformedMessage) {
        if let body = try frames.next() { return try NFCReply(body: body) }
      } catch {
        throw .unexpected
      }
      guard try waitForOutput(until: deadline) else { throw .programUnusable(reason: "does not answer") }
      let bytes = try read()
      if bytes.isEmpty { throw .programEnded(process.wait()) }
      frames.append(bytes)
    }
  }

  /// Has it switch off the field, if it can do so at once.
  func close() {
    guard (try? send(.close)) != nil else { return }
    let deadline = ContinuousClock.now + Self.farewell
    while (try? waitReadable([process.output.number], until: deadline))?[0] == true {
      guard let bytes = try? read(), !bytes.isEmpty else { return }
    }
  }

  private func send(_ request: NFCRequest) throws(NFCError) {
    do throws(SystemError) {
      try process.input.write(Frames.frame(request.body), "the reader's program")
    } catch {
      throw .programEnded(process.kill())
    }
  }

  private func waitForOutput(until deadline: ContinuousClock.Instant) throws(NFCError) -> Bool {
    do throws(SystemError) {
      let ready = try waitReadable([process.output.number, interruption.number], until: deadline)
      if !ready[1] { return ready[0] }
    } catch {
      throw .system(error)
    }
    throw .interrupted
  }

  private func read() throws(NFCError) -> [UInt8] {
    var chunk = [UInt8](repeating: 0, count: Frames.longestBody + 2)
    let number = process.output.number
    do throws(SystemError) {
      let count = try check("read from", "the reader's program") { Glibc.read(number, &chunk, chunk.count) }
      return Array(chunk[..<count])
    } catch {
      throw .system(error)
    }
  }
}
