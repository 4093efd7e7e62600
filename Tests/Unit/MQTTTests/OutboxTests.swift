import Testing

@testable import MQTT

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
