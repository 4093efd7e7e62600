/// A message that was received.
package struct Message: Hashable, Sendable {
  package let topic: String
  package let payload: [UInt8]
  /// The broker had it in store when the subscription was made: it says how things were, not that something was
  /// sent just now (MQTT 3.1.1, 3.3.1.3).
  package let isRetained: Bool

  package init(topic: String, payload: [UInt8], isRetained: Bool) {
    self.topic = topic
    self.payload = payload
    self.isRetained = isRetained
  }
}
