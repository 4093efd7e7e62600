import Domain
import MQTT
package import SystemIO

extension OperatorPlace.AddressedNotice {
  /// Leaves the notice with the vehicle's broker, and waits until the broker returns it.
  ///
  /// A broker acknowledges even a message that its access list forbids (MQTT 3.1.1, 3.3.5), so only the returned notice
  /// is proof.
  package func publish(until deadline: Instant) throws {
    try checkSize()
    let payload = Array(text.utf8)
    let connection = try MQTTConnection(
      broker: broker, subscriptions: [topic.notice], reconnecting: .never,
      patience: Instant.now.duration(to: deadline))
    defer { connection.close() }
    var isTaken = false
    while let event = try connection.next(until: deadline) {
      switch event {
      case .connected: connection.publish(topic: topic.notice, payload: payload, retain: true)
      case .disconnected(let error): throw error
      case .message(let message): if message.payload == payload { return }
      case .acknowledged: isTaken = true
      }
    }
    throw isTaken ? LedgerError.notKept("\(broker)") : LedgerError.noAnswer("\(broker)")
  }
}
