import CLinux
import Glibc

/// A descriptor that ends waits: readable from the moment of the interruption on, so that every later wait ends at
/// once.
///
/// `init()` makes one of SIGINT, SIGTERM and SIGHUP, to wait for in place of handlers that may run anywhere. `manual()`
/// makes one for a thread that another has to end.
package final class Interruption: Sendable {
  private let descriptor: Descriptor
  private let isManual: Bool

  /// Holds the signals back. Call it before any other thread is started, so that every thread inherits it.
  ///
  /// - Parameter atHangup: whether SIGHUP is one of them.
  package init(atHangup: Bool = true) throws(SystemError) {
    // A reader that went away is an error of write(2), which says so, and not the end of the process.
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

  /// One that no signal ends, but `interrupt()`.
  package static func manual() throws(SystemError) -> Interruption {
    Interruption(
      manual: Descriptor(
        adopting: try check("create an eventfd") { eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK)) }))
  }

  /// Ends the waits, now and later. Any thread; may be called again.
  ///
  /// - Precondition: it was made with `manual()`.
  package func interrupt() {
    precondition(isManual, "only a signal interrupts this")
    _ = eventfd_write(descriptor.number, 1)
  }

  /// What to wait for; lent, not to be read or closed.
  package var number: Int32 { descriptor.number }

  /// Whether waits end.
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

  /// Whether it was to be ignored from the start: by nohup(1), so that a command outlives its terminal.
  private static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    sigaction(number, nil, &action)
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }
}

/// SIGHUP, for a daemon that takes it as the wish to read its files again.
package final class Hangups: Sendable {
  private let descriptor: Descriptor

  /// Holds the signal back. Call it before any other thread is started, so that every thread inherits it.
  package init() throws(SystemError) {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGHUP)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    descriptor = Descriptor(
      adopting: try check("create a signalfd") { signalfd(-1, &signals, Int32(SFD_CLOEXEC | SFD_NONBLOCK)) })
  }

  /// Readable when the signal has come; lent, not to be closed.
  package var number: Int32 { descriptor.number }

  /// Takes those that came; several count as one.
  package func clear() {
    var information = signalfd_siginfo()
    while read(descriptor.number, &information, MemoryLayout<signalfd_siginfo>.size) > 0 {}
  }
}
