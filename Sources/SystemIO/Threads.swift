import CLinux
import Glibc
import Synchronization

/// A thread that nobody waits for.
package enum DetachedThread {
  /// Starts a thread that runs `body` once. From now on `body` and its captures belong to the thread, which releases
  /// them at its end.
  package static func start(_ body: sending @escaping () -> Void) throws(SystemError) {
    pthread_detach(try startThread(body))
  }

  /// Starts a thread likewise, before the program blocks signals (`Interruption`). This thread handles no signals.
  package static func startAhead(_ body: sending @escaping () -> Void) throws(SystemError) {
    var (all, before) = (sigset_t(), sigset_t())
    sigfillset(&all)
    // A new thread inherits its creator's signal mask.
    pthread_sigmask(SIG_SETMASK, &all, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    try start(body)
  }
}

private final class ThreadBody {
  let run: () -> Void
  init(run: @escaping () -> Void) { self.run = run }
}

/// - Returns: a thread that must be joined or detached.
private func startThread(_ body: sending @escaping () -> Void) throws(SystemError) -> pthread_t {
  let context = Unmanaged.passRetained(ThreadBody(run: body))
  var thread = pthread_t()
  let code = pthread_create(
    &thread, nil,
    { context in
      // The context is passed below, and never nil.
      Unmanaged<ThreadBody>.fromOpaque(context!).takeRetainedValue().run()
      return nil
    }, context.toOpaque())
  guard code == 0 else {
    context.release()
    throw SystemError("start a thread", code: code)
  }
  return thread
}

/// A task on its own thread, whose result is awaited later. Its `deinit` waits for the thread: if a program ended while
/// another thread used libcrypto, libcrypto would be torn down under that thread.
package final class Meanwhile<Success: Sendable>: Sendable {
  private let outcome: Outcome
  private let thread: Mutex<pthread_t?>

  private final class Outcome: Sendable {
    let result = Mutex<Result<Success, any Error>?>(nil)
  }

  /// Starts the task.
  package init(_ body: @escaping @Sendable () throws -> Success) throws(SystemError) {
    let outcome = Outcome()
    self.outcome = outcome
    thread = Mutex(
      try startThread {
        let result = Result { try body() }
        outcome.result.withLock { $0 = result }
      })
  }

  deinit { join() }

  /// Waits until the task is done.
  package func result() throws -> Success {
    join()
    // The thread has ended, so it has stored its result.
    return try outcome.result.withLock { $0! }.get()
  }

  private func join() {
    thread.withLock { thread in
      if let running = thread { pthread_join(running, nil) }
      thread = nil
    }
  }
}

/// An event counter that one thread signals and another waits for with `waitReadable` or an `EventLoop`.
package final class Wakeup: Sendable {
  private let descriptor: Descriptor

  package init() throws(SystemError) {
    descriptor = Descriptor(adopting: try check("create an eventfd") { eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK)) })
  }

  /// The descriptor to wait for; borrowed: do not close it.
  package var number: Int32 { descriptor.number }

  /// Makes the descriptor readable. Any thread.
  package func signal() { _ = eventfd_write(descriptor.number, 1) }

  /// Makes the descriptor unreadable until the next signal.
  package func clear() {
    var count: eventfd_t = 0
    _ = eventfd_read(descriptor.number, &count)
  }
}

/// Messages from any thread to one receiving thread, with an `EventLoop`, or with `waitReadable` and `take`.
///
/// Posting never waits. The mailbox keeps all messages until they are taken, so a sender that never stops needs its own
/// limit.
package final class Mailbox<Message: Sendable>: Sendable {
  private struct Contents {
    /// Messages before `first` are already taken.
    var messages: [Message?] = []
    var first = 0
  }

  private let contents = Mutex(Contents())
  private let filled: Wakeup

  package init() throws(SystemError) { filled = try Wakeup() }

  /// Readable while there is a message; borrowed: do not read or close it.
  package var descriptor: Int32 { filled.number }

  /// Adds a message. Any thread.
  package func post(_ message: Message) {
    contents.withLock { contents in
      if contents.messages.isEmpty { filled.signal() }
      contents.messages.append(message)
    }
  }

  /// The oldest message; nil if there is none.
  package func take() -> Message? {
    contents.withLock { contents in
      guard !contents.messages.isEmpty else { return nil }
      defer {
        contents.messages[contents.first] = nil
        contents.first += 1
        if contents.first == contents.messages.count {
          contents = Contents()
          filled.clear()
        } else if contents.first >= 1024 {
          contents.messages.removeFirst(contents.first)
          contents.first = 0
        }
      }
      return contents.messages[contents.first]
    }
  }
}
