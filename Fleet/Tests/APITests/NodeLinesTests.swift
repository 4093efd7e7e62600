import Logging
import Operator
import Synchronization
import Testing

@testable import API

/// Several nodes as one connection.
@Suite struct NodeLinesTests {
  private let nodes = [PlayedNode(), PlayedNode()]
  private let log = Log()
  private var lines: NodeLines

  init() { lines = Self.lines(nodes, log, pause: .milliseconds(50)) }

  private static func lines(_ nodes: [PlayedNode], _ log: Log, pause: Duration) -> NodeLines {
    NodeLines(
      nodes.map { node in { try node.connect() } }, logger: Logger(label: "test") { [log] _ in log.handler() },
      pause: pause)
  }

  /// What comes until something of that kind comes.
  private func wait(for kind: String) async throws -> [String] {
    var told: [String] = []
    let end = ContinuousClock.now + .seconds(20)
    while !told.contains(where: { $0.hasPrefix(kind) }) {
      try #require(ContinuousClock.now < end, "only \(told)")
      told += try await lines.wait(for: .milliseconds(20)).events.map(Self.text)
    }
    return told
  }

  private static func text(_ event: BrokerConnection.Event) -> String {
    switch event {
    case .connected: "connected"
    case .acknowledged: "acknowledged"
    case .message(let topic, _): "notice \(topic)"
    case .ended(let error): "ended \(error)"
    }
  }

  @Test mutating func `it is connected when all nodes are, and sends to all`() async throws {
    lines = Self.lines(nodes, log, pause: .seconds(600))
    nodes[0].say(.connected)
    for _ in 0..<2 { #expect(try await lines.wait(for: .milliseconds(5)).events.isEmpty) }
    nodes[1].say(.connected)
    #expect(try await wait(for: "connected") == ["connected"])
    lines.subscribe(to: "car")
    lines.publish("1", to: "car")
    #expect(nodes.map(\.said) == Array(repeating: ["subscribe car", "publish 1 to car"], count: 2))
    // Neither has acknowledged it, and may never do so.
    #expect(lines.isIncomplete)
    nodes[0].say(.acknowledged)
    nodes[1].say(.acknowledged)
    #expect(try await wait(for: "acknowledged") == ["acknowledged"])
    #expect(!lines.isIncomplete)
  }

  @Test func `a notice that both nodes return is told once`() async throws {
    for node in nodes { node.say(.connected) }
    _ = try await wait(for: "connected")
    let notices = (1...2).map { BrokerConnection.Event.message(topic: "car", payload: Array("\($0)".utf8)) }
    for number in 1...2 { lines.publish("\(number)", to: "car") }
    nodes[0].say(notices[0], notices[0], notices[1], notices[1])
    // The other one is behind, and has one of somebody else's.
    nodes[1].say(notices[0], .message(topic: "van", payload: [1]), .message(topic: "car", payload: [3]), notices[1])
    #expect(try await wait(for: "notice van").sorted() == ["notice car", "notice car", "notice car", "notice van"])
  }

  @Test func `a notice is acknowledged when every node has done so`() async throws {
    for node in nodes { node.say(.connected) }
    _ = try await wait(for: "connected")
    nodes[0].say(.acknowledged, .acknowledged, .message(topic: "car", payload: []))
    #expect(try await wait(for: "notice") == ["notice car"])
    nodes[1].say(.acknowledged)
    #expect(try await wait(for: "acknowledged") == ["acknowledged"])
    nodes[1].say(.acknowledged)
    #expect(try await wait(for: "acknowledged") == ["acknowledged"])
  }

  @Test func `a node that is lost keeps the other from nothing, and its return ends the connection`() async throws {
    for node in nodes { node.say(.connected) }
    _ = try await wait(for: "connected")
    nodes[0].say(.acknowledged)
    nodes[1].say(.ended(PlayedNode.Lost()))
    // What the lost one had not acknowledged counts as acknowledged.
    #expect(try await wait(for: "acknowledged") == ["acknowledged"])
    #expect(lines.isIncomplete && nodes[1].said == ["close"])
    lines.publish("2", to: "car")
    #expect(nodes[0].said == ["publish 2 to car"] && nodes[1].said == ["close"])
    nodes[1].say(.connected)
    #expect(try await wait(for: "ended") == ["ended a node of the broker is back: all notices are sent anew"])
    #expect(log.text.contains("a node of the broker is away"))
  }

  @Test func `a node that cannot be reached is waited for only at the start, and is said once`() async throws {
    nodes[1].isAway.withLock { $0 = true }
    nodes[0].say(.connected)
    #expect(try await wait(for: "connected") == ["connected"])
    #expect(lines.isIncomplete)
    for _ in 0..<10 { _ = try await lines.wait(for: .milliseconds(20)) }
    #expect(nodes[1].tries > 2 && log.text.split(separator: "\n").count == 1)
  }

  @Test func `a node that says nothing is not waited for any longer than that`() async throws {
    nodes[0].say(.connected)
    #expect(try await wait(for: "connected") == ["connected"])
    #expect(lines.isIncomplete)
  }

  @Test func `when all nodes are lost, the connection ends`() async throws {
    for node in nodes { node.say(.connected) }
    _ = try await wait(for: "connected")
    for node in nodes {
      node.isAway.withLock { $0 = true }
      node.say(.ended(PlayedNode.Lost()))
    }
    #expect(try await wait(for: "ended") == ["ended lost"])
  }

  @Test func `waking ends the wait of one that has nothing to say`() async throws {
    for node in nodes { node.say(.connected) }
    _ = try await wait(for: "connected")
    // What is left of the wakes between the two is taken.
    for _ in 0..<2 { _ = try await lines.wait(for: .milliseconds(5)) }
    async let answer = lines.wait(for: .seconds(20))
    lines.wake()
    #expect(try await answer.isWoken)
  }
}

/// A node that says what the test wants.
private final class PlayedNode: BrokerLine {
  struct Lost: Error, CustomStringConvertible { let description = "lost" }

  let isIncomplete = false
  let isAway = Mutex(false)
  private let state = Mutex(State())

  private struct State {
    var events: [BrokerConnection.Event] = []
    var isWoken = false
    var said: [String] = []
    var tries = 0
  }

  var said: [String] { state.withLock { $0.said } }
  var tries: Int { state.withLock { $0.tries } }

  func connect() throws -> any BrokerLine {
    state.withLock { $0.tries += 1 }
    if isAway.withLock({ $0 }) { throw Lost() }
    return self
  }

  func say(_ events: BrokerConnection.Event...) { state.withLock { $0.events += events } }
  func subscribe(to topic: String) { state.withLock { $0.said.append("subscribe \(topic)") } }
  func publish(_ text: String, to topic: String) { state.withLock { $0.said.append("publish \(text) to \(topic)") } }
  func wake() { state.withLock { $0.isWoken = true } }
  func close() { state.withLock { $0.said.append("close") } }

  func wait(for duration: Duration) async throws -> (events: [BrokerConnection.Event], isWoken: Bool) {
    let end = ContinuousClock.now + duration
    while true {
      let (events, isWoken) = state.withLock { state in
        defer { (state.events, state.isWoken) = ([], false) }
        return (state.events, state.isWoken)
      }
      if !events.isEmpty || isWoken || .now >= end { return (events, isWoken) }
      try await Task.sleep(for: .milliseconds(1))
    }
  }
}
