package import Domain
package import SystemIO

/// Several searches at once: the first that sights a step wins.
package final class PresenceSearch {
  private struct Message: Sendable {
    let search: Int
    let content: Content

    enum Content: Sendable {
      case event(SearchEvent)
      case ended(Result<Finding, any Error>)
    }
  }

  private let searches: [any StepSearch]
  private let mailbox: Mailbox<Message>
  /// Of the searches that run.
  private var interruptions: [Int: Interruption] = [:]

  /// - Parameter searches: at least one.
  package init(_ searches: [any StepSearch]) throws(SystemError) {
    precondition(!searches.isEmpty)
    self.searches = searches
    mailbox = try Mailbox()
  }

  deinit { close() }

  /// Runs the searches until one sights a step, or all have ended.
  ///
  /// - Parameters:
  ///   - interruption: what ends the wait, with `RiderError.interrupted`.
  ///   - tell: gets what happens meanwhile, on this thread.
  /// - Returns: the first sighting, or else what the search found out that ended last.
  /// - Throws: why the search failed that ended last, where none sights a step.
  package func find(
    on loop: EventLoop, _ interruption: Interruption,
    tell: @escaping (ProofMethod, SearchEvent) throws -> Void = { _, _ in }
  ) throws -> Finding {
    var found: Finding?
    let registrations = [
      try loop.receive(mailbox) { [self] message in
        switch message.content {
        case .event(let event): try tell(searches[message.search].method, event)
        case .ended(let result):
          interruptions[message.search] = nil
          let isSighting = if case .success(.sighted) = result { true } else { false }
          guard isSighting || interruptions.isEmpty else {
            return try tell(searches[message.search].method, .missed(result))
          }
          found = try result.get()
          loop.stop()
        }
      },
      try loop.watch(interruption.number) { throw RiderError.interrupted },
    ]
    defer { for registration in registrations { registration.cancel() } }
    for index in searches.indices { try start(index) }
    try loop.run()
    return found!
  }

  /// Ends the searches that still run, and waits until they have let go of their devices: 2 s at most.
  package func close() {
    for interruption in interruptions.values { interruption.interrupt() }
    let deadline = ContinuousClock.now + .seconds(2)
    while !interruptions.isEmpty, .now < deadline {
      guard let ready = try? waitReadable([mailbox.descriptor], until: deadline), ready[0] else { return }
      while let message = mailbox.take() {
        if case .ended = message.content { interruptions[message.search] = nil }
      }
    }
  }

  private func start(_ index: Int) throws(SystemError) {
    let interruption = try Interruption.manual()
    interruptions[index] = interruption
    let (search, mailbox) = (searches[index], mailbox)
    try DetachedThread.start {
      let result = Result {
        try search.find(until: interruption) { mailbox.post(Message(search: index, content: .event($0))) }
      }
      mailbox.post(Message(search: index, content: .ended(result)))
    }
  }
}
