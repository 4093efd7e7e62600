package import Domain
package import SystemIO

/// Runs several searches at once, each on a separate thread.
///
/// **Threads.** One thread creates, starts and closes it, and receives its events.
package final class PresenceSearch {
  private struct Message: Sendable {
    let search: Int
    let event: SearchEvent
  }

  private let searches: [any StepSearch]
  private let mailbox: Mailbox<Message>
  /// For the searches that still run.
  private var interruptions: [Int: Interruption] = [:]
  private var registration: Registration?

  /// - Parameter searches: at least one.
  package init(_ searches: [any StepSearch]) throws(SystemError) {
    precondition(!searches.isEmpty)
    self.searches = searches
    mailbox = try Mailbox()
  }

  deinit { close() }

  /// Whether a search still runs, so that something may still be found.
  package var isRunning: Bool { !interruptions.isEmpty }

  /// Starts the searches. May be called once.
  ///
  /// - Parameter tell: gets the events, in the loop. `ended` is the last event of each search.
  package func start(
    on loop: EventLoop, tell: @escaping (ProofMethod, SearchEvent) throws -> Void
  ) throws {
    registration = try loop.receive(mailbox) { [unowned self] message in
      if case .ended = message.event { interruptions[message.search] = nil }
      try tell(searches[message.search].method, message.event)
    }
    for index in searches.indices { try start(index) }
  }

  /// Runs the searches until one sights a step, or all have ended.
  ///
  /// - Parameters:
  ///   - interruption: ends the wait, with `RiderError.interrupted`.
  ///   - tell: gets the events before that.
  /// - Returns: the first sighting; if no search sights a step, the result of the search that ended last.
  /// - Throws: the error of the search that ended last, if no search sights a step.
  package func find(
    on loop: EventLoop, _ interruption: Interruption,
    tell: @escaping (ProofMethod, SearchEvent) throws -> Void = { _, _ in }
  ) throws -> Finding {
    var found: Finding?
    let watch = try loop.watch(interruption.number) { throw RiderError.interrupted }
    // Cancelled while the loop exists, because the registered handlers may own it.
    defer {
      watch.cancel()
      registration?.cancel()
    }
    try start(on: loop) { [unowned self] method, event in
      switch event {
      case .decided(_, let sighting?): found = .sighted(sighting)
      case .ended(.success(.sighted(let sighting))): found = .sighted(sighting)
      case .ended(let result) where !isRunning: found = try result.get()
      case .note, .decided, .waiting, .ended: return try tell(method, event)
      }
      stop()
      loop.stop()
    }
    try loop.run()
    // Only the handler above stops the loop without an error, and it sets this first.
    return found!
  }

  /// Ends the searches that still run, and reports nothing more. Does not wait.
  package func stop() {
    registration?.cancel()
    for interruption in interruptions.values { interruption.interrupt() }
  }

  /// Ends the searches that still run, and waits until they have released their devices: 2 s at most.
  package func close() {
    stop()
    let deadline = Instant.now + .seconds(2)
    while !interruptions.isEmpty, .now < deadline {
      guard let ready = try? waitReadable([mailbox.descriptor], until: deadline), ready[0] else { return }
      while let message = mailbox.take() {
        if case .ended = message.event { interruptions[message.search] = nil }
      }
    }
  }

  private func start(_ index: Int) throws(SystemError) {
    let interruption = try Interruption.manual()
    interruptions[index] = interruption
    let (search, mailbox) = (searches[index], mailbox)
    try DetachedThread.start {
      let result = Result {
        try search.find(until: interruption) { mailbox.post(Message(search: index, event: $0)) }
      }
      mailbox.post(Message(search: index, event: .ended(result)))
    }
  }
}
