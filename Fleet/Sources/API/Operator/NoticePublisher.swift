package import Domain
package import Logging
package import Operator
package import StepProtocol
package import Store
package import Web

/// What is sent to one vehicle.
package struct SignedNotice: Sendable, Equatable {
  package let topic: String
  package let text: String

  package init(topic: String, text: String) { (self.topic, self.text) = (topic, text) }
}

/// What a notice for one vehicle has to say.
package struct NoticeOrder: Sendable, Equatable {
  package let id: UUID
  package let topic: TopicPrefix
  package let number: Int64
  package let revoked: [Notice.Revocation]
  /// The last event that is kept; nil if the server has kept none.
  package let acknowledged: EventPlace?

  package init(
    id: UUID, topic: TopicPrefix, number: Int64, revoked: [Notice.Revocation], acknowledged: EventPlace? = nil
  ) {
    (self.id, self.topic, self.number, self.revoked) = (id, topic, number, revoked)
    self.acknowledged = acknowledged
  }
}

/// Who writes notices, and who has the way to the vehicles' broker. `FolderIssuer` is the real one.
package protocol NoticeIssuer: Sendable {
  /// Begins to connect to the broker.
  func connect() throws -> any BrokerLine

  /// Signs a notice for each vehicle.
  ///
  /// - Returns: for each vehicle its notice, or why there is none.
  func notices(
    for vehicles: [NoticeOrder], now: Int64
  ) async throws -> [Result<SignedNotice, any Error>]

  /// The number of a notice by the operator; nil if the payload is none.
  func number(ofNotice payload: [UInt8]) async throws -> Int64?
}

/// A connection to the vehicles' broker: `BrokerConnection`, or `NodeLines` for several.
package protocol BrokerLine: Sendable {
  /// Whether a part of the broker has missed what was sent, so that another connection has to send everything anew.
  var isIncomplete: Bool { get }
  func subscribe(to topic: String)
  func publish(_ text: String, to topic: String)
  func wait(for duration: Duration) async throws -> (events: [BrokerConnection.Event], isWoken: Bool)
  func wake()
  func close()
}

/// Sends the notices that the database says are wanted, by one connection to the broker, or to each of its nodes. Every
/// server of the database has one.
///
/// Notices wait for nothing but their own vehicle: one that the broker does not take, because it does not know the
/// vehicle, is tried again later, and meanwhile others are sent.
package final class NoticePublisher: Sendable {
  private let store: any Store
  private let issuer: any NoticeIssuer
  private let logger: Logger
  private let clock: Clock
  private let isAlone: Bool

  /// How many notices are on their way to the broker at once.
  private static let window = 64
  /// How long a notice is waited for, seconds; and for how long no other server sends one to its vehicle. The
  /// difference is the time in which a connection that stands still is ended.
  private static let (patience, lease): (Int64, Int64) = (5, 10)
  /// After how many seconds a notice is tried again that the broker has not taken.
  private static let pause: Int64 = 20

  /// - Parameter isAlone: whether there is only one server for the database.
  package init(store: any Store, issuer: any NoticeIssuer, isAlone: Bool, logger: Logger, clock: @escaping Clock) {
    (self.store, self.issuer, self.isAlone, self.logger, self.clock) = (store, issuer, isAlone, logger, clock)
  }

  /// Sends until the task is cancelled.
  package func run() async {
    var window = Self.window
    var reason = ""
    var isIncomplete = false
    if isAlone { try? await store.write { try NoticeTable.giveBackAll(in: $0) } }
    while !Task.isCancelled {
      do {
        let line = try issuer.connect()
        defer { line.close() }
        try await withThrowingTaskGroup(of: Void.self) { group in
          group.addTask { [store] in
            for await announcement in store.announcements() where NoticeTable.isAnnouncement(announcement) {
              line.wake()
            }
          }
          defer { group.cancelAll() }
          var session = Session(line: line, window: window, needsAll: isIncomplete)
          defer { (window, isIncomplete) = (session.window, session.needsAll || line.isIncomplete) }
          while !Task.isCancelled {
            try await step(&session)
            if session.hasSent, !reason.isEmpty {
              logger.notice("notices are published again")
              reason = ""
            }
          }
          try await giveBack(Array(session.sent.values.map(\.claim)), after: 0)
        }
      } catch {
        if Task.isCancelled { return }
        if error is NodeIsBack {
          logger.notice("\(error)")
          continue
        }
        // Each reason once: a broker may be away for hours.
        if "\(error)" != reason { logger.error("notices are not published", metadata: ["error": "\(error)"]) }
        reason = "\(error)"
        try? await Task.sleep(for: .milliseconds(.random(in: 500...1500)))
      }
    }
  }

  /// One connection.
  private struct Session {
    let line: any BrokerLine
    /// Fewer while the broker ends connections for what is sent: RabbitMQ does so for a topic that it does not know.
    var window: Int
    /// Whether the broker may lack any notice, so that all are sent when it is there.
    var needsAll: Bool
    var isConnected = false
    /// By the topic.
    var sent: [String: Sent] = [:]
    /// The vehicles whose topics were subscribed to, by the topic.
    var topics: [String: String] = [:]
    /// How many notices the broker has not acknowledged, and since when it could have acknowledged the next one: Unix
    /// time.
    var unacknowledged = 0
    var heard: Int64 = 0
    var hasSent = false
    var looked: Int64 = 0

    struct Sent {
      let claim: NoticeTable.Claim
      let text: String
      /// Unix time.
      let end: Int64
    }
  }

  private func step(_ session: inout Session) async throws {
    let waits = session.isConnected ? session.sent.isEmpty ? 1000 : 100 : 200
    let (events, isWoken) = try await session.line.wait(for: .milliseconds(waits))
    try await arrived(events, &session)
    guard session.isConnected else { return }
    let now = clock()
    // A clock that was set back must not keep a notice waiting.
    let late = session.sent.filter { !($0.value.end - Self.patience...$0.value.end - 1).contains(now) }
    for (topic, notice) in late {
      session.sent[topic] = nil
      logger.error("a notice is not published", metadata: ["vehicle": "\(notice.claim.vehicle)"])
    }
    try await giveBack(late.map(\.value.claim), after: Self.pause)
    // What is still on its way must not arrive after another server's. And a broker that has stopped to acknowledge
    // leaves no room for others.
    if session.unacknowledged > 0, !(session.heard...session.heard + Self.patience - 1).contains(now) {
      throw Silence()
    }
    // Without an announcement, once a second: something may have to be tried again.
    if isWoken || !events.isEmpty || session.looked != now { try await send(&session, now) }
  }

  /// Why a connection is ended.
  private struct Silence: Error, CustomStringConvertible {
    var description: String { "the broker does not answer" }
  }

  private func send(_ session: inout Session, _ now: Int64) async throws {
    session.looked = now
    let room = session.window - session.unacknowledged
    // Several at once, because each time is a transaction.
    guard room * 4 >= session.window else { return }
    guard try await store.read({ try NoticeTable.isWaiting(at: now, in: $0) }) else { return }
    let claims = try await store.write {
      try NoticeTable.claim(upTo: room, at: now, until: now + Self.lease, in: $0)
    }
    let notices: [Result<SignedNotice, any Error>]
    do {
      // Read after the claims: whoever revokes something later wants another notice.
      let orders = try await store.read { transaction in
        try claims.map { claim in
          NoticeOrder(
            id: UUID(claim.vehicle)!, topic: claim.topic, number: claim.number,
            revoked: try TokenTable.withdrawals(of: claim.vehicle, at: now, in: transaction).map {
              .init($0.subject, until: $0.until)
            }, acknowledged: try EventTable.end(of: claim.vehicle, in: transaction))
        }
      }
      notices = try await issuer.notices(for: orders, now: now)
    } catch {
      try await giveBack(claims, after: Self.pause)
      throw error
    }
    var unwritten: [NoticeTable.Claim] = []
    for (claim, notice) in zip(claims, notices) {
      switch notice {
      case .success(let notice):
        if session.topics.updateValue(claim.vehicle, forKey: notice.topic) == nil {
          session.line.subscribe(to: notice.topic)
        }
        session.line.publish(notice.text, to: notice.topic)
        if session.unacknowledged == 0 { session.heard = now }
        session.unacknowledged += 1
        session.sent[notice.topic] = .init(claim: claim, text: notice.text, end: now + Self.patience)
      case .failure(let error):
        logger.error("a notice is not published", metadata: ["vehicle": "\(claim.vehicle)", "error": "\(error)"])
        unwritten.append(claim)
      }
    }
    try await giveBack(unwritten, after: Self.pause)
  }

  private func arrived(_ events: [BrokerConnection.Event], _ session: inout Session) async throws {
    var told: [NoticeTable.Claim] = []
    /// What the broker keeps now, of what came from elsewhere.
    var others: [String: [UInt8]] = [:]
    for event in events {
      switch event {
      case .connected:
        session.isConnected = true
        if session.needsAll {
          try await store.write { [clock] in try NoticeTable.wantAll(at: clock(), in: $0) }
        }
        session.needsAll = false
      case .acknowledged:
        session.unacknowledged -= 1
        session.heard = clock()
        session.window = min(session.window + 1, Self.window)
      case .message(let topic, let payload):
        if let sent = session.sent[topic], payload.elementsEqual(sent.text.utf8) {
          told.append(sent.claim)
          session.sent[topic] = nil
          others[topic] = nil
        } else {
          others[topic] = payload
        }
      case .ended(let error):
        let claims = session.sent.values.map(\.claim)
        try await note(told, [:], session)
        if error is NodeIsBack {
          try await giveBack(claims, after: 0)
          throw error
        }
        // What one notice of many has ended is tried with fewer at once, so that it keeps no other.
        session.window = max(1, session.window / 8)
        try await giveBack(claims, after: claims.count == 1 ? Self.pause : 1)
        throw error
      }
    }
    try await note(told, others, session)
    if !told.isEmpty {
      session.hasSent = true
      logger.info("notices published", metadata: ["vehicles": "\(told.count)"])
    }
  }

  private func note(
    _ told: [NoticeTable.Claim], _ others: [String: [UInt8]], _ session: Session
  ) async throws {
    var numbers: [String: Int64] = [:]
    for (topic, payload) in others {
      // A broker that is not as it should be may send what nobody has subscribed to.
      guard let vehicle = session.topics[topic], let number = try await issuer.number(ofNotice: payload) else {
        continue
      }
      numbers[vehicle] = number
    }
    if told.isEmpty, numbers.isEmpty { return }
    let now = clock()
    try await store.write { [told, numbers] transaction in
      // In one order, so that two servers do not wait for each other.
      for claim in told.sorted(by: { $0.vehicle < $1.vehicle }) {
        try NoticeTable.noteSent(claim, at: now, in: transaction)
      }
      for (vehicle, number) in numbers.sorted(by: { $0.key < $1.key }) {
        try NoticeTable.note(number, of: vehicle, at: now, in: transaction)
      }
    }
  }

  private func giveBack(_ claims: [NoticeTable.Claim], after seconds: Int64) async throws {
    if claims.isEmpty { return }
    let time = clock() + seconds
    try await store.write { transaction in
      for claim in claims.sorted(by: { $0.vehicle < $1.vehicle }) {
        try NoticeTable.giveBack(claim, until: time, in: transaction)
      }
    }
  }
}
