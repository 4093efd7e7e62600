import Glibc
import MQTT
import SystemIO
import TestSupport
import Testing

@Suite(
  "Reconnecting", .serialized, .timeLimit(.minutes(10)),
  .enabled(if: Mosquitto.isInstalled, "mosquitto or its clients are not installed"))
struct ReconnectingTests {
  @Test("returns to a restarted broker, subscribes again and publishes the latest status")
  func restarted() throws {
    try Fixture.with { fixture in
      let mosquitto = try fixture.openBroker()
      let controller = try fixture.connect(to: mosquitto.broker(), subscribing: ["set"], reconnecting: .forever)
      let first = try #require(controller.publish(topic: "status", payload: [1], retain: true))
      try controller.wait(for: .acknowledged(first))
      mosquitto.stop()
      try controller.wait(for: .disconnected(.lost(mosquitto.broker(), .established)))
      #expect(controller.publish(topic: "status", payload: [2], retain: true) != nil)
      let last = try #require(controller.publish(topic: "status", payload: [3], retain: true))
      #expect(controller.publish(topic: "answer", payload: [4], retain: false) == nil)
      try mosquitto.start()
      try controller.wait(for: .connected)
      try controller.wait(for: .acknowledged(last))

      let rider = try fixture.connect(to: mosquitto.broker(), subscribing: ["status", "answer"])
      #expect(try rider.nextMessage() == Message(topic: "status", payload: [3], isRetained: true))
      rider.publish(topic: "set", payload: [5], retain: false)
      #expect(try controller.nextMessage()?.payload == [5])
      #expect(try rider.nextMessage(within: .milliseconds(100)) == nil)
    }
  }

  @Test("restores a status that the broker forgot, without acknowledging it twice")
  func forgetfulBroker() throws {
    try Fixture.with { fixture in
      let mosquitto = try fixture.openBroker()
      let controller = try fixture.connect(to: mosquitto.broker(), reconnecting: .forever)
      let id = try #require(controller.publish(topic: "status", payload: [1], retain: true))
      try controller.wait(for: .acknowledged(id))
      mosquitto.stop()
      try mosquitto.start()
      try controller.wait(for: .connected)
      let rider = try fixture.connect(to: mosquitto.broker(), subscribing: ["status"])
      #expect(try rider.nextMessage()?.payload == [1])
      #expect(try controller.next(until: .now + .milliseconds(100)) == nil)
    }
  }

  @Test("begins before there is a broker")
  func brokerComesLater() throws {
    try Fixture.with { fixture in
      let mosquitto = try fixture.openBroker()
      mosquitto.stop()
      let connection = try fixture.connect(to: mosquitto.broker(), reconnecting: .forever)
      try connection.expect(.disconnected(.cannotConnect(mosquitto.broker(), code: ECONNREFUSED)))
      try mosquitto.start()
      try connection.wait(for: .connected)
    }
  }

  @Test("closes promptly while it waits for the next attempt")
  func closeWhileWaiting() throws {
    try Fixture.with { fixture in
      let broker = Broker(host: "127.0.0.1", port: try Port.unused(), tls: nil)
      // The least that it waits for is a quarter of a second.
      let isPrompt = try takes(lessThan: .milliseconds(200)) {
        let connection = try fixture.connect(to: broker, reconnecting: .forever)
        _ = try connection.next()
        return connection.timeToClose()
      }
      #expect(isPrompt)
    }
  }
}
