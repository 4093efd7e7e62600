import Glibc
import MQTT
import SystemIO
import TestSupport
import Testing

@Suite(
  "Connection", .serialized, .timeLimit(.minutes(10)),
  .enabled(if: Mosquitto.isInstalled, "mosquitto or its clients are not installed"))
struct ConnectionTests {
  @Test("publishes and receives")
  func roundTrip() throws {
    try Fixture.with { fixture in
      let broker = try fixture.openBroker().broker()
      let connection = try fixture.connect(to: broker, subscribing: ["a/b"])
      let id = try #require(connection.publish(topic: "a/b", payload: [0, 0xFF, 1], retain: false))
      try connection.expect(.connected)
      let events = [try connection.next(), try connection.next()]
      #expect(events.contains(.acknowledged(id)))
      #expect(events.contains(.message(Message(topic: "a/b", payload: [0, 0xFF, 1], isRetained: false))))
    }
  }

  @Test("carries an empty payload")
  func emptyPayload() throws {
    try Fixture.with { fixture in
      let broker = try fixture.openBroker().broker()
      let connection = try fixture.connect(to: broker, subscribing: ["a"])
      connection.publish(topic: "a", payload: [], retain: false)
      #expect(try connection.nextMessage() == Message(topic: "a", payload: [], isRetained: false))
    }
  }

  @Test("says whether a message is a retained one")
  func retainedFlag() throws {
    try Fixture.with { fixture in
      let broker = try fixture.openBroker().broker()
      let publisher = try fixture.connect(to: broker)
      let id = try #require(publisher.publish(topic: "status", payload: [1], retain: true))
      try publisher.wait(for: .acknowledged(id))

      let subscriber = try fixture.connect(to: broker, subscribing: ["status"])
      #expect(try subscriber.nextMessage() == Message(topic: "status", payload: [1], isRetained: true))
      publisher.publish(topic: "status", payload: [2], retain: true)
      #expect(try subscriber.nextMessage() == Message(topic: "status", payload: [2], isRetained: false))
    }
  }

  @Test("serves two clients of one broker")
  func twoClients() throws {
    try Fixture.with { fixture in
      let broker = try fixture.openBroker().broker()
      let controller = try fixture.connect(to: broker, subscribing: ["set"])
      try controller.wait(for: .connected)
      let rider = try fixture.connect(to: broker, subscribing: ["status"])
      for number in UInt8(0)..<50 {
        rider.publish(topic: "set", payload: [number], retain: false)
        #expect(try controller.nextMessage()?.payload == [number])
        controller.publish(topic: "status", payload: [number], retain: false)
        #expect(try rider.nextMessage()?.payload == [number])
      }
    }
  }

  @Test("does not wait 40 ms an exchange for a broker with Nagle's algorithm on")
  func quickAcknowledgements() throws {
    try Fixture.with { fixture in
      let broker = try fixture.broker("allow_anonymous true", "set_tcp_nodelay false").broker()
      let rider = try fixture.connect(to: broker, subscribing: ["status"])
      let controller = try fixture.connect(to: broker, subscribing: ["set"])
      try rider.wait(for: .connected)
      try controller.wait(for: .connected)
      // Every one would (TCP_DELACK_MIN of Linux).
      let isQuick = try takes(lessThan: .milliseconds(38)) {
        let begin = Instant.now
        rider.publish(topic: "set", payload: [1], retain: false)
        _ = try controller.nextMessage()
        controller.publish(topic: "status", payload: [2], retain: false)
        _ = try rider.nextMessage()
        return begin.duration(to: .now)
      }
      #expect(isQuick)
    }
  }

  @Test("keeps an idle connection alive")
  func keepAlive() throws {
    try Fixture.with { fixture in
      // The broker drops a client after one and a half keep-alives without a packet.
      let broker = try fixture.openBroker().broker()
      let connection = try fixture.connect(to: broker, subscribing: ["a"], keepAlive: .seconds(5))
      try connection.wait(for: .connected)
      #expect(try connection.next(until: .now + .seconds(9)) == nil)
      connection.publish(topic: "a", payload: [1], retain: false)
      #expect(try connection.nextMessage() != nil)
    }
  }

  @Test("drops a message above the limit, and lives")
  func oversized() throws {
    try Fixture.with { fixture in
      let mosquitto = try fixture.openBroker()
      let connection = try fixture.connect(to: mosquitto.broker(), subscribing: ["a"])
      try connection.wait(for: .connected)
      try mosquitto.publish("-t", "a", "-f", fixture.write("large", String(repeating: "x", count: 1 << 20)))
      try mosquitto.publish("-t", "a", "-f", fixture.write("above", String(repeating: "x", count: 16385)))
      try mosquitto.publish("-t", "a", "-f", fixture.write("at", String(repeating: "x", count: 16384)))
      #expect(try connection.nextMessage()?.payload.count == 16384)
      #expect(connection.discarded.oversized == 2)
    }
  }

  @Test("receives what the screen admits, which is asked first")
  func screen() throws {
    try Fixture.with { fixture in
      let broker = try fixture.openBroker().broker()
      let connection = try fixture.connect(to: broker, subscribing: ["odd", "all", "none"]) { topic, payload in
        switch String(cString: topic) {
        case "odd": payload.count % 2 == 1
        case "all": true
        default: false
        }
      }
      try connection.wait(for: .connected)
      let large = [UInt8](repeating: 0, count: 20_000)
      for payload in [[1], [], [1, 2], [1, 2, 3], large] {
        for topic in ["none", "odd"] { connection.publish(topic: topic, payload: payload, retain: false) }
      }
      connection.publish(topic: "all", payload: [9, 9], retain: false)
      #expect(try (0..<3).map { _ in try connection.nextMessage()?.payload } == [[1], [1, 2, 3], [9, 9]])
      #expect(connection.discarded.oversized == 0)
    }
  }

  @Test("leaves messages with the broker while nobody fetches them, where it is to")
  func heldBack() throws {
    try Fixture.with { fixture in
      let broker = try fixture.openBroker().broker()
      var limits = MQTTConnection.Limits()
      (limits.queuedMessages, limits.holdsBack) = (3, true)
      let subscriber = try fixture.connect(to: broker, subscribing: ["a"], limits: limits)
      try subscriber.wait(for: .connected)
      let publisher = try fixture.connect(to: broker)
      for number in UInt8(0)..<60 { publisher.publish(topic: "a", payload: [number], retain: false) }
      while subscriber.discarded.heldBack < 1 { usleep(1000) }
      for number in UInt8(0)..<60 { #expect(try subscriber.nextMessage()?.payload == [number]) }
      #expect(subscriber.discarded.overflowing == 0)
    }
  }

  @Test("drops the newest messages when nobody fetches them")
  func overflow() throws {
    try Fixture.with { fixture in
      let broker = try fixture.openBroker().broker()
      var limits = MQTTConnection.Limits()
      limits.queuedMessages = 3
      let subscriber = try fixture.connect(to: broker, subscribing: ["a"], limits: limits)
      try subscriber.wait(for: .connected)
      let publisher = try fixture.connect(to: broker)
      for number in UInt8(0)..<5 { publisher.publish(topic: "a", payload: [number], retain: false) }
      while subscriber.discarded.overflowing < 2 { usleep(1000) }
      let kept = try (0..<3).map { _ in try subscriber.nextMessage()?.payload }
      #expect(kept == [[0], [1], [2]])
      #expect(subscriber.discarded.overflowing == 2)
      #expect(subscriber.discarded.oversized == 0)
    }
  }

  @Test("acknowledges a publish that the broker's access list drops")
  func accessList() throws {
    try Fixture.with { fixture in
      let list = try fixture.write("acl", "topic read #\ntopic write allowed\n")
      let broker = try fixture.broker("allow_anonymous true", "acl_file \(list)").broker()
      let connection = try fixture.connect(to: broker, subscribing: ["allowed", "denied"])
      let denied = try #require(connection.publish(topic: "denied", payload: [1], retain: false))
      try connection.wait(for: .acknowledged(denied))
      connection.publish(topic: "allowed", payload: [2], retain: false)
      #expect(try connection.nextMessage()?.topic == "allowed")
    }
  }

  @Test("tries every address of a host")
  func addresses() throws {
    try Fixture.with { fixture in
      // The system resolves it to ::1 as well where it has IPv6; the broker is not there.
      let broker = try fixture.openBroker().broker("localhost")
      try fixture.connect(to: broker).expect(.connected)
    }
  }

  @Test("says with which code a broker refused")
  func notAuthorized() throws {
    try Fixture.with { fixture in
      let broker = try fixture.broker("allow_anonymous false").broker()
      let connection = try fixture.connect(to: broker, subscribing: ["a"])
      connection.publish(topic: "a", payload: [1], retain: false)
      try connection.expect(.disconnected(.refused(broker, .notAuthorized)))
      #expect(try connection.next(until: nil) == nil)
      #expect(connection.publish(topic: "a", payload: [1], retain: true) == nil)
    }
  }

  @Test("ends when the broker goes, and sends nothing later")
  func lost() throws {
    try Fixture.with { fixture in
      let mosquitto = try fixture.openBroker()
      let connection = try fixture.connect(to: mosquitto.broker())
      try connection.wait(for: .connected)
      mosquitto.stop()
      try connection.expect(.disconnected(.lost(mosquitto.broker(), .established)))
      #expect(connection.publish(topic: "a", payload: [1], retain: false) == nil)
      #expect(try connection.next(until: nil) == nil)
    }
  }

  @Test("is not readable until something happened")
  func descriptor() throws {
    try Fixture.with { fixture in
      let broker = try fixture.openBroker().broker()
      let connection = try fixture.connect(to: broker)
      #expect(try waitReadable([connection.descriptor], until: .now + .seconds(60)) == [true])
      #expect(try connection.next(until: .now) == .connected)
      #expect(try waitReadable([connection.descriptor], until: .now + .milliseconds(50)) == [false])
    }
  }

  @Test("tells the broker that it leaves, once")
  func close() throws {
    try Fixture.with { fixture in
      let mosquitto = try fixture.broker("allow_anonymous true", "log_type all")
      let connection = try fixture.connect(to: mosquitto.broker())
      try connection.wait(for: .connected)
      connection.close()
      connection.close()
      #expect(try connection.next(until: nil) == nil)
      #expect(connection.publish(topic: "a", payload: [1], retain: true) == nil)
      #expect(mosquitto.waits(for: "Received DISCONNECT"))
    }
  }

  @Test("has an identifier that says nothing and that every broker accepts")
  func clientID() {
    let identifiers = (0..<100).map { _ in MQTTConnection.randomClientID() }
    #expect(Set(identifiers).count == 100)
    #expect(identifiers.allSatisfy { $0.utf8.count == 22 })
    #expect(identifiers.joined().allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) })
  }
}
