package import MQTT
import SystemIO

/// Carries riders' commands to the controller and its statements back.
///
/// No call waits, and any thread may call. `descriptor` is readable while `next` has an event.
package protocol CommandLink: Sendable {
  var descriptor: Int32 { get }
  /// The next event, in order; nil if there is none.
  func next() throws -> MQTTConnection.Event?
  /// Later events with the returned number say that the broker has the message. Nil: the message was not accepted.
  func publish(topic: String, payload: [UInt8], retain: Bool) -> PublishID?
  /// How many times messages came faster than they were fetched, so that some had to wait or were lost.
  var holdUps: Int { get }
}

extension MQTTConnection: CommandLink {
  package func next() throws -> Event? { try next(until: .now) }
  package var holdUps: Int { discarded.heldBack + discarded.overflowing }
}
