import Glibc
import MQTT
import SystemIO
import Testing

/// A real broker on a loopback port of its own.
final class Mosquitto {
  static let path = "/usr/sbin/mosquitto"
  static var isInstalled: Bool { access(path, X_OK) == 0 }

  let port: UInt16
  private let configuration: String
  private var process: Subprocess?

  /// - Parameter lines: mosquitto.conf(5) below the listener's line.
  init(_ fixture: Fixture, _ lines: String...) throws {
    port = try Port.unused()
    configuration = try fixture.write(
      "mosquitto-\(port).conf",
      // Started by root, it would become a user that cannot read the fixture's files.
      (["user root", "listener \(port) 127.0.0.1", "set_tcp_nodelay true"] + lines).joined(separator: "\n") + "\n")
    fixture.undo { [self] in stop() }
    try start()
  }

  /// A broker that lets everyone in, in the clear.
  static func open(_ fixture: Fixture) throws -> Mosquitto { try Mosquitto(fixture, "allow_anonymous true") }

  /// A broker with TLS.
  static func secured(_ fixture: Fixture, _ server: Broker.Identity, _ lines: String...) throws -> Mosquitto {
    try Mosquitto(
      fixture,
      (["certfile \(server.certificate)", "keyfile \(server.key)", "allow_anonymous true"] + lines)
        .joined(separator: "\n"))
  }

  func start() throws {
    process = try Subprocess([Self.path, "-c", configuration])
    try Port.waitForListener(port)
  }

  /// As a power cut does.
  func stop() {
    process?.kill()
    process = nil
  }

  func broker(_ host: String = "127.0.0.1", _ tls: Broker.TLS? = nil) -> Broker {
    Broker(host: host, port: port, tls: tls)
  }

  /// Publishes with mosquitto_pub, in the clear.
  func publish(_ arguments: String...) throws {
    let status = try Subprocess(
      ["mosquitto_pub", "-h", "127.0.0.1", "-p", String(port), "-q", "1"] + arguments
    ).wait()
    try #require(status == 0)
  }
}
