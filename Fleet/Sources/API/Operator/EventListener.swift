package import Domain
package import Logging
package import Operator
package import StepProtocol
package import Store
package import Web

/// Who has the way to the vehicles' broker, and opens what vehicles report. `FolderIssuer` is the real one.
package protocol EventIssuer: Sendable {
  /// Begins to connect to the broker.
  ///
  /// - Parameter attempt: how many connections were tried before. A broker may have several nodes.
  func listen(_ attempt: Int) throws -> any BrokerLine
  /// Opens events with the operator's keys as they are now.
  func opener() async throws -> EventOpener
  /// The last event of a vehicle that the operator's folder has.
  func lastEvent(of vehicle: UUID) async throws -> EventPlace?
  /// What the folder has after that place, the first ones; or the last ones if it is nil.
  func events(
    of vehicle: UUID, verifiedBy key: VerificationKey, after place: EventPlace?, upTo count: Int
  ) async throws -> [SignedEvent]
  /// Lets the folder have events.
  ///
  /// - Returns: false if that place is not its last one any more, or if a command by hand keeps events itself.
  func keep(_ events: [SignedEvent], of vehicle: UUID, after place: EventPlace?) async throws -> Bool
}

/// Hears what the vehicles report, and keeps each event once. Every server of the database does so, by one connection
/// to the broker.
///
/// An event is on the medium as a row before a notice acknowledges it; the operator's folder gets it for commands by
/// hand. A vehicle begins with what is not acknowledged after each notice. So nothing is lost while no server hears:
/// another notice lets the vehicle report again.
///
/// No vehicle can keep others from being heard: what it sends is counted, and what cannot be kept is refused alone.
package final class EventListener: Sendable {
  private let store: any Store
  private let issuer: any EventIssuer
  private let logger: Logger
  private let clock: Clock
  private let patience: Duration

  /// How often vehicles with topics of their own are looked for.
  private static let pause = Duration.seconds(10)
  /// How long after the connection all vehicles are asked: the broker has the subscription by then. And how much later
  /// they are asked again at the earliest, so that a broker that ends connections is not busy with notices as well.
  private static let (settling, asking) = (Duration.seconds(1), Duration.seconds(60))
  /// How many events pass between the operator's folder and the rows at once.
  private static let batch = 1000

  /// - Parameter patience: how long a vehicle has time to repeat events.
  package init(
    store: any Store, issuer: any EventIssuer, logger: Logger, patience: Duration = .seconds(3),
    clock: @escaping Clock
  ) {
    (self.store, self.issuer, self.logger, self.patience, self.clock) = (store, issuer, logger, patience, clock)
  }

  /// Hears until the task is cancelled.
  package func run() async {
    var reason = ""
    var attempt = 0
    // A vehicle that is heard by one connection after the other has one allowance.
    var hearings: [UUID: Hearing] = [:]
    var asked: ContinuousClock.Instant?
    while !Task.isCancelled {
      do {
        let line = try issuer.listen(attempt)
        attempt += 1
        defer { line.close() }
        var session = Session(line: line, opener: try await issuer.opener(), hearings: hearings, asked: asked)
        defer { (hearings, asked) = (session.hearings.mapValues(\.afterConnection), session.asked) }
        while !Task.isCancelled {
          let (events, _) = try await line.wait(for: .milliseconds(200))
          try await arrived(events, &session)
          if session.connected != nil { reason = "" }
        }
      } catch {
        if Task.isCancelled { return }
        // Each reason once: a broker may be away for hours.
        if "\(error)" != reason { logger.error("vehicles are not heard", metadata: ["error": "\(error)"]) }
        reason = "\(error)"
        try? await Task.sleep(for: .milliseconds(.random(in: 500...1500)))
      }
    }
  }

  /// One connection.
  private struct Session {
    let line: any BrokerLine
    var opener: EventOpener
    var hearings: [UUID: Hearing]
    /// When all vehicles were asked last, by this connection or an earlier one.
    var asked: ContinuousClock.Instant?
    var connected: ContinuousClock.Instant?
    /// Whether all vehicles were asked by this connection.
    var hasAsked = false
    /// When the operator's keys were read for an event that none of them opens: Unix time.
    var renewed: Int64 = 0
    /// The topics that were subscribed to, beside those of all vehicles; and when they were last looked for.
    var topics: Set<String> = []
    var looked: ContinuousClock.Instant?
    /// By the topics of events. Nil for a topic that no vehicle has.
    var reporters: [String: Reporter?] = [:]
  }

  /// Who reports on a topic.
  private struct Reporter {
    let vehicle: UUID
    let key: VerificationKey
  }

  /// What is known of a vehicle besides its rows.
  private struct Hearing {
    /// A vehicle sends again what no notice acknowledges: 64 events at a time, of 10,000 that it keeps at the most.
    var messages = Allowance(burst: 40_000, interval: 1)
    var remarks = Allowance(burst: 10, interval: 60)
    /// Whether the operator's folder was looked into for what commands by hand have fetched before.
    var hasLooked = false
    var gap: Gap?

    /// What remains when the connection has ended: the vehicle is asked again.
    var afterConnection: Hearing {
      var other = self
      (other.hasLooked, other.gap) = (false, nil)
      return other
    }
  }

  /// Events wait for one before them. The vehicle is asked to repeat what it has. When it has begun twice with the same
  /// event, it has nothing before that one.
  private struct Gap {
    /// What has come since it was asked.
    var waiting: [SignedEvent]
    /// With what it has begun when it was asked before.
    var first: EventDigest?
    /// Until when it has time; nil while nothing has come, as from a vehicle that is off.
    var end: ContinuousClock.Instant?

    /// Lets an event wait, unless too many do: it will be repeated.
    mutating func add(_ event: SignedEvent) {
      if waiting.count < 2 * VehicleEvent.window, !waiting.contains(event) { waiting.append(event) }
    }

    var ordered: [SignedEvent] { waiting.sorted { $0.event.sequence < $1.event.sequence } }
  }

  private func arrived(_ events: [BrokerConnection.Event], _ session: inout Session) async throws {
    var heard: [UUID: [SignedEvent]] = [:]
    for event in events {
      switch event {
      case .connected:
        session.connected = .now
        session.line.subscribe(to: "vehicles/+/events")
      case .message(let topic, let payload):
        guard let reporter = try await reporter(topic, &session) else { continue }
        if let event = try await opened(payload, of: reporter, &session) {
          heard[reporter.vehicle, default: []].append(event)
        }
      case .acknowledged: break
      case .ended(let error): throw error
      }
    }
    if let connected = session.connected {
      try await followOthers(&session)
      try await askAll(since: connected, &session)
    }
    if !heard.isEmpty { try await take(heard, &session) }
    try await askAgain(&session)
  }

  /// Lets all vehicles report what was not heard.
  private func askAll(since connected: ContinuousClock.Instant, _ session: inout Session) async throws {
    let time = max(connected + Self.settling, session.asked.map { $0 + Self.asking } ?? connected)
    guard !session.hasAsked, time <= .now else { return }
    try await store.write { [clock] in try NoticeTable.wantAll(at: clock(), in: $0) }
    (session.hasAsked, session.asked) = (true, .now)
  }

  /// Subscribes to the topics of vehicles with topics of their own.
  private func followOthers(_ session: inout Session) async throws {
    if let looked = session.looked, looked + Self.pause > .now { return }
    session.looked = .now
    // Somebody may have joined, or have other keys now.
    session.reporters = [:]
    let known = try await store.read { try VehicleTable.topics(.unusual, in: $0) }
    for vehicle in known.values where session.topics.insert(vehicle.topic.events).inserted {
      session.line.subscribe(to: vehicle.topic.events)
    }
  }

  private func reporter(_ topic: String, _ session: inout Session) async throws -> Reporter? {
    if let known = session.reporters[topic] { return known }
    let record = try await store.read { try VehicleTable.record(withEvents: topic, in: $0) }
    let reporter = record.map { Reporter(vehicle: $0.vehicle.uuid, key: $0.signingKey) }
    session.reporters[topic] = reporter
    return reporter
  }

  /// - Returns: nil for what is no event of the vehicle, or more than a vehicle may send.
  private func opened(
    _ payload: [UInt8], of reporter: Reporter, _ session: inout Session
  ) async throws -> SignedEvent? {
    let (vehicle, now) = (reporter.vehicle, clock())
    guard session.hearings[vehicle, default: .init()].messages.take(at: Double(now)) else {
      remark("a vehicle sends more than is heard", of: vehicle, [:], &session)
      return nil
    }
    do throws(ProtocolError) {
      return try session.opener.event(payload, of: vehicle, verifiedBy: reporter.key)
    } catch .unknownKey where session.renewed != now {
      // The operator has changed its keys. Once a second, because anybody can encrypt to some key.
      (session.opener, session.renewed) = (try await issuer.opener(), now)
      return try await opened(payload, of: reporter, &session)
    } catch {
      remark("a message is no event of the vehicle", of: vehicle, ["error": "\(error)"], &session)
      return nil
    }
  }

  /// Logs something about a vehicle, unless much was logged of it already.
  private func remark(
    _ text: Logger.Message, of vehicle: UUID, _ more: Logger.Metadata, _ session: inout Session
  ) {
    guard session.hearings[vehicle, default: .init()].remarks.take(at: Double(clock())) else { return }
    logger.warning(text, metadata: more.merging(["vehicle": "\(vehicle)"]) { own, _ in own })
  }

  private func take(_ heard: [UUID: [SignedEvent]], _ session: inout Session) async throws {
    for vehicle in heard.keys where session.hearings[vehicle]?.hasLooked != true {
      session.hearings[vehicle]?.hasLooked = true
      await takeFromFolder(vehicle, &session)
    }
    // One that waits may follow one that has come.
    let events = heard.reduce(into: heard) { all, vehicle in
      all[vehicle.key]! += session.hearings[vehicle.key]?.gap?.ordered ?? []
    }
    var lacking = try await keep(events, &session)
    var asked: Set<UUID> = []
    for (vehicle, waiting) in lacking where session.hearings[vehicle]?.gap == nil {
      // A command by hand may have fetched and acknowledged what is missing.
      if await takeFromFolder(vehicle, &session) {
        lacking[vehicle] = try await keep([vehicle: waiting], &session)[vehicle]
      }
    }
    for vehicle in heard.keys {
      guard let waiting = lacking[vehicle] else {
        session.hearings[vehicle]?.gap = nil
        continue
      }
      var gap = session.hearings[vehicle]?.gap ?? Gap(waiting: [])
      if gap.end == nil {
        asked.insert(vehicle)
        gap.end = .now + patience
      }
      for event in waiting { gap.add(event) }
      session.hearings[vehicle]?.gap = gap
    }
    try await ask(asked)
    for vehicle in heard.keys { await keepInFolder(vehicle, &session) }
  }

  /// Asks vehicles again that have not told what is missing, and keeps what comes after it if they have it no more.
  private func askAgain(_ session: inout Session) async throws {
    var asked: Set<UUID> = []
    for (vehicle, hearing) in session.hearings {
      guard var gap = hearing.gap, let end = gap.end, end <= .now else { continue }
      if let first = gap.ordered.first?.digest, first == gap.first {
        session.hearings[vehicle]?.gap = nil
        _ = try await keep([vehicle: gap.ordered], areLast: true, &session)
        await keepInFolder(vehicle, &session)
      } else if gap.waiting.isEmpty {
        gap.end = nil
        session.hearings[vehicle]?.gap = gap
      } else {
        gap = Gap(waiting: [], first: gap.ordered.first?.digest, end: .now + patience)
        session.hearings[vehicle]?.gap = gap
        asked.insert(vehicle)
      }
    }
    try await ask(asked)
  }

  private func ask(_ vehicles: Set<UUID>) async throws {
    if vehicles.isEmpty { return }
    try await store.write { [clock] in try NoticeTable.want(vehicles.map(\.description), at: clock(), in: $0) }
  }

  /// Keeps vehicles' events.
  ///
  /// - Parameter areLast: whether they are kept although an event before them is missing.
  /// - Returns: those that wait for others.
  private func keep(
    _ events: [UUID: [SignedEvent]], areLast: Bool = false, _ session: inout Session
  ) async throws -> [UUID: [SignedEvent]] {
    let outcomes: [UUID: [EventTable.Outcome]]
    do {
      outcomes = try await taken(events, areLast)
    } catch StoreError.constraint(let name) where events.count == 1 {
      remark("a vehicle's event cannot be kept", of: events.keys.first!, ["constraint": "\(name)"], &session)
      return [:]
    } catch StoreError.constraint {
      // One vehicle's must not keep others' from being kept.
      var lacking: [UUID: [SignedEvent]] = [:]
      for (vehicle, own) in events {
        lacking[vehicle] = try await keep([vehicle: own], areLast: areLast, &session)[vehicle]
      }
      return lacking
    }
    var lacking: [UUID: [SignedEvent]] = [:]
    for (vehicle, outcomes) in outcomes {
      for (event, outcome) in zip(events[vehicle]!, outcomes) {
        switch outcome {
        case .known: break
        case .waits: lacking[vehicle, default: []].append(event)
        case .kept(let findings):
          for finding in findings {
            remark("a vehicle's events are not whole", of: vehicle, ["finding": "\(finding.text)"], &session)
          }
        }
      }
    }
    return lacking
  }

  private func taken(
    _ events: [UUID: [SignedEvent]], _ areLast: Bool
  ) async throws -> [UUID: [EventTable.Outcome]] {
    let now = clock()
    return try await store.write { transaction in
      // Of two servers that hear the same, one keeps it.
      try transaction.reserve("events")
      var outcomes: [UUID: [EventTable.Outcome]] = [:]
      // In one order, so that two transactions do not wait for each other: notices may be wanted.
      for (vehicle, own) in events.sorted(by: { $0.key.description < $1.key.description }) {
        outcomes[vehicle] = try own.map { try EventTable.take($0, isLast: areLast, at: now, in: transaction) }
      }
      return outcomes
    }
  }

  /// Keeps what commands by hand have fetched while no server heard.
  ///
  /// - Returns: whether there was something.
  @discardableResult private func takeFromFolder(_ vehicle: UUID, _ session: inout Session) async -> Bool {
    let name = vehicle.description
    do {
      let (end, record) = try await store.read {
        (try EventTable.end(of: name, in: $0), try VehicleTable.record(of: name, in: $0))
      }
      guard let key = record?.signingKey, try await issuer.lastEvent(of: vehicle) != end else { return false }
      let events = try await issuer.events(of: vehicle, verifiedBy: key, after: end, upTo: Self.batch)
      guard let first = events.first?.event else { return false }
      if end == nil {
        // What was before the last ones is in the folder.
        let place = EventPlace(first.sequence - 1, first.previous)
        try await store.write { try EventTable.begin(name, after: place, in: $0) }
      }
      _ = try await keep([vehicle: events], areLast: true, &session)
      return true
    } catch {
      remark("the operator's folder cannot be read", of: vehicle, ["error": "\(error)"], &session)
      return false
    }
  }

  /// Lets the operator's folder have what it lacks. That is for commands by hand: nothing depends on it here.
  private func keepInFolder(_ vehicle: UUID, _ session: inout Session) async {
    do {
      while true {
        let last = try await issuer.lastEvent(of: vehicle)
        let events = try await store.read {
          try EventTable.kept(after: last, of: vehicle.description, upTo: Self.batch, in: $0)
        }
        guard !events.isEmpty, try await issuer.keep(events, of: vehicle, after: last), events.count == Self.batch
        else { return }
      }
    } catch {
      remark("the operator's folder lacks events", of: vehicle, ["error": "\(error)"], &session)
    }
  }
}
