import Domain
import FleetTestSupport
import Logging
import Operator
import StepProtocol
import Store
import Synchronization
import Testing

@testable import API

/// The queue of notices, in the database.
@Suite struct NoticeTableTests {
  private func claim(_ bench: Bench, upTo count: Int = 9) async throws -> [NoticeTable.Claim] {
    let now = bench.now
    return try await bench.store.write { try NoticeTable.claim(upTo: count, at: now, until: now + 10, in: $0) }
  }

  private func want(_ bench: Bench, _ name: String) async throws {
    let (id, now) = (try await bench.id(of: name), bench.now)
    try await bench.store.write { try NoticeTable.want([id], at: now, in: $0) }
  }

  private func noteSent(_ claim: NoticeTable.Claim, _ bench: Bench) async throws {
    let now = bench.now
    try await bench.store.write { try NoticeTable.noteSent(claim, at: now, in: $0) }
  }

  @Test(arguments: Engine.forRules)
  func `one server takes a notice, and its number is above the last`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    #expect(try await claim(bench).isEmpty)
    try await want(bench, "car")
    let first = try await claim(bench)
    #expect(first.map(\.number) == [bench.now] && first.map(\.topic.description) == ["car"])
    #expect(try await claim(bench).isEmpty)
    try await noteSent(first[0], bench)
    #expect(try await bench.untold().isEmpty)
    try await want(bench, "car")
    #expect(try await claim(bench).map(\.number) == [bench.now + 1])
    // A server that stopped keeps the notice for a while, and not for ever.
    bench.wait(10)
    #expect(try await claim(bench).map(\.number) == [bench.now])
  }

  @Test(arguments: Engine.forRules)
  func `what is wanted during the sending is sent, too`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await want(bench, "car")
    let first = try await claim(bench)[0]
    try await want(bench, "car")
    try await noteSent(first, bench)
    #expect(try await bench.untold() == ["car"])
    try await noteSent(try await claim(bench)[0], bench)
    #expect(try await bench.untold().isEmpty)
  }

  @Test(arguments: Engine.forRules)
  func `who sent too late lets the newest be sent again`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await want(bench, "car")
    let late = try await claim(bench)[0]
    bench.wait(10)
    let other = try await claim(bench)[0]
    // Whichever came last to the broker, and whichever is noted first.
    try await noteSent(other, bench)
    try await noteSent(late, bench)
    #expect(try await bench.untold() == ["car"])
    let last = try await claim(bench)[0]
    #expect(last.number > other.number)
    try await noteSent(last, bench)
    #expect(try await bench.untold().isEmpty)
  }

  @Test(arguments: Engine.forRules)
  func `revocations go before what only repeats`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let now = bench.now
    try await bench.store.write { try NoticeTable.wantAll(at: now, in: $0) }
    bench.wait(5)
    try await want(bench, "van")
    #expect(try await claim(bench, upTo: 1).map(\.topic.description) == ["van"])
    #expect(try await claim(bench).map(\.topic.description) == ["car"])
  }

  @Test(arguments: Engine.forRules)
  func `what the broker keeps is known`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let id = try await bench.id(of: "car")
    func keeps(_ number: Int64) async throws -> Bool {
      let now = bench.now
      try await bench.store.write { try NoticeTable.note(number, of: id, at: now, in: $0) }
      return try await bench.untold().isEmpty
    }
    try await want(bench, "car")
    let first = try await claim(bench)[0]
    try await noteSent(first, bench)
    #expect(try await keeps(first.number))
    // A late one has replaced the newest.
    #expect(try await keeps(first.number - 1) == false)
    try await noteSent(try await claim(bench)[0], bench)
    // From before a backup was restored: the vehicle takes only greater ones.
    #expect(try await keeps(bench.now + 5000) == false)
    #expect(try await claim(bench).map(\.number) == [bench.now + 5001])
  }

  @Test(arguments: Engine.forRules)
  func `a clock that was set back keeps no notice waiting`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    try await want(bench, "car")
    let first = try await claim(bench)[0]
    bench.wait(-3600)
    #expect(try await claim(bench).map(\.number) == [first.number + 1])
    #expect(try await claim(bench).isEmpty)
  }

  @Test(arguments: Engine.forRules)
  func `numbers go on above what the operator has numbered`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    bench.issuer.numbered(bench.now + 7)
    try await bench.service.publishToAll()
    #expect(try await claim(bench).map(\.number) == [bench.now + 8, bench.now + 8])
  }

  @Test func `two servers take different ones`() async throws {
    guard Engine.forRules.contains(.postgres) else { return }
    let bench = try await Bench(.postgres)
    let now = bench.now
    try await bench.store.write { try NoticeTable.wantAll(at: now, in: $0) }
    // The first has not committed when the second takes.
    let first = try await bench.store.write { transaction in
      let first = try NoticeTable.claim(upTo: 1, at: now, until: now + 10, in: transaction)
      try transaction.run("SELECT 1 AS one FROM (SELECT pg_sleep(0.3)) AS slept")
      return first
    }
    let both = try await claim(bench)
    #expect(Set((first + both).map(\.topic.description)) == ["car", "van"] && first.count == 1)
  }
}

/// The sending, with a broker that is played.
@Suite struct NoticePublisherTests {
  private func publish(_ bench: Bench, _ issuer: PlayedNoticeIssuer, until isDone: () async throws -> Bool) async throws
  {
    let publisher = NoticePublisher(
      store: bench.store, issuer: issuer, isAlone: true,
      logger: Logger(label: "test") { [log = bench.log] _ in log.handler() },
      clock: { [bench] in bench.now })
    let task = Task { await publisher.run() }
    let end = ContinuousClock.now + .seconds(60)
    while try await !isDone() {
      if ContinuousClock.now > end {
        Issue.record("it is not done: \(bench.log.text)")
        break
      }
      try await Task.sleep(for: .milliseconds(5))
    }
    task.cancel()
    await task.value
  }

  @Test(arguments: Engine.forRules)
  func `every vehicle is told, and once`(_ engine: Engine) async throws {
    let (bench, issuer) = (try await Bench(engine), PlayedNoticeIssuer())
    try await bench.service.publishToAll()
    try await publish(bench, issuer) { try await bench.untold().isEmpty }
    #expect(issuer.now.kept == ["car": bench.now, "van": bench.now])
    #expect(issuer.now.published == 2)
  }

  @Test(arguments: Engine.forRules)
  func `a notice says what is revoked when it is sent, and of other vehicles nothing`(_ engine: Engine) async throws {
    let (bench, issuer, phone) = (try await Bench(engine), PlayedNoticeIssuer(), TestDevice())
    let (ride, other) = (try await bench.ride(TestDevice()), try await bench.ride(phone, "van", by: "bob"))
    _ = try await bench.access(to: other.id, phone, by: "bob")
    #expect(try await bench.service.revoke(.booking(ride.id)) == 1)
    #expect(try await bench.service.revoke(.device(phone.thumbprint)) == 2)
    try await publish(bench, issuer) { try await bench.untold().isEmpty }
    #expect(issuer.now.revoked == ["car": [.token("token 1")], "van": [.device(phone.thumbprint)]])
    // What has ended needs no revocation.
    bench.wait(4 * hour)
    try await bench.service.publishToAll()
    try await publish(bench, issuer) { try await bench.untold().isEmpty }
    #expect(issuer.now.revoked == ["car": [], "van": []])
  }

  @Test func `a vehicle that the broker does not know keeps no other from its notice`() async throws {
    let (bench, issuer) = (try await Bench(), PlayedNoticeIssuer())
    issuer.state.withLock { $0.unknown = ["car"] }
    try await bench.service.publishToAll()
    try await publish(bench, issuer) { try await bench.untold() == ["car"] }
    // It is tried again.
    issuer.state.withLock { $0.unknown = [] }
    bench.wait(30)
    try await publish(bench, issuer) { try await bench.untold().isEmpty }
  }

  @Test func `a broker that ends connections for a vehicle takes the others' notices`() async throws {
    let (bench, issuer) = (try await Bench(), PlayedNoticeIssuer())
    issuer.state.withLock { $0.hated = ["car"] }
    try await bench.service.publishToAll()
    try await publish(bench, issuer) {
      bench.wait(1)
      // The other is noted before the connection's end is told.
      return try await bench.untold() == ["car"]
        && bench.log.text.contains("error: notices are not published error=hated")
    }
  }

  @Test func `a broker of which a part has missed something gets everything anew`() async throws {
    let (bench, issuer) = (try await Bench(), PlayedNoticeIssuer())
    issuer.state.withLock { ($0.hated, $0.isIncomplete) = (["van"], true) }
    try await bench.service.publishToAll()
    var first: Int64?
    try await publish(bench, issuer) {
      bench.wait(1)
      if first == nil { first = try await bench.untold() == ["van"] ? issuer.now.kept["car"] : nil }
      return first.map { $0 < issuer.now.kept["car"] ?? 0 } ?? false
    }
  }

  @Test func `a notice that came too late is replaced`() async throws {
    let (bench, issuer) = (try await Bench(), PlayedNoticeIssuer())
    try await bench.service.publishToAll()
    try await publish(bench, issuer) {
      guard try await bench.untold().isEmpty else { return false }
      let now = bench.now
      return issuer.state.withLock { state in
        if state.late == nil {
          // Another server's, which was on its way for long.
          state.late = ("car", now - 1)
          return false
        }
        return state.kept["car"] == now + 1
      }
    }
  }

  @Test func `a broker that stops to acknowledge is left, whatever it had acknowledged before`() async throws {
    let (bench, issuer) = (try await Bench(), PlayedNoticeIssuer())
    issuer.state.withLock { $0.isSilent = true }
    try await bench.service.publishToAll()
    try await publish(bench, issuer) {
      bench.wait(1)
      return issuer.now.connections > 1
    }
    #expect(bench.log.text.contains("error: notices are not published error=the broker does not answer"))
  }

  @Test func `a notice that a broker sends unasked is nothing`() async throws {
    let (bench, issuer) = (try await Bench(), PlayedNoticeIssuer())
    issuer.state.withLock { $0.stray = "elsewhere" }
    try await bench.service.publishToAll()
    try await publish(bench, issuer) { try await bench.untold().isEmpty }
    #expect(issuer.now.kept == ["car": bench.now, "van": bench.now] && issuer.now.connections == 1)
  }

  @Test func `a notice that cannot be written is said, and the rest is sent`() async throws {
    let (bench, issuer) = (try await Bench(), PlayedNoticeIssuer())
    issuer.state.withLock { $0.unwritten = ["car"] }
    try await bench.service.publishToAll()
    try await publish(bench, issuer) { try await bench.untold() == ["car"] }
    #expect(bench.log.text.contains("error: a notice is not published"))
  }
}

/// A broker that is played. A vehicle's topic is its name, and a notice is its number.
final class PlayedNoticeIssuer: NoticeIssuer {
  struct State {
    /// The numbers of the notices that it keeps, by their topics.
    var kept: [String: Int64] = [:]
    /// What they revoke.
    var revoked: [String: [Notice.Subject]] = [:]
    var published = 0
    /// Topics that it takes nothing at, that it ends connections for, and for which there is no notice.
    var unknown: Set<String> = []
    var hated: Set<String> = []
    var unwritten: Set<String> = []
    /// What another server publishes.
    var late: (topic: String, number: Int64)?
    var isLateSent = false
    /// Whether it keeps notices, and acknowledges none.
    var isSilent = false
    var connections = 0
    /// Whether it says at a connection's end that it has missed something.
    var isIncomplete = false
    /// A topic at which it sends a notice that nobody has subscribed to.
    var stray: String?
  }
  let state = Mutex(State())
  var now: State { state.withLock { $0 } }

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  func connect() throws -> any BrokerLine {
    state.withLock { $0.connections += 1 }
    return PlayedLine(self)
  }

  func notices(
    for vehicles: [NoticeOrder], now: Int64
  ) async throws -> [Result<SignedNotice, any Error>] {
    let unwritten = state.withLock { state in
      for vehicle in vehicles { state.revoked[vehicle.topic.description] = vehicle.revoked.map(\.subject) }
      return state.unwritten
    }
    return vehicles.map { vehicle in
      unwritten.contains(vehicle.topic.description)
        ? .failure(Failure(description: "damaged"))
        : .success(SignedNotice(topic: vehicle.topic.description, text: "\(vehicle.number)"))
    }
  }

  func number(ofNotice payload: [UInt8]) async throws -> Int64? { Int64(String(decoding: payload, as: UTF8.self)) }
}

final class PlayedLine: BrokerLine {
  var isIncomplete: Bool { issuer.now.isIncomplete }
  private let issuer: PlayedNoticeIssuer
  private let events = Mutex<[BrokerConnection.Event]>([.connected])
  private let topics = Mutex<Set<String>>([])

  init(_ issuer: PlayedNoticeIssuer) {
    self.issuer = issuer
    if let stray = issuer.now.stray { events.withLock { $0.append(Self.notice(stray, 7)) } }
  }

  func subscribe(to topic: String) {
    topics.withLock { _ = $0.insert(topic) }
    if let number = issuer.now.kept[topic] { events.withLock { $0.append(Self.notice(topic, number)) } }
  }

  private static func notice(_ topic: String, _ number: Int64) -> BrokerConnection.Event {
    .message(topic: topic, payload: Array("\(number)".utf8))
  }

  func publish(_ text: String, to topic: String) {
    let event: [BrokerConnection.Event] = issuer.state.withLock { state in
      state.published += 1
      if state.hated.contains(topic) { return [.ended(PlayedNoticeIssuer.Failure(description: "hated"))] }
      if state.unknown.contains(topic) { return [.acknowledged] }
      state.kept[topic] = Int64(text)
      if state.isSilent { return [.message(topic: topic, payload: Array(text.utf8))] }
      return [.acknowledged, .message(topic: topic, payload: Array(text.utf8))]
    }
    events.withLock { $0 += event }
  }

  func wait(for duration: Duration) async throws -> (events: [BrokerConnection.Event], isWoken: Bool) {
    try await Task.sleep(for: .milliseconds(2))
    issuer.state.withLock { state in
      guard let late = state.late, !state.isLateSent else { return }
      state.isLateSent = true
      state.kept[late.topic] = late.number
      events.withLock { $0.append(Self.notice(late.topic, late.number)) }
    }
    let taken = events.withLock { events in
      defer { events = [] }
      return events
    }
    return (taken, true)
  }

  func wake() {}
  func close() {}
}
