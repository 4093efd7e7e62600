import Synchronization
import SystemIO

/// The state that the program's threads share with the connection's thread: two bounded queues and their wake-ups.
final class Exchange: Sendable {
  private struct State {
    var inbox: Inbox
    var outbox: Outbox
    /// The topic filters that the present connection has yet to subscribe to.
    var filters: [String] = []
    var isClosing = false
    /// No further connection will be made.
    var isOver = false
    /// The thread is in getaddrinfo(3), which nothing can interrupt.
    var isResolving = false
  }

  private let state: Mutex<State>
  /// Readable while the inbox has events.
  let events: Wakeup
  /// There is something to publish, or the connection is to close.
  let work: Wakeup
  /// The thread has ended; never cleared.
  private let ended: Wakeup

  init(limits: MQTTConnection.Limits) throws(SystemError) {
    events = try Wakeup()
    work = try Wakeup()
    ended = try Wakeup()
    state = Mutex(State(inbox: Inbox(limits: limits), outbox: Outbox(limit: limits.queuedPublications)))
  }

  // MARK: The program's side

  func publish(topic: String, payload: [UInt8], isRetained: Bool) -> PublishID? {
    let id = state.withLock { state in
      state.isClosing || state.isOver
        ? nil : state.outbox.add(topic: topic, payload: payload, isRetained: isRetained)
    }
    if id != nil { work.signal() }
    return id
  }

  func subscribe(_ filter: String) {
    state.withLock { $0.filters.append(filter) }
    work.signal()
  }

  func next(until deadline: Instant?) throws(SystemError) -> MQTTConnection.Event? {
    while true {
      let (event, isLast) = state.withLock { state in
        if state.isClosing { return (MQTTConnection.Event?.none, true) }
        let wasHeldBack = state.inbox.isHeldBack
        let event = state.inbox.take()
        if wasHeldBack, !state.inbox.isHeldBack { work.signal() }
        if event != nil, state.inbox.isEmpty { events.clear() }
        return (event, state.isOver)
      }
      if event != nil || isLast { return event }
      if let deadline, deadline <= .now { return nil }
      if try !waitReadable([events.number], until: deadline)[0] { return nil }
    }
  }

  var discarded: MQTTConnection.Discarded { state.withLock { $0.inbox.discarded } }

  func close() {
    let mayWait = state.withLock { state in
      state.isClosing = true
      return !state.isResolving
    }
    work.signal()
    // Wakes a thread that waits in `next`.
    events.signal()
    if mayWait { _ = try? waitReadable([ended.number], until: .now + .milliseconds(250)) }
  }

  // MARK: The connection's side

  var isClosing: Bool { state.withLock { $0.isClosing } }

  var isHeldBack: Bool { state.withLock { $0.inbox.isHeldBack } }

  func resolving<Result>(_ body: () -> Result) -> Result {
    state.withLock { $0.isResolving = true }
    defer { state.withLock { $0.isResolving = false } }
    return body()
  }

  func deliver(_ event: MQTTConnection.Event) { state.withLock { add(event, to: &$0) } }

  func acknowledged(_ publication: Outbox.Publication) {
    state.withLock { state in
      guard state.outbox.acknowledge(publication) else { return }
      add(.acknowledged(publication.id), to: &state)
    }
  }

  func discardOversized() { state.withLock { $0.inbox.discardOversized() } }

  func takePublications(upTo count: Int) -> [Outbox.Publication] {
    count > 0 ? state.withLock { $0.outbox.take(upTo: count) } : []
  }

  func takeFilters() -> [String] {
    state.withLock { state in
      defer { state.filters = [] }
      return state.filters
    }
  }

  func connectionBegan() { state.withLock { $0.outbox.connectionBegan() } }

  /// - Parameter isFinal: whether no further connection will be made.
  func connectionEnded(_ error: MQTTError, isFinal: Bool) {
    state.withLock { state in
      state.outbox.connectionEnded()
      state.isOver = isFinal
      add(.disconnected(error), to: &state)
    }
  }

  func threadEnded() { ended.signal() }

  /// Wakes the waiting thread only once until the inbox has been emptied.
  private func add(_ event: MQTTConnection.Event, to state: inout State) {
    let wasEmpty = state.inbox.isEmpty
    state.inbox.add(event)
    if wasEmpty, !state.inbox.isEmpty { events.signal() }
  }
}
