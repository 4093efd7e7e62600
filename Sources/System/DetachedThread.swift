import Glibc

/// A thread that nobody waits for.
package enum DetachedThread {
  /// Starts one that runs `body` once, and keeps alive until then what `body` holds, which is the thread's from here on.
  package static func start(_ body: sending @escaping () -> Void) throws(SystemError) {
    let context = Unmanaged.passRetained(Body(run: body))
    var thread = pthread_t()
    let code = pthread_create(
      &thread, nil,
      { context in
        Unmanaged<Body>.fromOpaque(context!).takeRetainedValue().run()
        return nil
      }, context.toOpaque())
    guard code == 0 else {
      context.release()
      throw SystemError("start a thread", code: code)
    }
    pthread_detach(thread)
  }

  private final class Body {
    let run: () -> Void
    init(run: @escaping () -> Void) { self.run = run }
  }
}
