import Glibc
import MQTT
import SystemIO
import TestSupport
import Testing

/// Other sides that are no broker, or none that works.
@Suite("Unanswered", .serialized, .timeLimit(.minutes(10)))
struct UnansweredTests {
  @Test("says that nobody listens")
  func refused() throws {
    try Fixture.with { fixture in
      let broker = Broker(host: "127.0.0.1", port: try Port.unused(), tls: nil)
      let connection = try fixture.connect(to: broker)
      try connection.expect(.disconnected(.cannotConnect(broker, code: ECONNREFUSED)))
    }
  }

  @Test("says that a host cannot be found")
  func unresolvable() throws {
    try Fixture.with { fixture in
      // RFC 6761 6.4: never exists. Without a network, the answer is EAI_AGAIN.
      let connection = try fixture.connect(to: Broker(host: "broker.invalid", port: 1883, tls: nil))
      let event = try connection.next(until: .now + .seconds(60))
      let expected = [EAI_NONAME, EAI_AGAIN].map { code in
        Optional(MQTTConnection.Event.disconnected(.cannotResolve(host: "broker.invalid", code: code)))
      }
      #expect(expected.contains(event))
    }
  }

  @Test("gives up on a host that takes no connection")
  func silentHost() throws {
    try Fixture.with { fixture in
      let port = try Port(backlog: 0)
      // A full queue of connections drops what comes after.
      let first = try Port.connect(to: port.number)
      let second = try Port.connect(to: port.number, flags: Int32(SOCK_NONBLOCK.rawValue))
      let connection = try fixture.connect(to: port.broker, patience: .milliseconds(300))
      try connection.expect(.disconnected(.timedOut(port.broker, .connecting)))
      _ = (first.number, second.number)
    }
  }

  @Test("gives up on a broker that accepts and is silent", arguments: [false, true])
  func silentBroker(secured: Bool) throws {
    try Fixture.with { fixture in
      let port = try Port()
      let tls = secured ? Broker.TLS(authority: try Certificates(fixture).authority, identity: nil) : nil
      let broker = Broker(host: "127.0.0.1", port: port.number, tls: tls)
      // A busy machine takes a part of it before the phase that is meant begins.
      let connection = try fixture.connect(to: broker, patience: .seconds(2))
      try connection.expect(.disconnected(.timedOut(broker, secured ? .handshake : .greeting)))
    }
  }

  @Test("closes promptly while connecting", arguments: [false, true])
  func closeWhileConnecting(secured: Bool) throws {
    try Fixture.with { fixture in
      let port = try Port()
      let tls = secured ? Broker.TLS(authority: try Certificates(fixture).authority, identity: nil) : nil
      let broker = Broker(host: "127.0.0.1", port: port.number, tls: tls)
      // A thread that is held up is left to itself after a quarter of a second.
      let isPrompt = try takes(lessThan: .milliseconds(200)) {
        let connection = try fixture.connect(to: broker)
        let peer = try port.accept()
        _ = try receive(1, from: peer)
        let time = connection.timeToClose()
        #expect(try connection.next(until: nil) == nil)
        return time
      }
      #expect(isPrompt)
    }
  }

  @Test("notices an end before CONNACK", arguments: [false, true])
  func endBeforeGreeting(byReset: Bool) throws {
    try Fixture.with { fixture in
      let port = try Port()
      let connection = try fixture.connect(to: port.broker, subscribing: ["a"])
      let peer = try port.accept()
      // CONNECT and SUBSCRIBE.
      _ = try receive(44, from: peer)
      end(peer, byReset: byReset)
      try connection.expect(.disconnected(.lost(port.broker, .greeting)))
    }
  }

  @Test("notices an end in the TLS handshake", arguments: [false, true])
  func endInHandshake(byReset: Bool) throws {
    try Fixture.with { fixture in
      let port = try Port()
      let tls = Broker.TLS(authority: try Certificates(fixture).authority, identity: nil)
      let broker = Broker(host: "127.0.0.1", port: port.number, tls: tls)
      let connection = try fixture.connect(to: broker)
      let peer = try port.accept()
      _ = try receive(200, from: peer)
      // The client has then seen that it is connected.
      usleep(300_000)
      end(peer, byReset: byReset)
      try connection.expect(.disconnected(.lost(broker, .handshake)))
    }
  }

  @Test("says that what answers is not MQTT")
  func notMQTT() throws {
    try Fixture.with { fixture in
      let port = try Port()
      let connection = try fixture.connect(to: port.broker)
      let peer = try port.accept()
      try peer.write("HTTP/1.1 400 Bad Request\r\n\(String(repeating: "Header: value\r\n", count: 8))\r\n".utf8)
      // MOSQ_ERR_PROTOCOL: H is the code of PUBACK.
      try connection.expect(.disconnected(.protocolViolated(port.broker, code: 2)))
    }
  }

  @Test("says which subscription was refused")
  func subscriptionRefused() throws {
    try Fixture.with { fixture in
      let port = try Port()
      let connection = try fixture.connect(to: port.broker, subscribing: ["a", "b"])
      let peer = try port.accept()
      // CONNACK; SUBACK of packet 1, QoS 1; SUBACK of packet 2, failure.
      try peer.write([0x20, 2, 0, 0, 0x90, 3, 0, 1, 1, 0x90, 3, 0, 2, 0x80])
      try connection.expect(.connected)
      try connection.expect(.disconnected(.subscriptionRefused(port.broker, filter: "b")))
    }
  }

  @Test("sends CONNECT, SUBSCRIBE and PUBLISH before CONNACK")
  func pipelining() throws {
    try Fixture.with { fixture in
      let port = try Port()
      let connection = try fixture.connect(to: port.broker, subscribing: ["a"])
      connection.publish(topic: "b", payload: [1], retain: false)
      let peer = try port.accept()
      // CONNECT is 14 + 22 bytes, SUBSCRIBE 8, PUBLISH 8.
      let received = try receive(52, from: peer)
      #expect(received.first == 0x10)
      #expect(received.dropFirst(36).prefix(1) == [0x82])
      #expect(received.dropFirst(44) == [0x32, 6, 0, 1, 0x62, 0, 2, 1])
    }
  }

  @Test("notices a broker that has gone silent, by its keep-alive")
  func silentAfterwards() throws {
    try Fixture.with { fixture in
      let port = try Port()
      let connection = try fixture.connect(to: port.broker, keepAlive: .seconds(5))
      let peer = try port.accept()
      try peer.write([0x20, 2, 0, 0])
      try connection.expect(.connected)
      #expect(try connection.next(until: .now + .seconds(60)) == .disconnected(.timedOut(port.broker, .established)))
    }
  }

  /// Receives at least as many bytes as are wanted, or what comes within a minute.
  private func receive(_ count: Int, from peer: borrowing Descriptor) throws -> [UInt8] {
    var received: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while received.count < count, try waitReadable([peer.number], until: .now + .seconds(60))[0] {
      let count = try chunk.withUnsafeMutableBytes { try peer.read(into: $0) }
      if count == 0 { break }
      received += chunk[..<count]
    }
    return received
  }

  private func end(_ peer: consuming Descriptor, byReset: Bool) {
    var option = linger(l_onoff: byReset ? 1 : 0, l_linger: 0)
    setsockopt(peer.number, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
  }
}
