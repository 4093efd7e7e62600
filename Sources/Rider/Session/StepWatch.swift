package import Domain
package import StepProtocol
package import SystemIO

/// How a vehicle's steps stand, as the vehicle itself says, for as long as somebody looks at them.
///
/// It asks once for each connection, then takes whatever the vehicle says. After a loss it connects again. It knows
/// nothing of a step for which there was no answer yet, and then that is all that it tells.
///
/// **Threads.** As `RiderClient`: everything happens on the thread of its loop.
package final class StepWatch {
  /// The newest statement of each step that is not older than this watch.
  package private(set) var statements: [StepID: Statement] = [:]

  private let steps: [StepID]
  private let loop: EventLoop
  private let connect: () throws -> RiderClient
  private let tell: () throws -> Void
  private var client: RiderClient?
  private var retry: Registration?

  /// The wait before it connects again.
  private static let pause = Duration.seconds(5)

  /// - Parameters:
  ///   - connect: begins to connect to the vehicle, on the loop.
  ///   - tell: gets each change.
  package init(
    _ steps: [StepID], on loop: EventLoop, connect: @escaping () throws -> RiderClient,
    tell: @escaping () throws -> Void
  ) {
    (self.steps, self.loop, self.connect, self.tell) = (steps, loop, connect, tell)
  }

  /// Connects, unless it is connected.
  package func start() {
    guard client == nil else { return }
    retry?.cancel()
    do {
      let client = try connect()
      self.client = client
      listen(to: client)
      try ask(client)
    } catch {
      pause()
    }
  }

  /// Hands its connection over, or a new one, to somebody who has more to say there and who closes it. It still takes
  /// what the vehicle says there. The owner calls `start` when the connection is closed.
  package func lend() throws -> RiderClient {
    retry?.cancel()
    if let client {
      self.client = nil
      return client
    }
    let client = try connect()
    listen(to: client)
    return client
  }

  /// Asks about steps over a connection that was lent.
  package func ask(_ client: RiderClient, about steps: [StepID]? = nil) throws {
    try client.begin(beside: (steps ?? self.steps).map { .status($0) }) { _, _ in }
  }

  package func close() {
    retry?.cancel()
    client?.close()
    client = nil
  }

  private func listen(to client: RiderClient) {
    client.follow { [unowned self, unowned client] news in
      switch news {
      case .statement(let statement, let isFresh): try arrived(statement, isFresh: isFresh)
      case .availability: try restart(client)
      case .lost:
        statements = [:]
        if client === self.client { pause() }
        try tell()
      }
    }
  }

  private func arrived(_ statement: Statement, isFresh: Bool) throws {
    let known = statements[statement.step]
    let isNewer = known.map { $0.epoch == statement.epoch && $0.sequence < statement.sequence } ?? false
    // Another run of the controller counts its statements from the beginning.
    guard isNewer || isFresh && known?.epoch != statement.epoch else { return }
    statements[statement.step] = statement
    try tell()
  }

  /// The controller has come or gone: only a new answer is known to be true.
  private func restart(_ client: RiderClient) throws {
    statements = [:]
    try tell()
    if client === self.client { try ask(client) }
  }

  private func pause() {
    // Later, because the caller may be the client itself.
    if let client { loop.schedule(at: .now) { client.close() } }
    client = nil
    retry = loop.schedule(at: .now + Self.pause) { [unowned self] in start() }
  }
}
