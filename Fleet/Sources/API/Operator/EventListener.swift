package import Domain
package import Logging
package import Operator
package import StepProtocol
package import Store
import Synchronization
package import Web

/// Who has the way to the vehicles' broker, and opens what vehicles report. `FolderIssuer` is the real one.
package protocol EventIssuer: Sendable {
  /// Begins to connect to the broker.
  ///
  /// - Parameter attempt: how many connections were tried before. A broker may have several nodes.
  func listen(_ attempt: Int) throws -> any BrokerLine
  /// Whether the broker lets a server subscribe to that vehicle's topics.
  func canListen(to topic: TopicPrefix) -> Bool
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
/// An event whose predecessor is unknown is not kept. Its vehicle is heard alone, where no other vehicle's messages can
/// push its own out, until it has told what was missing, or begins each time with the same event.
///
/// What each vehicle sends is counted. If one vehicle's event cannot be kept, the events of others are.
package final class EventListener: Sendable {
  private let store: any Store
  private let issuer: any EventIssuer
  private let logger: Logger
  private let clock: Clock
  private let patience: Duration
  private let presence: Presence
  private let hearings = Mutex<[UUID: Hearing]>([:])
  /// The vehicles that are heard alone now (nil), or were in vain and are not heard alone before that time.
  private let alone = Mutex<[UUID: ContinuousClock.Instant?]>([:])
  private let uncopied = Mutex<Set<UUID>>([])

  /// How often vehicles with topics of their own are looked for.
  private static let pause = Duration.seconds(10)
  /// How long after a connection vehicles are asked: the broker has the subscription by then.
  private static let settling = Duration.seconds(1)
  /// How long after all vehicles were asked they are asked again at the earliest. A broker that ends connections must
  /// not be kept busy with notices.
  private static let asking = Duration.seconds(60)
  /// How many vehicles are heard alone at once, and how often one is asked.
  private static let (lines, rounds) = (16, 20)
  /// How often a vehicle has to begin with the same event.
  private static let proofs = 3
  /// How many events pass between the operator's folder and the rows at once.
  private static let batch = 1000
  /// How many events are kept in one transaction: others wait for it.
  private static let chunk = 128

  /// - Parameter patience: how long a vehicle that is heard alone has time to repeat events.
  package init(
    store: any Store, issuer: any EventIssuer, presence: Presence = Presence(), logger: Logger,
    patience: Duration = .seconds(3), clock: @escaping Clock
  ) {
    (self.store, self.issuer, self.presence, self.logger) = (store, issuer, presence, logger)
    (self.patience, self.clock) = (patience, clock)
  }

  /// Who reports on a topic.
  private struct Reporter {
    let vehicle: UUID
    let topic: String
    let key: VerificationKey
  }

  /// What a vehicle may do.
  private struct Hearing {
    /// A vehicle keeps 10,000 events at the most, and sends again what no notice acknowledges.
    var messages = Allowance(burst: 40_000, interval: 10)
    var remarks = Allowance(burst: 10, interval: 60)
    /// How many messages were more than it may send.
    var refused = 0
  }

  /// Where new events lead to.
  private struct Queues {
    /// Vehicles to be heard alone.
    let lacking: AsyncStream<Reporter>.Continuation
    /// Vehicles of which the operator's folder lacks events.
    let uncopied: AsyncStream<UUID>.Continuation
  }

  /// One connection.
  private struct Session {
    let line: any BrokerLine
    let queues: Queues
    var opener: EventOpener
    /// When the operator's keys were read for an event that none of them opens: Unix time.
    var renewed: Int64 = 0
    var connected: ContinuousClock.Instant?
    /// Whether all vehicles were asked by this connection.
    var hasAsked = false
    /// The topics that were subscribed to, beside those of all vehicles; and when they were last looked for.
    var topics: Set<String> = []
    var looked: ContinuousClock.Instant?
    /// By the topics of events. Nil for a topic that no vehicle has.
    var reporters: [String: Reporter?] = [:]
    /// The vehicles of which the operator's folder was looked into for what commands by hand have fetched.
    var known: Set<UUID> = []
  }

  /// Hears until the task is cancelled.
  package func run() async {
    let (lacking, uncopied) = (AsyncStream.makeStream(of: Reporter.self), AsyncStream.makeStream(of: UUID.self))
    let queues = Queues(lacking: lacking.continuation, uncopied: uncopied.continuation)
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.hearAll(queues) }
      group.addTask { await self.hear(eachOf: lacking.stream, queues) }
      group.addTask {
        for await vehicle in uncopied.stream {
          if Task.isCancelled { return }
          await self.copy(vehicle)
        }
      }
    }
  }

  // MARK: - All vehicles

  private func hearAll(_ queues: Queues) async {
    var reason = ""
    var attempt = 0
    /// When all vehicles were asked last.
    var asked: ContinuousClock.Instant?
    while !Task.isCancelled {
      do {
        let line = try issuer.listen(attempt)
        attempt += 1
        defer { line.close() }
        var session = Session(line: line, queues: queues, opener: try await issuer.opener())
        while !Task.isCancelled {
          let (events, _) = try await line.wait(for: .milliseconds(200))
          try await arrived(events, &session)
          try await askAll(&session, &asked)
          // A connection that has lasted for so long is a good one.
          if session.hasAsked, !reason.isEmpty {
            logger.notice("vehicles are heard again")
            reason = ""
          }
        }
      } catch {
        if Task.isCancelled { return }
        // Each reason once: a broker may be away for hours.
        if "\(error)" != reason { logger.error("vehicles are not heard", metadata: ["error": "\(error)"]) }
        // The database may be away, and not the broker.
        if !(error is StoreError) { presence.end(at: clock()) }
        reason = "\(error)"
        try? await Task.sleep(for: .milliseconds(.random(in: 500...1500)))
      }
    }
  }

  private func arrived(_ events: [BrokerConnection.Event], _ session: inout Session) async throws {
    var heard: [UUID: [SignedEvent]] = [:]
    var reporters: [UUID: Reporter] = [:]
    for event in events {
      switch event {
      case .connected:
        session.connected = .now
        presence.begin(at: clock())
        session.line.subscribe(to: "vehicles/+/events")
        session.line.subscribe(to: "vehicles/+/availability")
      case .message(let topic, let payload) where topic.hasSuffix(Self.availability):
        try await noteAvailability(topic, payload, &session)
      case .message(let topic, let payload):
        guard let reporter = try await reporter(topic, &session) else { continue }
        if let event = try await opened(payload, of: reporter, &session) {
          heard[reporter.vehicle, default: []].append(event)
          reporters[reporter.vehicle] = reporter
        }
      case .acknowledged: break
      case .ended(let error): throw error
      }
    }
    if session.connected != nil { try await followOthers(&session) }
    if heard.isEmpty { return }
    for (vehicle, reporter) in reporters where !session.known.contains(vehicle) {
      _ = await takeFromFolder(reporter, &session)
    }
    for (vehicle, events) in try await keep(heard, &session) {
      let isAlone = alone.withLock { alone in alone[vehicle].map { $0.map { $0 > .now } ?? true } ?? false }
      if isAlone { continue }
      // What is missing has come after it, or a command by hand has fetched and acknowledged it.
      _ = await takeFromFolder(reporters[vehicle]!, &session)
      if try await keep([vehicle: events], &session).isEmpty { continue }
      alone.withLock { $0[vehicle] = .some(nil) }
      session.queues.lacking.yield(reporters[vehicle]!)
    }
  }

  private static let availability = "/availability"

  private func noteAvailability(_ topic: String, _ payload: [UInt8], _ session: inout Session) async throws {
    guard let availability = Availability(rawValue: String(decoding: payload, as: UTF8.self)) else { return }
    let prefix = topic.dropLast(Self.availability.count)
    let levels = prefix.split(separator: "/", omittingEmptySubsequences: false)
    // The topic of most names the vehicle.
    var vehicle = levels.count == 2 && levels[0] == "vehicles" ? UUID(String(levels[1])) : nil
    if vehicle == nil { vehicle = try await reporter(prefix + "/events", &session)?.vehicle }
    guard let vehicle else { return }
    presence.note(vehicle, isOnline: availability == .online, at: clock())
  }

  /// Lets all vehicles report what was not heard.
  private func askAll(_ session: inout Session, _ asked: inout ContinuousClock.Instant?) async throws {
    guard !session.hasAsked, let connected = session.connected else { return }
    guard max(connected + Self.settling, asked.map { $0 + Self.asking } ?? connected) <= .now else { return }
    try await store.write { [clock] in try NoticeTable.wantAll(at: clock(), in: $0) }
    (session.hasAsked, asked) = (true, .now)
  }

  /// Subscribes to the topics of vehicles with topics of their own.
  private func followOthers(_ session: inout Session) async throws {
    if let looked = session.looked, looked + Self.pause > .now { return }
    session.looked = .now
    // Somebody may have joined, or have other keys now.
    session.reporters = [:]
    let known = try await store.read { try VehicleTable.topics(.unusual, in: $0) }
    for (vehicle, topic) in known.values.map({ ($0.vehicle, $0.topic) }) {
      let levels = topic.description.split(separator: "/", omittingEmptySubsequences: false)
      // Only the vehicle's steps have names of their own.
      if levels.count == 2, levels[0] == "vehicles" { continue }
      guard session.topics.insert(topic.events).inserted else { continue }
      if issuer.canListen(to: topic) {
        session.line.subscribe(to: topic.events)
        session.line.subscribe(to: topic.availability)
      } else {
        remark("a vehicle is not heard: the broker cannot have its topic", of: vehicle)
      }
    }
  }

  private func reporter(_ topic: String, _ session: inout Session) async throws -> Reporter? {
    if let known = session.reporters[topic] { return known }
    let record = try await store.read { transaction in
      // A row that is damaged must not keep others from being heard.
      do { return try VehicleTable.record(withEvents: topic, in: transaction) } catch let error as StoreError {
        throw error
      } catch {
        return nil
      }
    }
    let reporter = record.map { Reporter(vehicle: $0.vehicle.uuid, topic: topic, key: $0.signingKey) }
    session.reporters[topic] = reporter
    return reporter
  }

  // MARK: - A vehicle alone

  private func hear(eachOf reporters: AsyncStream<Reporter>, _ queues: Queues) async {
    await withTaskGroup(of: Void.self) { group in
      var count = 0
      for await reporter in reporters {
        if Task.isCancelled { return }
        if count == Self.lines {
          await group.next()
          count -= 1
        }
        count += 1
        group.addTask {
          var isWhole = false
          do { isWhole = try await self.hear(alone: reporter, queues) } catch {
            if !Task.isCancelled { self.remark("a vehicle is not heard", of: reporter.vehicle, ["error": "\(error)"]) }
          }
          // Others have their turn first.
          self.alone.withLock { [isWhole] in
            $0[reporter.vehicle] = isWhole ? nil : .some(ContinuousClock.now + Self.asking)
          }
        }
      }
    }
  }

  /// Lets a vehicle repeat what it has, until nothing is missing. If it begins with the same event each time, it has
  /// nothing before that one.
  ///
  /// - Returns: whether nothing is missing, or what is missing was noted.
  private func hear(alone reporter: Reporter, _ queues: Queues) async throws -> Bool {
    let (vehicle, line) = (reporter.vehicle, try issuer.listen(.random(in: 0..<Self.lines)))
    defer { line.close() }
    var session = Session(line: line, queues: queues, opener: try await issuer.opener())
    var end = ContinuousClock.now + .seconds(10)
    while session.connected == nil {
      guard .now < end else { return false }
      _ = try await heard(of: reporter, &session)
    }
    line.subscribe(to: reporter.topic)
    try await Task.sleep(for: Self.settling)
    func refused() -> Int { hearings.withLock { $0[vehicle]?.refused ?? 0 } }
    let before = refused()
    var (first, proofs): (EventDigest?, Int) = (nil, 0)
    var isAsked = false
    for _ in 0..<Self.rounds {
      if !isAsked {
        try await store.write { [clock] in try NoticeTable.wantAgain(vehicle.description, at: clock(), in: $0) }
      }
      isAsked = true
      var waiting: [SignedEvent] = []
      end = .now + patience
      while .now < end {
        let events = try await heard(of: reporter, &session)
        if events.isEmpty { continue }
        waiting = try await lacking(events + waiting, &session)
        if waiting.isEmpty { return true }
      }
      // The notice may be on its way. A vehicle that is off is heard alone again when it tells something again.
      guard let begin = waiting.first else { continue }
      // What was refused may be what lacks.
      guard refused() == before else { return false }
      isAsked = false
      (first, proofs) = (begin.digest, begin.digest == first ? proofs + 1 : 1)
      if proofs == Self.proofs {
        _ = try await keep([vehicle: [begin]], areLast: true, &session)
        if try await lacking(waiting, &session).isEmpty { return true }
        (first, proofs) = (nil, 0)
      }
    }
    return false
  }

  private func heard(of reporter: Reporter, _ session: inout Session) async throws -> [SignedEvent] {
    try Task.checkCancellation()
    var heard: [SignedEvent] = []
    for event in try await session.line.wait(for: .milliseconds(50)).events {
      switch event {
      case .connected: session.connected = .now
      case .message(reporter.topic, let payload):
        if let event = try await opened(payload, of: reporter, &session) { heard.append(event) }
      case .message, .acknowledged: break
      case .ended(let error): throw error
      }
    }
    return heard
  }

  /// Keeps a vehicle's events.
  ///
  /// - Returns: those that still wait for others, the first ones, in their order.
  private func lacking(_ events: [SignedEvent], _ session: inout Session) async throws -> [SignedEvent] {
    guard let vehicle = events.first?.event.vehicle else { return [] }
    var waiting: [SignedEvent] = []
    let ordered = events.sorted { $0.event.sequence < $1.event.sequence }
    for event in try await keep([vehicle: ordered], &session)[vehicle] ?? [] where waiting.last != event {
      waiting.append(event)
    }
    return Array(waiting.prefix(2 * VehicleEvent.window))
  }

  // MARK: - Events

  /// - Returns: nil for what is no event of the vehicle, or more than a vehicle may send.
  private func opened(
    _ payload: [UInt8], of reporter: Reporter, _ session: inout Session
  ) async throws -> SignedEvent? {
    let (vehicle, now) = (reporter.vehicle, clock())
    let isAllowed = hearings.withLock { hearings in
      let isAllowed = hearings[vehicle, default: .init()].messages.take(at: Double(now))
      if !isAllowed { hearings[vehicle]?.refused += 1 }
      return isAllowed
    }
    guard isAllowed else {
      remark("a vehicle sends more than is heard", of: vehicle)
      return nil
    }
    do throws(ProtocolError) {
      return try session.opener.event(payload, of: vehicle, verifiedBy: reporter.key)
    } catch .unknownKey where session.renewed != now {
      // The operator has changed its keys. Once a second, because anybody can encrypt to some key.
      (session.opener, session.renewed) = (try await issuer.opener(), now)
      return try await opened(payload, of: reporter, &session)
    } catch {
      remark("a message is no event of the vehicle", of: vehicle, ["error": "\(error)"])
      return nil
    }
  }

  /// Logs something about a vehicle, unless much was logged of it already.
  private func remark(_ text: Logger.Message, of vehicle: UUID, _ more: Logger.Metadata = [:]) {
    let now = Double(clock())
    guard hearings.withLock({ $0[vehicle, default: .init()].remarks.take(at: now) }) else { return }
    logger.warning(text, metadata: more.merging(["vehicle": "\(vehicle)"]) { own, _ in own })
  }

  /// Keeps vehicles' events.
  ///
  /// - Parameter areLast: whether they are kept although an event before them is missing.
  /// - Returns: those that wait for others.
  private func keep(
    _ events: [UUID: [SignedEvent]], areLast: Bool = false, _ session: inout Session
  ) async throws -> [UUID: [SignedEvent]] {
    var lacking: [UUID: [SignedEvent]] = [:]
    var chunk: [UUID: [SignedEvent]] = [:]
    var count = 0
    func keepChunk() async throws {
      lacking.merge(try await keep(chunk: chunk, areLast: areLast, session.queues)) { $0 + $1 }
      (chunk, count) = ([:], 0)
    }
    for (vehicle, own) in events {
      for event in own {
        chunk[vehicle, default: []].append(event)
        count += 1
        if count == Self.chunk { try await keepChunk() }
      }
    }
    if count > 0 { try await keepChunk() }
    return lacking
  }

  private func keep(
    chunk events: [UUID: [SignedEvent]], areLast: Bool, after place: EventPlace? = nil, _ queues: Queues
  ) async throws -> [UUID: [SignedEvent]] {
    let outcomes: [UUID: [EventTable.Outcome]]
    do {
      outcomes = try await taken(events, areLast, after: place)
    } catch StoreError.constraint(let name) where events.count == 1 {
      remark("a vehicle's event cannot be kept", of: events.keys.first!, ["constraint": "\(name)"])
      return [:]
    } catch StoreError.constraint {
      // One vehicle's must not keep others' from being kept.
      var lacking: [UUID: [SignedEvent]] = [:]
      for (vehicle, own) in events {
        lacking[vehicle] = try await keep(chunk: [vehicle: own], areLast: areLast, queues)[vehicle]
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
            remark("a vehicle's events are not whole", of: vehicle, ["finding": "\(finding.text)"])
          }
        }
      }
      // Another server may have kept them: its folder is not this one's.
      if uncopied.withLock({ $0.insert(vehicle).inserted }) { queues.uncopied.yield(vehicle) }
    }
    return lacking
  }

  /// - Parameter place: what the events of a vehicle follow that has none yet.
  private func taken(
    _ events: [UUID: [SignedEvent]], _ areLast: Bool, after place: EventPlace?
  ) async throws -> [UUID: [EventTable.Outcome]] {
    let now = clock()
    return try await store.write { transaction in
      // Of two servers that hear the same, one keeps it.
      try transaction.reserve("events")
      var outcomes: [UUID: [EventTable.Outcome]] = [:]
      // In one order, so that two transactions do not wait for each other: notices may be wanted.
      let sorted = events.sorted { $0.key.description < $1.key.description }
      for (_, own) in sorted { try EventTable.place(own, at: now, in: transaction) }
      for (vehicle, own) in sorted {
        if let place { try EventTable.begin(vehicle.description, after: place, in: transaction) }
        outcomes[vehicle] = try own.map { try EventTable.take($0, isLast: areLast, at: now, in: transaction) }
      }
      return outcomes
    }
  }

  // MARK: - The operator's folder

  /// Keeps what commands by hand have fetched while no server heard.
  ///
  /// - Returns: whether there was something.
  private func takeFromFolder(_ reporter: Reporter, _ session: inout Session) async -> Bool {
    let (vehicle, name) = (reporter.vehicle, reporter.vehicle.description)
    var hasTaken = false
    do {
      var turn: EventPlace?
      while let last = try await issuer.lastEvent(of: vehicle) {
        // Usually the folder has what rows have, or less.
        let (end, isKnown) = try await store.read {
          (try EventTable.end(of: name, in: $0), try EventTable.has(last, of: name, in: $0))
        }
        // Each turn has to lead further.
        if isKnown || last == end || hasTaken && end == turn { break }
        turn = end
        let events = try await issuer.events(of: vehicle, verifiedBy: reporter.key, after: end, upTo: Self.batch)
        guard let first = events.first?.event else { break }
        // What was before the last ones is in the folder.
        let begin = end == nil ? EventPlace(first.sequence - 1, first.previous) : nil
        for index in stride(from: 0, to: events.count, by: Self.chunk) {
          let chunk = Array(events[index..<min(index + Self.chunk, events.count)])
          _ = try await keep(
            chunk: [vehicle: chunk], areLast: true, after: index == 0 ? begin : nil, session.queues)
        }
        hasTaken = true
      }
      session.known.insert(vehicle)
    } catch {
      if Task.isCancelled { return hasTaken }
      remark("the operator's folder cannot be read", of: vehicle, ["error": "\(error)"])
    }
    return hasTaken
  }

  /// Lets the operator's folder have what it lacks. Commands by hand and changes of keys read it there.
  private func copy(_ vehicle: UUID) async {
    uncopied.withLock { _ = $0.remove(vehicle) }
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
      if Task.isCancelled { return }
      remark("the operator's folder lacks events", of: vehicle, ["error": "\(error)"])
    }
  }
}
