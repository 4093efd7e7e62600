import CLinux
package import Domain
import Encoding
import Glibc

/// One of our programs that runs a library in its own process, because the library may crash, hang, or be taken over by
/// the data that it reads.
///
/// - Messages: `Frames` on its standard input and output. None of its output is trusted.
/// - Threads: only one thread may use it. It can be a source of an `EventLoop`: watch `descriptor`, and call
///   `received()`.
/// - Latency: only `ask`, `next` and `end` wait, each up to its deadline. An interruption ends the first two at once.
/// - Ownership: it ends with its owner, whatever it is doing. After an error it can no longer be used.
package final class HelperProcess {
  package enum Failure: Domain.Failure, Equatable {
    /// A system call failed, for example because the program cannot be started.
    case system(SystemError)
    /// An interruption ended a wait.
    case interrupted
    /// It ended, or closed its output, before it had answered.
    case ended(ChildProcess.Ending)
    /// It did not answer, or did not take its input, in time.
    case silent
    /// Its output is not a message.
    case malformed

    package var description: String {
      switch self {
      case .system(let error): error.description
      case .interrupted: "interrupted"
      case .ended(.exited(let status)): "a helper program ended (status \(status))"
      case .ended(.signaled(let number)): "a helper program ended (signal \(number))"
      case .silent: "a helper program does not answer"
      case .malformed: "a helper program is of another version than this one"
      }
    }

    package var exitStatus: ExitStatus {
      switch self {
      case .system(let error): error.exitStatus
      case .interrupted: .failure
      case .ended, .silent, .malformed: .unavailable
      }
    }

    package var isInterruption: Bool { self == .interrupted }
  }

  private var child: ChildProcess
  private let interruption: Interruption?
  private var frames: Frames

  /// How long it may take to accept a message, or to end after it has closed its output.
  private static let patience = Duration.seconds(1)

  /// Starts a program. From now on, this process ignores SIGPIPE.
  ///
  /// - Parameters:
  ///   - path: the program's path, from `ChildProcess.program`.
  ///   - standardInput: a descriptor that it reads instead of messages.
  ///   - isHeard: whether it shares this process's standard error; otherwise that goes to `/dev/null`.
  ///   - longest: the longest message that it may send, bytes.
  ///   - interruption: ends waits.
  package init(
    _ path: String, arguments: [String] = [], standardInput: Int32? = nil, isHeard: Bool = false,
    longest: Int = Frames.longest, interruption: Interruption? = nil
  ) throws(Failure) {
    // Writing to a program that has ended must be an error of write(2), not the end of this process.
    signal(SIGPIPE, SIG_IGN)
    do {
      child = try ChildProcess(
        path, arguments: arguments, standardInput: standardInput, errors: isHeard ? .shared : .nowhere)
    } catch {
      throw .system(error)
    }
    frames = Frames(longest: longest)
    self.interruption = interruption
    // A program that does not read must not block this one.
    _ = fcntl(child.input.number, F_SETFL, O_NONBLOCK)
  }

  /// Readable when it has sent something or has ended; borrowed: do not read or close it.
  package var descriptor: Int32 { child.output.number }

  /// Sends a message, and waits for the next message from the program.
  ///
  /// - Throws: `silent` if none comes in time, and the errors of `next`.
  package func ask(_ message: [UInt8], within patience: Duration) throws(Failure) -> [UInt8] {
    try send(message)
    guard let answer = try next(until: .now + patience) else { throw .silent }
    return answer
  }

  /// Sends a message.
  package func send(_ message: [UInt8]) throws(Failure) {
    var rest = Frames.frame(message)[...]
    let deadline = Instant.now + Self.patience
    while !rest.isEmpty {
      guard try wait(for: POLLOUT, on: child.input.number, until: deadline) else { throw .silent }
      let count = rest.withUnsafeBytes { write(child.input.number, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if ![EINTR, EAGAIN].contains(errno) {
        throw ended()
      }
    }
  }

  /// Waits for the next message.
  ///
  /// - Parameter deadline: nil for no deadline.
  /// - Returns: nil at the deadline.
  package func next(until deadline: Instant?) throws(Failure) -> [UInt8]? {
    while true {
      if let message = try complete() { return message }
      guard try wait(for: POLLIN, on: child.output.number, until: deadline) else { return nil }
      try read()
    }
  }

  /// Reads the available input. An `EventLoop` calls it when `descriptor` is readable.
  ///
  /// - Returns: the complete messages.
  package func received() throws(Failure) -> [[UInt8]] {
    try read()
    var messages: [[UInt8]] = []
    while let message = try complete() { messages.append(message) }
    return messages
  }

  /// Closes the program's input, which makes it end, and waits at most this long. Any further output is ignored.
  package func end(within patience: Duration) {
    child.closeInput()
    let deadline = Instant.now + patience
    while (try? waitReadable([child.output.number], until: deadline)) == [true], (try? read()) != nil {}
  }

  // MARK: -

  private func complete() throws(Failure) -> [UInt8]? {
    do { return try frames.next() } catch { throw .malformed }
  }

  private func read() throws(Failure) {
    var chunk = [UInt8](repeating: 0, count: 8192)
    let count: Int
    do {
      count = try check("read from", "a helper program") { Glibc.read(child.output.number, &chunk, chunk.count) }
    } catch {
      throw .system(error)
    }
    guard count > 0 else { throw ended() }
    frames.append(chunk[..<count])
  }

  /// A program that has closed its output may still run forever.
  private func ended() -> Failure { .ended(child.wait(within: Self.patience)) }

  /// - Returns: false at the deadline.
  private func wait(
    for event: Int32, on descriptor: Int32, until deadline: Instant?
  ) throws(Failure) -> Bool {
    let ready: [Bool]
    do {
      // poll(2) ignores a descriptor of -1.
      ready = try waitReady([(descriptor, event), (interruption?.number ?? -1, POLLIN)], until: deadline)
    } catch {
      throw .system(error)
    }
    if ready[1] { throw .interrupted }
    return ready[0]
  }
}
