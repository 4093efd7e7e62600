import Glibc
import SystemIO
import Testing

/// A thread of its own: what waits in the kernel must not do so on one of the few that the tests share, and a signal
/// for one thread must not reach another.
final class Thread: @unchecked Sendable {
  private var handle = pthread_t()
  private let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) {
    self.body = body
    pthread_create(
      &handle, nil,
      { context in
        Unmanaged<Thread>.fromOpaque(context!).takeRetainedValue().body()
        return nil
      }, Unmanaged.passRetained(self).toOpaque())
  }

  func join() { pthread_join(handle, nil) }

  /// Runs `body` on a thread that a signal reaches a moment after something has come so far.
  static func withSignal(
    _ signal: Int32, after event: Wakeup, _ body: @escaping @Sendable (Interruption) throws -> Void
  ) throws {
    let thread = Thread {
      do {
        let interruption = try Interruption()
        let target = pthread_self()
        let sender = Thread {
          _ = try? waitReadable([event.number], until: .now + .seconds(30))
          // Who is to be interrupted waits by then, though that makes no difference.
          usleep(20_000)
          pthread_kill(target, signal)
        }
        defer { sender.join() }
        try body(interruption)
      } catch {
        Issue.record(error)
      }
    }
    thread.join()
  }
}
