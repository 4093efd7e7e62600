import Testing

@testable import MQTTClient

@Suite("Outbox")
struct OutboxTests {
  private func topics(_ publications: [Outbox.Publication]) -> [String] { publications.map(\.topic) }

  @Test("hands out in the order of publishing, as many as are wanted")
  func order() {
    var outbox = Outbox(limit: 8)
    for topic in ["a", "b", "c"] { _ = outbox.add(topic: topic, payload: [], isRetained: false) }
    #expect(topics(outbox.take(upTo: 2)) == ["a", "b"])
    #expect(topics(outbox.take(upTo: 2)) == ["c"])
    #expect(outbox.take(upTo: 2).isEmpty)
  }

  @Test("keeps no message without the retain flag for another connection")
  func neverLater() {
    var outbox = Outbox(limit: 8)
    #expect(outbox.add(topic: "a", payload: [1], isRetained: false) != nil)
    outbox.connectionEnded()
    #expect(outbox.add(topic: "a", payload: [2], isRetained: false) == nil)
    outbox.connectionBegan()
    #expect(outbox.take(upTo: 8).isEmpty)
  }

  @Test("repeats the latest retained message of each topic, whether it was handed out or not")
  func repeated() {
    var outbox = Outbox(limit: 8)
    for (topic, byte) in [("a", 1), ("b", 2), ("a", 3)] as [(String, UInt8)] {
      _ = outbox.add(topic: topic, payload: [byte], isRetained: true)
    }
    #expect(outbox.take(upTo: 8).map(\.payload) == [[1], [2], [3]])
    outbox.connectionEnded()
    _ = outbox.add(topic: "c", payload: [4], isRetained: true)
    for _ in 0..<2 {
      outbox.connectionBegan()
      #expect(outbox.take(upTo: 8).map(\.payload) == [[2], [3], [4]])
      outbox.connectionEnded()
    }
  }

  @Test("is bounded, yet always takes a retained message, in the place of an older one")
  func bounded() {
    var outbox = Outbox(limit: 2)
    _ = outbox.add(topic: "a", payload: [1], isRetained: true)
    _ = outbox.add(topic: "b", payload: [2], isRetained: false)
    #expect(outbox.add(topic: "c", payload: [3], isRetained: false) == nil)
    #expect(outbox.add(topic: "a", payload: [4], isRetained: true) != nil)
    #expect(outbox.take(upTo: 8).map(\.payload) == [[2], [4]])
  }
}

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

@Suite("Backoff")
struct BackoffTests {
  private func waits(_ count: Int, chance: Double) -> [Duration] {
    var backoff = Backoff()
    return (0..<count).map { _ in backoff.next(afterLasting: .zero, chance: chance) }
  }

  @Test("doubles from half a second to half a minute, less up to a half of it")
  func doubling() {
    #expect(waits(8, chance: 0) == [0.5, 1, 2, 4, 8, 16, 30, 30].map { .seconds($0) })
    #expect(waits(8, chance: 1) == [0.25, 0.5, 1, 2, 4, 8, 15, 15].map { .seconds($0) })
  }

  @Test("begins anew only after a connection that lasted")
  func anew() {
    var backoff = Backoff()
    for _ in 0..<3 { _ = backoff.next(afterLasting: .zero, chance: 0) }
    #expect(backoff.next(afterLasting: .seconds(30), chance: 0) == .seconds(4))
    #expect(backoff.next(afterLasting: .seconds(31), chance: 0) == .milliseconds(500))
  }
}
