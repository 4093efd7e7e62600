import Glibc
import MQTT
import SystemIO
import TestSupport
import Testing

/// What one test has made: undone in reverse order when the test ends, however it does.
final class Fixture {
  private let made: TemporaryFolder
  private var undoings: [() -> Void] = []

  private init() throws { made = try TemporaryFolder() }

  var folder: String { made.path }

  func undo(_ undoing: @escaping () -> Void) { undoings.append(undoing) }

  static func with(_ body: (Fixture) throws -> Void) throws {
    let fixture = try Fixture()
    defer { for undoing in fixture.undoings.reversed() { undoing() } }
    try body(fixture)
  }

  func path(_ name: String) -> String { "\(folder)/\(name)" }

  func write(_ name: String, _ text: String) throws -> String { try made.write(name, text) }

  /// A broker that is stopped at the end of the test.
  ///
  /// - Parameter lines: mosquitto.conf(5) below the listener's line.
  func broker(_ lines: String...) throws -> Mosquitto {
    let port = try Port.unused()
    let configuration = try write(
      "mosquitto-\(port).conf",
      // Started by root, it would become a user that cannot read this folder's files.
      (["user root", "listener \(port) 127.0.0.1", "set_tcp_nodelay true"] + lines).joined(separator: "\n") + "\n")
    let mosquitto = try Mosquitto(configuration: configuration, port: port)
    undo { mosquitto.stop() }
    return mosquitto
  }

  /// A broker that lets everyone in, in the clear.
  func openBroker() throws -> Mosquitto { try broker("allow_anonymous true") }

  /// A broker with TLS.
  func securedBroker(_ server: Broker.Identity, _ lines: String...) throws -> Mosquitto {
    try broker(
      (["certfile \(server.certificate)", "keyfile \(server.key)", "allow_anonymous true"] + lines)
        .joined(separator: "\n"))
  }

  /// A connection that is closed at the end of the test.
  func connect(
    to broker: Broker, subscribing subscriptions: [String] = [], quality: MQTTConnection.Quality = .one,
    screen: MQTTConnection.Screen? = nil, reconnecting: MQTTConnection.Reconnecting = .never,
    keepAlive: Duration = .seconds(30), patience: Duration = .seconds(60),
    limits: MQTTConnection.Limits = .init(), preparation: TLSPreparation? = nil
  ) throws -> MQTTConnection {
    let connection = try MQTTConnection(
      broker: broker, keepAlive: keepAlive, subscriptions: subscriptions, quality: quality, screen: screen,
      reconnecting: reconnecting, patience: patience, limits: limits, preparation: preparation)
    undo { connection.close() }
    return connection
  }
}

/// Whether it takes less at some time: a busy machine only makes it longer.
func takes(lessThan limit: Duration, _ body: () throws -> Duration) throws -> Bool {
  let end = Instant.now + .seconds(120)
  while .now < end {
    if try body() < limit { return true }
  }
  return false
}

extension MQTTConnection {
  /// How long `close` takes.
  func timeToClose() -> Duration {
    let begin = Instant.now
    close()
    return begin.duration(to: .now)
  }

  /// The next event, within a time that only a broken connection takes.
  func next() throws -> Event? { try next(until: .now + .seconds(60)) }

  /// The next event is to be this one.
  func expect(_ wanted: Event, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let event = try next()
    #expect(event == wanted, sourceLocation: sourceLocation)
  }

  /// The first message, whatever else happens before it.
  func nextMessage(within wait: Duration = .seconds(60)) throws -> Message? {
    let deadline = Instant.now + wait
    while let event = try next(until: deadline) {
      if case .message(let message) = event { return message }
    }
    return nil
  }

  /// Skips events until the one that is wanted.
  func wait(for wanted: Event, sourceLocation: SourceLocation = #_sourceLocation) throws {
    while let event = try next() {
      if event == wanted { return }
    }
    Issue.record("never came: \(wanted)", sourceLocation: sourceLocation)
  }
}

extension Mosquitto {
  func broker(_ host: String = "127.0.0.1", _ tls: Broker.TLS? = nil) -> Broker {
    Broker(host: host, port: port, tls: tls)
  }

  /// Publishes in the clear.
  func publish(_ options: String...) throws { try #require(publish(options).status == 0) }
}

extension Port {
  var broker: Broker { Broker(host: "127.0.0.1", port: number, tls: nil) }
}

struct ProgramFailure: Error {
  let arguments: [String]
  let printed: String
}

/// Runs a program to its end, which must be success.
func run(_ arguments: String...) throws {
  let outcome = try Subprocess.run(arguments)
  if outcome.status != 0 { throw ProgramFailure(arguments: arguments, printed: outcome.printed) }
}
