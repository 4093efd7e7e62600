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

  /// - Parameter searches: at least one, in the order in which their failures count: the last one's is told.
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
  /// - Returns: the first sighting, or else what the last of the searches found out.
  /// - Throws: why the last of the searches failed, where none sights a step.
  package func find(
    on loop: EventLoop, _ interruption: Interruption,
    tell: @escaping (ProofMethod, SearchEvent) throws -> Void = { _, _ in }
  ) throws -> Finding {
    var found: Finding?
    var ended: [Int: Result<Finding, any Error>] = [:]
    let registrations = [
      try loop.receive(mailbox) { [self] message in
        switch message.content {
        case .event(let event): try tell(searches[message.search].method, event)
        case .ended(let result):
          interruptions[message.search] = nil
          ended[message.search] = result
          if case .success(.sighted(let sighting)) = result {
            found = .sighted(sighting)
          } else if ended.count == searches.count {
            found = try ended[searches.count - 1]!.get()
          } else if message.search < searches.count - 1 {
            try tell(searches[message.search].method, .missed(result))
          }
          if found != nil { loop.stop() }
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
