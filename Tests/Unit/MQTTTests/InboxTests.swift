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

  @Test("stops reading when full, where it is to, until half was taken, and drops nothing")
  func holdsBack() {
    var limits = MQTTConnection.Limits()
    (limits.queuedMessages, limits.holdsBack) = (4, true)
    var inbox = Inbox(limits: limits)
    for byte in UInt8(1)...3 { inbox.add(message(byte)) }
    #expect(!inbox.isHeldBack)
    for byte in UInt8(4)...6 { inbox.add(message(byte)) }
    #expect(inbox.isHeldBack && inbox.discarded.heldBack == 1 && inbox.discarded.overflowing == 0)
    for byte in UInt8(1)...3 { #expect(inbox.take() == message(byte)) }
    #expect(inbox.isHeldBack)
    #expect(inbox.take() == message(4))
    #expect(!inbox.isHeldBack)
  }
}
