package import Domain
package import Logging
package import Operator
package import StepProtocol
package import Store
package import Web

/// Who has the way to the vehicles' broker, and opens what vehicles report. `FolderIssuer` is the real one.
package protocol EventIssuer: Sendable {
  /// Begins to connect to the broker.
  func listen() throws -> any NoticeLine
  func opener() async throws -> EventOpener
  /// The last event of a vehicle that the operator's folder has.
  func lastEvent(of vehicle: UUID) async throws -> EventPlace?
  /// Lets the folder have events that follow that one.
  ///
  /// - Returns: false while a command by hand keeps them itself.
  func keep(_ events: [SignedEvent], of vehicle: UUID) async throws -> Bool
}

/// Hears what the vehicles report, and keeps each event once. Every server of the database does so, by one connection
/// to the broker.
///
/// An event is on the medium as a row before a notice acknowledges it; the operator's folder gets it for commands by
/// hand. A vehicle reports again what is not acknowledged, after each notice. So nothing is lost while no server hears.
package final class EventListener: Sendable {
  private let store: any Store
  private let issuer: any EventIssuer
  private let logger: Logger
  private let clock: Clock

  /// How many events of a vehicle are kept before a notice acknowledges them. The notice is an event itself, so fewer
  /// would have no end.
  private static let acknowledging = VehicleEvent.window / 2
  /// How long an event waits for the one before it.
  private static let patience = Duration.seconds(3)
  /// How often vehicles with topics of their own are looked for.
  private static let pause = Duration.seconds(10)

  package init(store: any Store, issuer: any EventIssuer, logger: Logger, clock: @escaping Clock) {
    (self.store, self.issuer, self.logger, self.clock) = (store, issuer, logger, clock)
  }

  /// Hears until the task is cancelled.
  package func run() async {
    var reason = ""
    while !Task.isCancelled {
      do {
        let line = try issuer.listen()
        defer { line.close() }
        var session = Session(line: line, opener: try await issuer.opener())
        while !Task.isCancelled {
          let (events, _) = try await line.wait(for: .milliseconds(200))
          try await arrived(events, &session)
          if session.isConnected { reason = "" }
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
    let line: any NoticeLine
    let opener: EventOpener
    var isConnected = false
    /// The topics that were subscribed to, beside those of all vehicles; and when they were last looked for.
    var topics: Set<String> = []
    var looked: ContinuousClock.Instant?
    /// By the topics of events. Nil for a topic that no vehicle has.
    var reporters: [String: Reporter?] = [:]
    /// By the vehicles.
    var waiting: [UUID: Waiting] = [:]
    var unacknowledged: [UUID: Int] = [:]
  }

  /// Who reports on a topic.
  private struct Reporter {
    let vehicle: UUID
    let key: VerificationKey
  }

  /// Events whose predecessor was not heard.
  private struct Waiting {
    var events: [SignedEvent]
    let end: ContinuousClock.Instant
  }

  private func arrived(_ events: [NoticeConnection.Event], _ session: inout Session) async throws {
    var heard: [SignedEvent] = []
    for event in events {
      switch event {
      case .connected:
        session.isConnected = true
        session.line.subscribe(to: "vehicles/+/events")
        // What was reported meanwhile is reported again.
        try await store.write { [clock] in try NoticeTable.wantAll(at: clock(), in: $0) }
      case .notice(let topic, let payload):
        guard let reporter = try await reporter(topic, &session) else { continue }
        do {
          heard.append(try session.opener.event(payload, of: reporter.vehicle, verifiedBy: reporter.key))
        } catch {
          let metadata: Logger.Metadata = ["vehicle": "\(reporter.vehicle)", "error": "\(error)"]
          logger.warning("a message is no event of the vehicle", metadata: metadata)
        }
      case .acknowledged: break
      case .ended(let error): throw error
      }
    }
    if session.isConnected { try await followOthers(&session) }
    try await take(heard, &session)
    try await settle(&session)
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

  private func take(_ heard: [SignedEvent], isLast: Bool = false, _ session: inout Session) async throws {
    if heard.isEmpty { return }
    // One that waits may follow one that has come.
    let vehicles = Set(heard.map(\.event.vehicle))
    let waiting = vehicles.flatMap { session.waiting[$0]?.events ?? [] }
    let events = heard + waiting.sorted { $0.event.sequence < $1.event.sequence }
    for vehicle in vehicles { try await begin(vehicle) }
    let now = clock()
    let outcomes = try await store.write { transaction -> [EventTable.Outcome] in
      // Of two servers that hear the same, one keeps it.
      try transaction.reserve("events")
      return try events.map { try EventTable.take($0, isLast: isLast, at: now, in: transaction) }
    }
    var lacking: [UUID: [SignedEvent]] = [:]
    for (signed, outcome) in zip(events, outcomes) {
      let vehicle = signed.event.vehicle
      switch outcome {
      case .known: break
      case .waits: if lacking[vehicle]?.contains(signed) != true { lacking[vehicle, default: []].append(signed) }
      case .kept(let findings):
        session.unacknowledged[vehicle, default: 0] += 1
        for finding in findings {
          let metadata: Logger.Metadata = ["vehicle": "\(vehicle)", "finding": "\(finding.text)"]
          logger.warning("a vehicle's events are not whole", metadata: metadata)
        }
      }
    }
    var asked: Set<UUID> = []
    for vehicle in vehicles {
      if let events = lacking[vehicle] {
        // The one before may have been lost on the way: the vehicle reports again.
        if session.waiting[vehicle] == nil { asked.insert(vehicle) }
        session.waiting[vehicle] = Waiting(events: events, end: session.waiting[vehicle]?.end ?? .now + Self.patience)
      } else {
        session.waiting[vehicle] = nil
      }
      if session.unacknowledged[vehicle, default: 0] >= Self.acknowledging { asked.insert(vehicle) }
    }
    for vehicle in asked { session.unacknowledged[vehicle] = 0 }
    if !asked.isEmpty {
      try await store.write { [asked] in try NoticeTable.want(asked.map(\.description), at: now, in: $0) }
    }
    for vehicle in vehicles { await keepInFolder(vehicle) }
  }

  /// Keeps what has waited for too long.
  private func settle(_ session: inout Session) async throws {
    for (vehicle, waiting) in session.waiting where waiting.end <= .now {
      session.waiting[vehicle] = nil
      let events = waiting.events.sorted { $0.event.sequence < $1.event.sequence }
      try await take(events, isLast: true, &session)
    }
  }

  /// Lets the first event follow what commands by hand have fetched before.
  private func begin(_ vehicle: UUID) async throws {
    let name = vehicle.description
    guard try await store.read({ try EventTable.end(of: name, in: $0) }) == nil,
      let last = try await issuer.lastEvent(of: vehicle)
    else { return }
    try await store.write { transaction in
      guard try EventTable.end(of: name, in: transaction) == nil else { return }
      try EventTable.setEnd(last, of: name, in: transaction)
    }
  }

  /// How many events the folder gets at once.
  private static let batch = 1000

  /// Lets the operator's folder have what it lacks. That is for commands by hand: nothing depends on it here.
  private func keepInFolder(_ vehicle: UUID) async {
    do {
      while true {
        let last = try await issuer.lastEvent(of: vehicle)
        let events = try await store.read {
          try EventTable.kept(after: last, of: vehicle.description, upTo: Self.batch, in: $0)
        }
        guard !events.isEmpty, try await issuer.keep(events, of: vehicle), events.count == Self.batch else { return }
      }
    } catch {
      let metadata: Logger.Metadata = ["vehicle": "\(vehicle)", "error": "\(error)"]
      logger.error("the operator's folder lacks events", metadata: metadata)
    }
  }
}
