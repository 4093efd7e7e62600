import Glibc
import MQTT
import SystemIO
import TestSupport
import Testing

@Suite(
  "TLS", .serialized, .timeLimit(.minutes(10)),
  .enabled(if: Mosquitto.isInstalled, "mosquitto or its clients are not installed"))
struct TLSTests {
  @Test("proves both sides, by name or by address", arguments: ["localhost", "127.0.0.1"])
  func mutual(host: String) throws {
    try Fixture.with { fixture in
      let certificates = try Certificates(fixture)
      let server = try certificates.issue("server", alternativeName: "DNS:localhost,IP:127.0.0.1")
      let client = try certificates.issue("client")
      let mosquitto = try fixture.securedBroker(
        server, "cafile \(certificates.authority)", "require_certificate true",
        "use_identity_as_username true")
      let broker = mosquitto.broker(host, Broker.TLS(authority: certificates.authority, identity: client))
      let connection = try fixture.connect(to: broker, subscribing: ["a"])
      connection.publish(topic: "a", payload: [1], retain: false)
      try connection.expect(.connected)
      #expect(try connection.nextMessage()?.payload == [1])
    }
  }

  @Test(
    "reads what came at once to its end, in order, though nobody fetched it for a while",
    arguments: [MQTTConnection.Quality.zero, .one])
  func ahead(quality: MQTTConnection.Quality) throws {
    try Fixture.with { fixture in
      let certificates = try Certificates(fixture)
      let mosquitto = try fixture.securedBroker(try certificates.issue("server", alternativeName: "IP:127.0.0.1"))
      let broker = mosquitto.broker("127.0.0.1", Broker.TLS(authority: certificates.authority, identity: nil))
      var limits = MQTTConnection.Limits()
      (limits.payload, limits.queuedMessages, limits.holdsBack) = (100_000, 5, true)
      let subscriber = try fixture.connect(to: broker, subscribing: ["a"], quality: quality, limits: limits)
      try subscriber.wait(for: .connected)
      let publisher = try fixture.connect(to: broker)
      // One and more records of TLS, which have at most 16 KiB, in an order of small and large.
      let sizes = (0..<60).map { [1, 40, 16_384, 200, 70_000, 3][$0 % 6] }
      var last: PublishID?
      for (number, size) in sizes.enumerated() {
        last = publisher.publish(topic: "a", payload: .init(repeating: UInt8(number), count: size), retain: false)
      }
      while subscriber.discarded.heldBack < 1 { usleep(1000) }
      try publisher.wait(for: .acknowledged(#require(last)))
      for (number, size) in sizes.enumerated() {
        let payload = try subscriber.nextMessage()?.payload
        #expect(payload?.count == size && payload?.allSatisfy { $0 == UInt8(number) } == true)
      }
      #expect(subscriber.discarded.overflowing == 0)
    }
  }

  @Test("trusts no broker of another authority, though it has the same name")
  func otherAuthority() throws {
    try expectUntrusted(.unknownAuthority, trusting: "other") {
      try $0.issue("server", alternativeName: "IP:127.0.0.1")
    }
  }

  @Test("trusts no expired certificate")
  func expired() throws {
    try expectUntrusted(.expired) { try $0.issue("server", alternativeName: "IP:127.0.0.1", days: -1) }
  }

  @Test("trusts no certificate for another host", arguments: ["DNS:example.org", "IP:127.0.0.2", "DNS:127.0.0.1"])
  func otherHost(alternativeName: String) throws {
    try expectUntrusted(.nameMismatch) { try $0.issue("server", alternativeName: alternativeName) }
  }

  @Test(
    "trusts no certificate for another name",
    arguments: ["DNS:example.org", "IP:127.0.0.1", "DNS:localhost.example.org"])
  func otherName(alternativeName: String) throws {
    try expectUntrusted(.nameMismatch, host: "localhost") { try $0.issue("server", alternativeName: alternativeName) }
  }

  @Test("trusts no client's certificate in a broker's place")
  func clientAsServer() throws {
    try Fixture.with { fixture in
      let certificates = try Certificates(fixture)
      let mosquitto = try fixture.securedBroker(try certificates.issue("127.0.0.1"))
      let broker = mosquitto.broker("127.0.0.1", Broker.TLS(authority: certificates.authority, identity: nil))
      // X509_V_ERR_INVALID_PURPOSE
      try fixture.connect(to: broker).expect(.disconnected(.untrustedBroker(broker, .other(26))))
    }
  }

  private func expectUntrusted(
    _ fault: MQTTError.CertificateFault, host: String = "127.0.0.1",
    trusting otherAuthority: String? = nil,
    _ issue: (Certificates) throws -> Broker.Identity
  ) throws {
    try Fixture.with { fixture in
      let certificates = try Certificates(fixture)
      let mosquitto = try fixture.securedBroker(try issue(certificates))
      let authority = try otherAuthority.map { try Certificates(fixture, $0).authority } ?? certificates.authority
      let broker = mosquitto.broker(host, Broker.TLS(authority: authority, identity: nil))
      let connection = try fixture.connect(to: broker, subscribing: ["a"])
      connection.publish(topic: "a", payload: [1], retain: false)
      try connection.expect(.disconnected(.untrustedBroker(broker, fault)))
    }
  }

  // The alerts of RFC 8446 6.2. With TLS 1.3 they come when the client has already sent its first packets.

  @Test("says that the broker wants a client certificate")
  func noClientCertificate() throws {
    try expectAlert(116) { _, _ in nil }
  }

  @Test("says that the broker does not accept the client certificate")
  func foreignClientCertificate() throws {
    try expectAlert(48) { fixture, _ in try Certificates(fixture, "other").issue("client") }
  }

  @Test("says that the client certificate has expired")
  func expiredClientCertificate() throws {
    try expectAlert(45) { try $1.issue("client", days: -1) }
  }

  private func expectAlert(
    _ alert: UInt8, _ identity: (Fixture, Certificates) throws -> Broker.Identity?
  ) throws {
    try Fixture.with { fixture in
      let certificates = try Certificates(fixture)
      let server = try certificates.issue("server", alternativeName: "IP:127.0.0.1")
      let mosquitto = try fixture.securedBroker(server, "cafile \(certificates.authority)", "require_certificate true")
      let broker = mosquitto.broker(
        "127.0.0.1", Broker.TLS(authority: certificates.authority, identity: try identity(fixture, certificates)))
      let connection = try fixture.connect(to: broker, subscribing: ["a", "b"])
      connection.publish(topic: "a", payload: [1], retain: false)
      try connection.expect(.disconnected(.refusedByAlert(broker, alert)))
    }
  }

  @Test("says that a TLS 1.2 broker wants a client certificate")
  func olderVersion() throws {
    try Fixture.with { fixture in
      let certificates = try Certificates(fixture)
      let server = try certificates.issue("server", alternativeName: "IP:127.0.0.1")
      let number = try Port.unused()
      // mosquitto's tls_version is only the least.
      let peer = try Subprocess([
        "openssl", "s_server", "-quiet", "-tls1_2", "-Verify", "1", "-accept", "127.0.0.1:\(number)", "-cert",
        server.certificate, "-key", server.key, "-CAfile", certificates.authority,
      ])
      fixture.undo { peer.stop() }
      try Port.waitForListener(number)
      let broker = Broker(
        host: "127.0.0.1", port: number, tls: Broker.TLS(authority: certificates.authority, identity: nil))
      // RFC 5246 7.4.6: handshake_failure.
      try fixture.connect(to: broker).expect(.disconnected(.refusedByAlert(broker, 40)))
    }
  }

  @Test("says that the broker speaks no TLS")
  func clearBroker() throws {
    try Fixture.with { fixture in
      let port = try Port()
      let tls = Broker.TLS(authority: try Certificates(fixture).authority, identity: nil)
      let broker = Broker(host: "127.0.0.1", port: port.number, tls: tls)
      let connection = try fixture.connect(to: broker)
      try port.accept().write("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)
      // ERR_PACK(ERR_LIB_SSL, 0, SSL_R_WRONG_VERSION_NUMBER)
      try connection.expect(.disconnected(.tlsFailed(broker, code: 0x0A00_010B)))
    }
  }

  @Test("sends the host's name, but no address, as the server name", arguments: ["localhost", "127.0.0.1"])
  func serverName(host: String) throws {
    try Fixture.with { fixture in
      let port = try Port()
      let tls = Broker.TLS(authority: try Certificates(fixture).authority, identity: nil)
      let connection = try fixture.connect(to: Broker(host: host, port: port.number, tls: tls))
      let peer = try port.accept()
      var hello = [UInt8](repeating: 0, count: 4096)
      _ = try hello.withUnsafeMutableBytes { try peer.read(into: $0) }
      let text = String(decoding: hello, as: Unicode.ASCII.self)
      #expect(text.contains("localhost") == (host == "localhost"))
      #expect(!text.contains("127.0.0.1"))
      withExtendedLifetime(connection) {}
    }
  }

  @Test("takes up certificates that were renewed, even if the first attempt was prepared", arguments: [false, true])
  func renewed(isPrepared: Bool) throws {
    try Fixture.with { fixture in
      let certificates = try Certificates(fixture)
      let server = try certificates.issue("server", alternativeName: "IP:127.0.0.1")
      let stale = try certificates.issue("client", days: -1)
      let mosquitto = try fixture.securedBroker(server, "cafile \(certificates.authority)", "require_certificate true")
      let broker = mosquitto.broker("127.0.0.1", Broker.TLS(authority: certificates.authority, identity: stale))
      let preparation = isPrepared ? try TLSPreparation(for: broker) : nil
      let connection = try fixture.connect(to: broker, reconnecting: .forever, preparation: preparation)
      try connection.expect(.disconnected(.refusedByAlert(broker, 45)))
      #expect(try certificates.issue("client") == stale)
      try connection.wait(for: .connected)
    }
  }
}
