import CLinux
import Glibc

/// Waits until one of the descriptors can be read (or has hung up), or the deadline has passed.
///
/// - Returns: for each descriptor, in order, whether it is ready; all false when the deadline passed.
package func waitReadable(
  _ descriptors: [Int32], until deadline: ContinuousClock.Instant?
) throws(SystemError) -> [Bool] {
  var entries = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
  while true {
    var milliseconds: Int32 = -1
    if let deadline {
      // Rounded up: a wait that ends a little early would make its caller spin.
      milliseconds = Int32(clamping: ContinuousClock.now.duration(to: deadline).roundedUpToMilliseconds)
    }
    let ready = poll(&entries, nfds_t(entries.count), max(milliseconds, deadline == nil ? -1 : 0))
    if ready >= 0 { return entries.map { $0.revents != 0 } }
    if errno != EINTR { throw SystemError("poll") }
  }
}

extension Duration {
  /// Whole milliseconds, rounded towards the future; negative durations are 0.
  package var roundedUpToMilliseconds: Int64 {
    let (seconds, attoseconds) = components
    guard seconds >= 0, attoseconds >= 0 else { return 0 }
    return seconds &* 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
  }

  /// Seconds as a floating-point number.
  package var inSeconds: Double {
    Double(components.seconds) + Double(components.attoseconds) * 1e-18
  }
}

/// An event counter that one thread signals and another waits for with `waitReadable`.
package final class Wakeup: Sendable {
  private let descriptor: Descriptor

  package init() throws(SystemError) {
    descriptor = Descriptor(adopting: try check("create an eventfd") { eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK)) })
  }

  /// What to wait for; lent, not to be closed.
  package var number: Int32 { descriptor.number }

  /// Makes the descriptor readable. Any thread.
  package func signal() { _ = eventfd_write(descriptor.number, 1) }

  /// Makes it unreadable until the next signal.
  package func clear() {
    var count: eventfd_t = 0
    _ = eventfd_read(descriptor.number, &count)
  }
}

/// SIGINT, SIGTERM and SIGHUP as something to wait for instead of a handler that may run anywhere.
///
/// Create it before any other thread, so that every thread inherits the blocked signals.
package final class Interruption: Sendable {
  private let descriptor: Descriptor

  package init() throws(SystemError) {
    // A reader that went away is an error of write(2), which says so, and not the end of the process.
    signal(SIGPIPE, SIG_IGN)
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGINT)
    sigaddset(&signals, SIGTERM)
    if !Self.isIgnored(SIGHUP) { sigaddset(&signals, SIGHUP) }
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    descriptor = Descriptor(
      adopting: try check("create a signalfd") { signalfd(-1, &signals, Int32(SFD_CLOEXEC | SFD_NONBLOCK)) })
  }

  /// Whether it was to be ignored from the start: by nohup(1), so that a command outlives its terminal.
  private static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    sigaction(number, nil, &action)
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  /// Readable once a signal has arrived, and from then on.
  package var number: Int32 { descriptor.number }

  /// Whether a signal has arrived. It stays pending, so every later wait ends at once as well.
  package var isPending: Bool {
    var entry = pollfd(fd: descriptor.number, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, 0) > 0
  }

  /// The signal that is waiting, of those that an `Interruption` holds back.
  package static var pending: Int32? {
    var signals = sigset_t()
    sigpending(&signals)
    return [SIGINT, SIGTERM, SIGHUP].first { sigismember(&signals, $0) == 1 }
  }

  /// Ends the process as the signal would have, so that a shell sees an interrupted command.
  package static func die(of number: Int32) -> Never {
    signal(number, SIG_DFL)
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, number)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    raise(number)
    exit(128 + number)
  }
}
