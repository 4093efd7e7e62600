/// What is to be published on the connection that exists or is being made, and what the next one must repeat.
///
/// A message without the retain flag belongs to one connection and dies with it. A retained one is a state: the
/// latest of each topic is published again on every later connection, acknowledged or not, since a broker may have
/// restarted without its store.
struct Outbox {
  struct Publication: Equatable {
    let id: PublishID
    let topic: String
    let payload: [UInt8]
    let isRetained: Bool
  }

  /// How many may wait for the connection; a retained message is always taken, in the place of an older one.
  let limit: Int
  private var waiting: [Publication] = []
  private var latest: [String: Publication] = [:]
  /// Those of `latest` that a broker has acknowledged.
  private var acknowledged: Set<PublishID> = []
  private var last: UInt64 = 0
  private var isOnline = true

  init(limit: Int) { self.limit = limit }

  /// - Returns: nil when the message was not taken: there is no connection and none being made, or too many wait.
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

  /// - Returns: whether it is the first time: what is repeated on a later connection is acknowledged again.
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
