import CLinux
import Glibc

/// Waits for descriptors, timers and messages together, and calls the handler of each.
///
/// - Threads: one thread owns the loop. It registers handlers and runs the loop, and all handlers run on it. Only
///   `Mailbox.post` and `Interruption.interrupt` may be called from other threads.
/// - Latency: the loop sleeps until something is ready and never polls. A handler delays all others while it runs, so
///   blocking work belongs on a `DetachedThread` that posts its result to a `Mailbox`. In each round the due timers run
///   first, then each ready descriptor has its turn.
/// - Ownership: the loop keeps a handler, and what the handler holds, until its registration is cancelled or its timer
///   has run. Descriptors are borrowed: cancel the registration before you close the descriptor.
/// - Handlers may add and cancel any registration, even their own. A cancelled handler is never called again.
package final class EventLoop {
  private let epoll: Descriptor
  private let timer: Descriptor
  private var sources: [UInt64: Source] = [:]
  /// Sources that epoll refuses because they are always readable (files, `/dev/null`).
  private var files: [Source] = []
  /// Sorted by time; the next one to run is last.
  private var timers: [Registration] = []
  /// The time that the timer descriptor was last set to.
  private var armed: Instant?
  private var lastNumber: UInt64 = 0
  private var events = [epoll_event](repeating: epoll_event(), count: 16)
  private var isStopped = false
  private var isRunning = false

  package init() throws(SystemError) {
    epoll = Descriptor(adopting: try check("create an epoll") { epoll_create1(Int32(EPOLL_CLOEXEC)) })
    // The clock of `Instant`.
    timer = Descriptor(
      adopting: try check("create a timerfd") {
        timerfd_create(__clockid_t(CLOCK_BOOTTIME), Int32(TFD_CLOEXEC | TFD_NONBLOCK))
      })
    _ = try control(EPOLL_CTL_ADD, timer.number, data: Self.timerData)
  }

  deinit {
    // A handler may hold its own registration, so the registrations must be cancelled here.
    for registration in sources.values.flatMap(\.registrations) + files.flatMap(\.registrations) + timers {
      registration.cancel()
    }
  }

  /// Calls `handler` whenever the descriptor is readable or has hung up, as long as that lasts (level-triggered). So
  /// `handler` must read the available data or, at the end, cancel.
  ///
  /// A descriptor may be watched several times. A file on a disk is always readable.
  ///
  /// - Throws: the errors of epoll_ctl(2).
  @discardableResult
  package func watch(
    _ descriptor: Int32, _ handler: @escaping () throws -> Void
  ) throws(SystemError) -> Registration {
    if let source = (sources.values + files).first(where: { $0.descriptor == descriptor }) {
      return source.add(Registration(self, handler, source: source))
    }
    let source = Source(descriptor, number: nextNumber())
    if try control(EPOLL_CTL_ADD, descriptor, data: source.number) {
      sources[source.number] = source
    } else {
      files.append(source)
    }
    return source.add(Registration(self, handler, source: source))
  }

  /// Calls `handler` once, as soon as the time has come and the loop is free, never before. Due timers run in the order
  /// of their times; timers for the same time run in the order in which they were scheduled.
  @discardableResult
  package func schedule(
    at time: Instant, _ handler: @escaping () throws -> Void
  ) -> Registration {
    let registration = Registration(self, handler, time: time)
    // Every registration in `timers` has a time.
    let index = timers.firstIndex { $0.time! <= time } ?? timers.endIndex
    timers.insert(registration, at: index)
    return registration
  }

  /// Calls `handler` for each message, in posting order.
  @discardableResult
  package func receive<Message>(
    _ mailbox: Mailbox<Message>, _ handler: @escaping (Message) throws -> Void
  ) throws(SystemError) -> Registration {
    weak var itself: Registration?
    let registration = try watch(mailbox.descriptor) {
      // A mailbox that fills all the time must not keep the others waiting.
      for _ in 0..<32 {
        guard itself?.isActive == true, let message = mailbox.take() else { break }
        try handler(message)
      }
    }
    itself = registration
    return registration
  }

  /// Waits and calls handlers until `stop()`.
  ///
  /// If a handler throws, the run ends and rethrows the error. The registrations stay.
  package func run() throws {
    precondition(!isRunning, "a handler runs the loop that runs it")
    isRunning = true
    defer { (isRunning, isStopped) = (false, false) }
    while !isStopped {
      let ready = try wait()
      try runTimers()
      for number in ready { if let source = sources[number] { try call(source) } }
      for file in files { try call(file) }
    }
  }

  /// Ends the run when the current handler returns. If the loop is not running, its next run ends at once.
  package func stop() { isStopped = true }

  // MARK: -

  fileprivate final class Source {
    let descriptor: Int32
    /// Never reused, so that a late event of a removed source is ignored.
    let number: UInt64
    var registrations: [Registration] = []

    init(_ descriptor: Int32, number: UInt64) { (self.descriptor, self.number) = (descriptor, number) }

    func add(_ registration: Registration) -> Registration {
      registrations.append(registration)
      return registration
    }
  }

  private static let timerData: UInt64 = 0

  private func nextNumber() -> UInt64 {
    lastNumber += 1
    return lastNumber
  }

  /// - Returns: false if epoll refuses the descriptor because its kind is always readable.
  private func control(_ operation: Int32, _ descriptor: Int32, data: UInt64) throws(SystemError) -> Bool {
    var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: data))
    if epoll_ctl(epoll.number, operation, descriptor, &event) == 0 { return true }
    if errno == EPERM { return false }
    throw SystemError("wait for descriptor", String(descriptor))
  }

  /// - Returns: the numbers of the ready sources.
  private func wait() throws(SystemError) -> [UInt64] {
    if let next = timers.last?.time, next != armed { arm(next) }
    let timeout: Int32 = files.isEmpty ? -1 : 0
    let count = try check("wait for events") { epoll_wait(epoll.number, &events, Int32(events.count), timeout) }
    return events[..<Int(count)].map(\.data.u64)
  }

  private func arm(_ time: Instant) {
    armed = time
    // A time of zero would disarm the timer (timerfd_settime(2)).
    let (seconds, attoseconds) = max(.nanoseconds(1), Instant.now.duration(to: time)).components
    var setting = itimerspec()
    setting.it_value = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    timerfd_settime(timer.number, 0, &setting, nil)
  }

  private func runTimers() throws {
    let now = Instant.now
    if let armed, armed <= now {
      var expirations: UInt64 = 0
      read(timer.number, &expirations, MemoryLayout.size(ofValue: expirations))
      self.armed = nil
    }
    // Timers that these handlers schedule must wait for the next round, so that they cannot starve the descriptors.
    for registration in timers.reversed().prefix(while: { $0.time! <= now }) {
      guard !isStopped else { return }
      guard let handler = registration.handler else { continue }
      registration.cancel()
      try handler()
    }
  }

  private func call(_ source: Source) throws {
    for registration in source.registrations where !isStopped { try registration.handler?() }
  }

  fileprivate func forget(_ registration: Registration) {
    guard let source = registration.source else { return timers.removeAll { $0 === registration } }
    source.registrations.removeAll { $0 === registration }
    guard source.registrations.isEmpty else { return }
    files.removeAll { $0 === source }
    // If the descriptor is already closed, the kernel has removed it.
    if sources.removeValue(forKey: source.number) != nil {
      _ = try? control(EPOLL_CTL_DEL, source.descriptor, data: source.number)
    }
  }
}

/// A registration with an `EventLoop`. It stays active if this object is dropped.
package final class Registration {
  private weak var loop: EventLoop?
  fileprivate private(set) var handler: (() throws -> Void)?
  fileprivate private(set) var source: EventLoop.Source?
  fileprivate let time: Instant?

  fileprivate init(
    _ loop: EventLoop, _ handler: @escaping () throws -> Void, source: EventLoop.Source? = nil,
    time: Instant? = nil
  ) {
    (self.loop, self.handler, self.source, self.time) = (loop, handler, source, time)
  }

  /// Whether the handler may still be called.
  package var isActive: Bool { handler != nil }

  /// Ends the registration and releases the handler. May be called again, and in any handler, but only on the loop's
  /// thread.
  package func cancel() {
    guard handler != nil else { return }
    handler = nil
    loop?.forget(self)
    source = nil
  }
}
