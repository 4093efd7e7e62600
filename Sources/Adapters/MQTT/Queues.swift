/// Events that were not fetched yet. Bounded, because the other side decides how much it sends.
struct Inbox {
  private var events: [MQTTConnection.Event] = []
  private var messages = 0
  private let limits: MQTTConnection.Limits
  private(set) var discarded = MQTTConnection.Discarded()

  init(limits: MQTTConnection.Limits) { self.limits = limits }

  var isEmpty: Bool { events.isEmpty }

  /// Whether to stop reading messages.
  private(set) var isHeldBack = false

  /// Whether reading may resume after `isHeldBack`.
  private var hasRoom: Bool { messages <= limits.queuedMessages / 2 }

  mutating func add(_ event: MQTTConnection.Event) {
    if case .message = event {
      // One read may bring more than one message.
      guard messages < limits.queuedMessages * (limits.holdsBack ? 8 : 1) else {
        discarded.overflowing += 1
        return
      }
      messages += 1
      if limits.holdsBack, !isHeldBack, messages >= limits.queuedMessages {
        isHeldBack = true
        discarded.heldBack += 1
      }
    }
    events.append(event)
  }

  mutating func discardOversized() { discarded.oversized += 1 }

  mutating func take() -> MQTTConnection.Event? {
    if events.isEmpty { return nil }
    let event = events.removeFirst()
    if case .message = event { messages -= 1 }
    if isHeldBack, hasRoom { isHeldBack = false }
    return event
  }
}

/// Messages for the present connection, and those that the next connection must repeat.
///
/// A message without the retain flag belongs to one connection and ends with it. A retained message is a state: the
/// latest of each topic is published again on every later connection, acknowledged or not, because a broker may have
/// restarted without its store.
struct Outbox {
  struct Publication: Equatable {
    let id: PublishID
    let topic: String
    let payload: [UInt8]
    let isRetained: Bool
  }

  /// How many messages may wait for the connection. A retained message is always accepted, in place of an older one.
  let limit: Int
  private var waiting: [Publication] = []
  private var latest: [String: Publication] = [:]
  /// The messages in `latest` that a broker has acknowledged.
  private var acknowledged: Set<PublishID> = []
  private var last: UInt64 = 0
  private var isOnline = true

  init(limit: Int) { self.limit = limit }

  /// - Returns: nil if the message was not accepted: there is no connection, or too many messages wait.
  mutating func add(topic: String, payload: [UInt8], isRetained: Bool) -> PublishID? {
    guard isRetained || (isOnline && waiting.count < limit) else { return nil }
    last += 1
    let publication = Publication(
      id: PublishID(last), topic: topic, payload: payload, isRetained: isRetained)
    if isRetained, let superseded = latest.updateValue(publication, forKey: topic) {
      acknowledged.remove(superseded.id)
    }
    if isOnline {
      if waiting.count >= limit { waiting.removeAll { $0.isRetained && $0.topic == topic } }
      waiting.append(publication)
    }
    return publication.id
  }

  mutating func take(upTo count: Int) -> [Publication] {
    let taken = Array(waiting.prefix(count))
    waiting.removeFirst(taken.count)
    return taken
  }

  /// - Returns: whether this is the first acknowledgement. A message that is repeated on a later connection gets
  ///   another.
  mutating func acknowledge(_ publication: Publication) -> Bool {
    guard latest[publication.topic]?.id == publication.id else { return true }
    return acknowledged.insert(publication.id).inserted
  }

  mutating func connectionBegan() {
    isOnline = true
    waiting = latest.values.sorted { $0.id < $1.id }
  }

  mutating func connectionEnded() {
    isOnline = false
    waiting = []
  }
}
