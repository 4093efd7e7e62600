import CLinux
import Glibc

/// A descriptor that ends waits. It stays readable after the interruption, so that every later wait ends at once.
///
/// `init()` makes one for SIGINT, SIGTERM and SIGHUP, and replaces signal handlers, which may run anywhere. `manual()`
/// makes one for a thread that another thread must end.
package final class Interruption: Sendable {
  private let descriptor: Descriptor
  private let isManual: Bool

  /// Blocks the signals. Call it before any other thread starts, so that every thread inherits the mask.
  ///
  /// - Parameter atHangup: whether SIGHUP is among them.
  package init(atHangup: Bool = true) throws(SystemError) {
    // A vanished reader must be an error of write(2), not the end of the process.
    signal(SIGPIPE, SIG_IGN)
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGINT)
    sigaddset(&signals, SIGTERM)
    if atHangup, !Self.isIgnored(SIGHUP) { sigaddset(&signals, SIGHUP) }
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    descriptor = Descriptor(
      adopting: try check("create a signalfd") { signalfd(-1, &signals, Int32(SFD_CLOEXEC | SFD_NONBLOCK)) })
    isManual = false
  }

  private init(manual descriptor: consuming Descriptor) {
    self.descriptor = descriptor
    isManual = true
  }

  /// An interruption by `interrupt()`, not by signals.
  package static func manual() throws(SystemError) -> Interruption {
    Interruption(
      manual: Descriptor(
        adopting: try check("create an eventfd") { eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK)) }))
  }

  /// Ends present and later waits. May be called from any thread, and again.
  ///
  /// - Precondition: it was made with `manual()`.
  package func interrupt() {
    precondition(isManual, "only a signal interrupts this")
    _ = eventfd_write(descriptor.number, 1)
  }

  /// The descriptor to wait for; borrowed: do not read or close it.
  package var number: Int32 { descriptor.number }

  /// Whether the interruption has happened.
  package var isPending: Bool {
    var entry = pollfd(fd: descriptor.number, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, 0) > 0
  }

  /// The pending signal, among those that an `Interruption` blocks.
  package static var pending: Int32? {
    var signals = sigset_t()
    sigpending(&signals)
    return [SIGINT, SIGTERM, SIGHUP].first { sigismember(&signals, $0) == 1 }
  }

  /// Ends the process as the signal would have done, so that a shell sees an interrupted command.
  package static func die(of number: Int32) -> Never {
    signal(number, SIG_DFL)
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, number)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    raise(number)
    exit(128 + number)
  }

  /// Whether the signal was ignored from the start, as by nohup(1), so that a command outlives its terminal.
  private static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    sigaction(number, nil, &action)
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }
}

/// SIGHUP, for a daemon that then reloads its files.
package final class Hangups: Sendable {
  private let descriptor: Descriptor

  /// Blocks the signal. Call it before any other thread starts, so that every thread inherits the mask.
  package init() throws(SystemError) {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGHUP)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    descriptor = Descriptor(
      adopting: try check("create a signalfd") { signalfd(-1, &signals, Int32(SFD_CLOEXEC | SFD_NONBLOCK)) })
  }

  /// Readable after the signal; borrowed: do not close it.
  package var number: Int32 { descriptor.number }

  /// Clears the pending signals; several count as one.
  package func clear() {
    var information = signalfd_siginfo()
    while read(descriptor.number, &information, MemoryLayout<signalfd_siginfo>.size) > 0 {}
  }
}
