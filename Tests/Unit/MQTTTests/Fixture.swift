import Glibc
import MQTT
import SystemIO
import Testing

/// What one test has made: undone in reverse order when the test ends, however it does.
final class Fixture {
  let folder: String
  private var undoings: [() -> Void] = []

  private init() throws {
    var template = Array("/tmp/mqtt-tests.XXXXXX".utf8CString)
    let made = try #require(mkdtemp(&template))
    folder = String(cString: made)
    let folder = folder
    undo { try? run("rm", "-r", folder) }
  }

  func undo(_ undoing: @escaping () -> Void) { undoings.append(undoing) }

  static func with(_ body: (Fixture) throws -> Void) throws {
    let fixture = try Fixture()
    defer { for undoing in fixture.undoings.reversed() { undoing() } }
    try body(fixture)
  }

  func path(_ name: String) -> String { "\(folder)/\(name)" }

  func write(_ name: String, _ text: String) throws -> String {
    try Files.replace(path(name), with: Array(text.utf8), mode: 0o600)
    return path(name)
  }

  /// A connection that is closed at the end of the test.
  func connect(
    to broker: Broker, subscribing subscriptions: [String] = [],
    reconnecting: MQTTConnection.Reconnecting = .never, keepAlive: Duration = .seconds(30),
    patience: Duration = .seconds(5), limits: MQTTConnection.Limits = .init()
  ) throws -> MQTTConnection {
    let connection = try MQTTConnection(
      broker: broker, keepAlive: keepAlive, subscriptions: subscriptions, reconnecting: reconnecting,
      patience: patience, limits: limits)
    undo { connection.close() }
    return connection
  }
}

/// Whether it takes less at some time: a busy machine only makes it longer.
func takes(lessThan limit: Duration, _ body: () throws -> Duration) throws -> Bool {
  let end = ContinuousClock.now + .seconds(30)
  while .now < end {
    if try body() < limit { return true }
  }
  return false
}

extension MQTTConnection {
  /// How long `close` takes.
  func timeToClose() -> Duration {
    let begin = ContinuousClock.now
    close()
    return begin.duration(to: .now)
  }

  /// The next event, within a time that only a broken connection takes.
  func next() throws -> Event? { try next(until: .now + .seconds(10)) }

  /// The next event is to be this one.
  func expect(_ wanted: Event, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let event = try next()
    #expect(event == wanted, sourceLocation: sourceLocation)
  }

  /// The first message, whatever else happens before it.
  func nextMessage(within wait: Duration = .seconds(10)) throws -> Message? {
    let deadline = ContinuousClock.now + wait
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
