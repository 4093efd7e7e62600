/// What happened and was not fetched yet: bounded, because the other side decides how much it sends.
struct Inbox {
  private var events: [MQTTConnection.Event] = []
  private var messages = 0
  private let limits: MQTTConnection.Limits
  private(set) var discarded = MQTTConnection.Discarded()

  init(limits: MQTTConnection.Limits) { self.limits = limits }

  var isEmpty: Bool { events.isEmpty }

  mutating func add(_ event: MQTTConnection.Event) {
    if case .message = event {
      guard messages < limits.queuedMessages else {
        discarded.overflowing += 1
        return
      }
      messages += 1
    }
    events.append(event)
  }

  mutating func discardOversized() { discarded.oversized += 1 }

  mutating func take() -> MQTTConnection.Event? {
    if events.isEmpty { return nil }
    let event = events.removeFirst()
    if case .message = event { messages -= 1 }
    return event
  }
}
