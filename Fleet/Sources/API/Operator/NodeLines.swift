import Logging
import Operator
import Synchronization

/// Connections to all nodes of a broker, as one.
///
/// A message that is published at one of RabbitMQ's nodes reaches the clients of all nodes, but each node keeps its own
/// retained messages. So a notice goes to every node that can be reached. A node that comes back has missed some: this
/// connection ends then, and `isIncomplete` says that the next one has to send everything anew.
///
/// That is for a single node, too, and for mosquitto with its plugin: both acknowledge a notice, and return it, before
/// it is on the disk. So a node that is killed may lose what it has acknowledged in the last seconds, or the last
/// minute.
final class NodeLines: BrokerLine {
  /// Begins to connect to one node.
  typealias Connect = @Sendable () throws -> any BrokerLine

  private enum Node {
    /// It cannot be reached, and is tried again then.
    case away(until: ContinuousClock.Instant)
    case connecting(any BrokerLine)
    /// It gets the notices, and has acknowledged so many.
    case connected(any BrokerLine, acknowledged: Int)

    var line: (any BrokerLine)? {
      switch self {
      case .away: nil
      case .connecting(let line), .connected(let line, _): line
      }
    }

    var acknowledged: Int? {
      if case .connected(_, let acknowledged) = self { acknowledged } else { nil }
    }
  }

  private struct State {
    var nodes: [Node]
    /// Whether notices are sent, and how many acknowledgements were told.
    var isSending = false
    var acknowledged = 0
    /// How many notices were sent.
    var published = 0
    /// The last notices that were sent to each topic, and whether they have come back.
    var sent: [String: [(text: [UInt8], isTold: Bool)]] = [:]
    /// Whether a node was lost, and whether one has come back that missed what was sent.
    var isLacking = false
    var isReturned = false
    /// Why nodes are away, by their places; and why the last one is.
    var losses: [Int: any Error] = [:]
    var loss: any Error = NoNodes()
  }

  private struct NoNodes: Error, CustomStringConvertible {
    var description: String { "the broker has no nodes" }
  }

  private let connects: [Connect]
  private let state: Mutex<State>
  private let logger: Logger
  private let pause: Duration
  private let start = ContinuousClock.now

  /// - Parameter pause: how long nodes are waited for at first, and after which time a lost one is tried again.
  init(_ connects: [Connect], logger: Logger, pause: Duration = .seconds(5)) {
    (self.connects, self.logger, self.pause) = (connects, logger, pause)
    state = Mutex(State(nodes: connects.map { [start] _ in .away(until: start) }))
  }

  /// A node that has not acknowledged everything may never do so.
  var isIncomplete: Bool { state.withLock { $0.isLacking || $0.acknowledged < $0.published } }

  func subscribe(to topic: String) { for line in connected { line.subscribe(to: topic) } }

  func publish(_ text: String, to topic: String) {
    state.withLock { state in
      state.published += 1
      state.sent[topic] = (state.sent[topic] ?? []).suffix(Self.remembered - 1) + [(Array(text.utf8), false)]
    }
    for line in connected { line.publish(text, to: topic) }
  }

  func wake() { for line in state.withLock({ $0.nodes.compactMap(\.line) }) { line.wake() } }
  func close() { for line in state.withLock({ $0.nodes.compactMap(\.line) }) { line.close() } }

  private var connected: [any BrokerLine] {
    state.withLock { $0.nodes.compactMap { $0.acknowledged == nil ? nil : $0.line } }
  }

  func wait(for duration: Duration) async throws -> (events: [BrokerConnection.Event], isWoken: Bool) {
    connectAgain()
    let lines = state.withLock {
      $0.nodes.enumerated().compactMap { node in node.element.line.map { (node.offset, $0) } }
    }
    let answers = try await Self.wait(for: duration, lines)
    var notices: [BrokerConnection.Event] = []
    for (index, event) in answers.events {
      guard case .message(let topic, let payload) = event else {
        happened(event, at: index)
        continue
      }
      if isNews(payload, at: topic) { notices.append(event) }
    }
    return (notices + progress(), answers.isWoken)
  }

  /// How many notices of one topic are known again.
  private static let remembered = 4

  /// Each node returns what any node has got, and may be behind another one. What others have sent is always news.
  private func isNews(_ payload: [UInt8], at topic: String) -> Bool {
    state.withLock { state in
      guard let index = state.sent[topic]?.firstIndex(where: { $0.text == payload }) else { return true }
      defer { state.sent[topic]?[index].isTold = true }
      return state.sent[topic]?[index].isTold == false
    }
  }

  /// Waits until one of them has something to say, and takes what all of them have.
  private static func wait(
    for duration: Duration, _ lines: [(Int, any BrokerLine)]
  ) async throws -> (events: [(Int, BrokerConnection.Event)], isWoken: Bool) {
    try await withThrowingTaskGroup(of: (Int, [BrokerConnection.Event], Bool).self) { group in
      for (index, line) in lines {
        group.addTask {
          do {
            let (events, isWoken) = try await line.wait(for: duration)
            return (index, events, isWoken)
          } catch {
            // The others go on.
            return (index, [.ended(error)], false)
          }
        }
      }
      guard let (first, events, isWoken) = try await group.next() else {
        try await Task.sleep(for: duration)
        return ([], false)
      }
      for (index, line) in lines where index != first { line.wake() }
      var all = events.map { (first, $0) }
      for try await (index, events, _) in group { all += events.map { (index, $0) } }
      return (all, isWoken)
    }
  }

  private func connectAgain() {
    let now = ContinuousClock.now
    for (index, connect) in connects.enumerated() {
      guard case .away(let end) = state.withLock({ $0.nodes[index] }), end <= now else { continue }
      do {
        let line = try connect()
        state.withLock { $0.nodes[index] = .connecting(line) }
      } catch {
        lost(index, error)
      }
    }
  }

  private func happened(_ event: BrokerConnection.Event, at index: Int) {
    switch event {
    case .connected:
      state.withLock { state in
        if let line = state.nodes[index].line { state.nodes[index] = .connected(line, acknowledged: 0) }
        state.losses[index] = nil
        if state.isSending { state.isReturned = true }
      }
    case .acknowledged:
      state.withLock { state in
        if case .connected(let line, let count) = state.nodes[index] {
          state.nodes[index] = .connected(line, acknowledged: count + 1)
        }
      }
    case .ended(let error): lost(index, error)
    case .message: break
    }
  }

  private func lost(_ index: Int, _ error: any Error) {
    let (line, isNews) = state.withLock { state in
      defer { state.nodes[index] = .away(until: .now + pause) }
      (state.isLacking, state.loss) = (true, error)
      // Each node once: it may be away for hours.
      return (state.nodes[index].line, state.losses.updateValue(error, forKey: index) == nil && state.isSending)
    }
    line?.close()
    if isNews { log(error, at: index) }
  }

  private func log(_ error: any Error, at index: Int) {
    logger.error("a node of the broker is away", metadata: ["node": "\(index + 1)", "error": "\(error)"])
  }

  /// What follows from all nodes' states.
  private func progress() -> [BrokerConnection.Event] {
    let (events, losses) = state.withLock { state -> ([BrokerConnection.Event], [Int: any Error]) in
      guard let least = state.nodes.compactMap(\.acknowledged).min() else {
        let isOver = state.isSending || state.nodes.allSatisfy { $0.line == nil }
        return (isOver ? [.ended(state.loss)] : [], [:])
      }
      if state.isReturned { return ([.ended(NodeIsBack())], [:]) }
      if state.isSending {
        defer { state.acknowledged = max(least, state.acknowledged) }
        return (Array(repeating: .acknowledged, count: max(0, least - state.acknowledged)), [:])
      }
      let others = state.nodes.filter { $0.acknowledged == nil }
      guard others.allSatisfy({ $0.line == nil }) || .now >= start + pause else { return ([], [:]) }
      state.isSending = true
      if !others.isEmpty { state.isLacking = true }
      return ([.connected], state.losses)
    }
    for (index, error) in losses.sorted(by: { $0.key < $1.key }) { log(error, at: index) }
    return events
  }
}

/// Why a connection to a broker of several nodes ends when it has to begin anew.
struct NodeIsBack: Error, CustomStringConvertible {
  var description: String { "a node of the broker is back: all notices are sent anew" }
}
