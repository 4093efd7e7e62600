import Testing

@testable import MQTT

@Suite("Inbox")
struct InboxTests {
  private func message(_ byte: UInt8) -> MQTTConnection.Event {
    .message(Message(topic: "a", payload: [byte], isRetained: false))
  }

  @Test("drops the newest messages when full, and never what is no message")
  func bounded() {
    var limits = MQTTConnection.Limits()
    limits.queuedMessages = 2
    var inbox = Inbox(limits: limits)
    for byte in UInt8(1)...3 { inbox.add(message(byte)) }
    inbox.add(.connected)
    #expect(inbox.discarded.overflowing == 1)
    #expect(inbox.take() == message(1))
    inbox.add(message(4))
    #expect([inbox.take(), inbox.take(), inbox.take(), inbox.take()] == [message(2), .connected, message(4), nil])
  }
}
