import Glibc
import MQTT
import SystemIO
import TestSupport
import Testing

@Suite("TLS files", .serialized, .timeLimit(.minutes(10)))
struct TLSFileTests {
  @Test("names the file that cannot be read, before connecting")
  func unreadable() throws {
    try Fixture.with { fixture in
      let certificates = try Certificates(fixture)
      let client = try certificates.issue("client")
      let missing = fixture.path("missing")
      func expect(_ file: MQTTError.TLSFile, _ authority: String, _ certificate: String, _ key: String) {
        let fault = MQTTError.FileFault.unreadable(SystemError("open", missing, code: ENOENT))
        #expect(throws: MQTTError.unusableFile(file, path: missing, fault)) {
          try connect(fixture, authority, certificate, key)
        }
      }
      expect(.authority, missing, client.certificate, client.key)
      expect(.certificate, certificates.authority, missing, client.key)
      expect(.key, certificates.authority, client.certificate, missing)
    }
  }

  @Test("names the file that is not PEM")
  func malformed() throws {
    try Fixture.with { fixture in
      let certificates = try Certificates(fixture)
      let client = try certificates.issue("client")
      let text = try fixture.write("text", "not a certificate\n")
      func expect(_ file: MQTTError.TLSFile, _ authority: String, _ certificate: String, _ key: String) throws {
        let event = try connect(fixture, authority, certificate, key).next()
        guard case .disconnected(.unusableFile(file, path: text, .malformed)) = event else {
          Issue.record("\(file): \(String(describing: event))")
          return
        }
      }
      try expect(.authority, text, client.certificate, client.key)
      try expect(.certificate, certificates.authority, text, client.key)
      try expect(.key, certificates.authority, client.certificate, text)
    }
  }

  @Test("says that the key belongs to another certificate")
  func mismatch() throws {
    try Fixture.with { fixture in
      let certificates = try Certificates(fixture)
      let client = try certificates.issue("client")
      let other = try certificates.issue("other").key
      try connect(fixture, certificates.authority, client.certificate, other)
        .expect(.disconnected(.unusableFile(.key, path: other, .mismatch)))
    }
  }

  @Test("says it of files that were read ahead, too, and does not mind a preparation that nobody uses")
  func prepared() throws {
    try Fixture.with { fixture in
      let certificates = try Certificates(fixture)
      let identity = Broker.Identity(
        certificate: try certificates.issue("client").certificate, key: try certificates.issue("other").key)
      let broker = Broker(
        host: "127.0.0.1", port: 1, tls: Broker.TLS(authority: certificates.authority, identity: identity))
      #expect(try TLSPreparation(for: broker) != nil)
      let preparation = try TLSPreparation(for: broker)
      try fixture.connect(to: broker, preparation: preparation)
        .expect(.disconnected(.unusableFile(.key, path: identity.key, .mismatch)))
      #expect(try TLSPreparation(for: Broker(host: "127.0.0.1", port: 1, tls: nil)) == nil)
    }
  }

  @Test("says that the key needs a passphrase, and asks for none")
  func encrypted() throws {
    try Fixture.with { fixture in
      let certificates = try Certificates(fixture)
      let client = try certificates.issue("client")
      let locked = fixture.path("locked.key")
      try run("openssl", "pkey", "-in", client.key, "-aes128", "-passout", "pass:secret", "-out", locked)
      try connect(fixture, certificates.authority, client.certificate, locked)
        .expect(.disconnected(.unusableFile(.key, path: locked, .encrypted)))
    }
  }

  @Test("what a clock makes of a certificate that is valid for sixty days")
  func condition() {
    let (begin, end): (Int64, Int64) = (1_800_000_000, 1_800_000_000 + 60 * 86_400)
    let file = Broker.TLS.CertificateFile(path: "ca.pem", begin: begin, end: end)
    for now in [0, begin - 1] { #expect(file.condition(at: now) == .early) }
    for now in [begin, end - 30 * 86_400] { #expect(file.condition(at: now) == .valid) }
    for now in [end - 30 * 86_400 + 1, end] { #expect(file.condition(at: now) == .endsSoon) }
    #expect(file.condition(at: end + 1) == .ended)
  }

  @discardableResult
  private func connect(
    _ fixture: Fixture, _ authority: String, _ certificate: String, _ key: String
  ) throws -> MQTTConnection {
    let identity = Broker.Identity(certificate: certificate, key: key)
    return try fixture.connect(
      to: Broker(
        host: "127.0.0.1", port: Port.unused(), tls: Broker.TLS(authority: authority, identity: identity)))
  }
}
