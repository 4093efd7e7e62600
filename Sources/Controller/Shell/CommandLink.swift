package import MQTT

/// What carries riders' commands to the controller and its statements back.
///
/// Nothing here waits, and any thread may call it. `descriptor` is readable while `next` has an event.
package protocol CommandLink: Sendable {
  var descriptor: Int32 { get }
  /// What happened next, in the order in which it did; nil when nothing has.
  func next() throws -> MQTTConnection.Event?
  /// Events with the number that this returns tell that the broker has the message. Nil: it was not taken.
  func publish(topic: String, payload: [UInt8], retain: Bool) -> PublishID?
  /// How often more came than was fetched, so that it had to wait on its way, or was lost.
  var holdUps: Int { get }
}

extension MQTTConnection: CommandLink {
  package func next() throws -> Event? { try next(until: .now) }
  package var holdUps: Int { discarded.heldBack + discarded.overflowing }
}
