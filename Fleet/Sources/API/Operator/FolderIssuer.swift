import Access
import Dispatch
package import Domain
package import Logging
package import Operator
package import StepProtocol
import Synchronization
import SystemIO

/// The vehicles' broker.
package enum FleetBroker: Sendable, Equatable {
  /// With a plugin it knows what clients may do with the topics that vehicles usually have, and else from lists alone.
  case mosquitto(hasPlugin: Bool)
  /// The ports of the nodes, if there are several, at the broker's host. Each node keeps its own copy of a notice.
  case rabbitMQ(nodes: [UInt16])
}

/// The vehicles of whose topics a broker has lists.
package enum ListedVehicles: Sendable {
  case none
  /// Those with topics or steps of their own: not `VehicleTopics.areUsual`.
  case unusual
  case all

  func contains(_ vehicle: VehicleRecord) -> Bool {
    switch self {
    case .none: false
    case .unusual: !vehicle.topics.areUsual
    case .all: true
    }
  }
}

/// What the broker's lists have to say.
package struct BrokerLists: Sendable, Equatable {
  /// Vehicles by the names of their folders.
  let known: [String: VehicleTopics]
  /// The names of the folders of those that need not be listed.
  let others: Set<String>
  /// Vehicles that were removed, and that the operator has forgotten.
  let former: Set<UUID>
}

/// The operator's folder. Files are read and written outside the requests' threads.
package final class FolderIssuer: AccessIssuer {
  private let place: FleetOperator
  private let broker: FleetBroker
  private let logger: Logger
  private let clock: @Sendable () -> Int64
  private let files = DispatchQueue(label: "stepfleet.operator")
  private let notices = DispatchQueue(label: "stepfleet.notices")
  private let ledgers = DispatchQueue(label: "stepfleet.ledger")
  private let vehicles = DispatchQueue(label: "stepfleet.vehicles")
  private let certificates = DispatchQueue(label: "stepfleet.certificates")
  private let events = DispatchQueue(label: "stepfleet.events")
  private let state = Mutex(State())

  private struct State {
    /// What was read of the certificates, and when.
    var certificates: (ends: [String: Int64], time: Int64)?
    /// From what the broker's lists were last written; nil if this server has not written them.
    var written: (folders: Set<String>, lists: BrokerLists)?
  }

  package init(
    _ place: FleetOperator, broker: FleetBroker, logger: Logger, clock: @escaping @Sendable () -> Int64
  ) {
    (self.place, self.broker, self.logger, self.clock) = (place, broker, logger, clock)
  }

  private func perform<Result: Sendable>(
    on queue: DispatchQueue? = nil, _ body: @escaping @Sendable (FleetOperator) throws -> Result
  ) async throws -> Result {
    do {
      return try await withCheckedThrowingContinuation { continuation in
        (queue ?? files).async { [place] in continuation.resume(with: Swift.Result { try body(place) }) }
      }
    } catch let refusal as FleetOperator.Refusal {
      throw IssuerError.request(refusal.description)
    } catch let error as any Failure {
      throw IssuerError.failed("\(error)")
    }
  }

  package func keys() async throws -> [VerificationKey] { try await perform { try $0.keys() } }

  package func signers() async throws -> [VerificationKey] { try await perform { try $0.signers() } }

  package func record(in folder: String) async throws -> VehicleRecord? {
    try await perform { try $0.record(folder) }
  }

  package func admit(_ vehicle: Vehicle, _ enrolment: Enrolment, now: Int64) async throws -> Admission {
    try await perform { place in
      let admission = try place.admit(
        .init(
          vehicle: vehicle, topic: enrolment.topic, encryptionKey: enrolment.encryptionKey,
          signingKey: enrolment.statementKey, certificateRequest: enrolment.certificateRequest), now: now)
      return Admission(
        keys: admission.keys, host: admission.host, port: admission.port,
        authority: String(decoding: admission.authority, as: UTF8.self),
        certificate: String(decoding: admission.certificate, as: UTF8.self), end: try admission.end())
    }
  }

  package func folders() async throws -> Set<String> { try await perform(on: vehicles) { try $0.folders() } }

  package func keep(_ new: [String: VehicleRecord], without former: [String: Set<UUID>]) async throws {
    try await perform(on: vehicles) { try $0.keep(new, without: former) }
  }

  /// RabbitMQ has no list: it asks.
  package var listed: ListedVehicles {
    switch broker {
    case .mosquitto(let hasPlugin): hasPlugin ? .unusual : .all
    case .rabbitMQ: .none
    }
  }

  package func write(_ lists: BrokerLists) async throws {
    try await perform(on: vehicles) { [self] place in
      let folders = try place.folders()
      if state.withLock({ $0.written.map { $0.folders == folders && $0.lists == lists } ?? false }) { return }
      try place.writeAccessList(knowing: lists.known, without: lists.others, former: lists.former)
      state.withLock { $0.written = (folders, lists) }
    }
  }

  package func issue(_ grant: Grant, now: Int64) async throws -> IssuedToken {
    try await perform { place in
      let granted = try place.grant(
        grant.vehicle, subject: grant.subject, steps: grant.steps, validity: grant.validity, to: grant.request, now: now
      )
      return IssuedToken(entry: granted.entry, text: granted.file.text)
    }
  }

  package func ledger(now: Int64) async throws -> Ledger { try await perform(on: ledgers) { try $0.ledger(now: now) } }

  package func keep(_ known: Ledger, inPlaceOf read: Ledger, now: Int64) async throws {
    try await perform(on: ledgers) { try $0.keep(known, inPlaceOf: read, now: now) }
  }

  package func lastNumber() async throws -> Int64 { try await perform { try $0.lastNumber() } }

  package func rotateKeys(
    above number: Int64, next key: [UInt8]?, now: Int64
  ) async throws -> (text: String, number: Int64) {
    try await perform { try $0.rotateKeys(above: number, next: key, now: now) }
  }

  package func retireKey(tokens: [Ledger.Entry], now: Int64) async throws {
    try await perform { try $0.retireKey(tokens: tokens, now: now) }
  }

  /// How long what was read of the certificates is told, seconds.
  private static let freshness: Int64 = 600

  /// When the operator's certificates end, by their holders: Unix time. Of all vehicles only the first end is told.
  package func certificateEnds() async throws -> [String: Int64] {
    let now = clock()
    if let known = state.withLock({ $0.certificates }), (0..<Self.freshness).contains(now - known.time) {
      return known.ends
    }
    // A queue of its own: with many vehicles, many files are read.
    let ends = try await withCheckedThrowingContinuation { continuation in
      certificates.async { [place] in continuation.resume(with: Result { try place.certificateEnds() }) }
    }
    state.withLock { $0.certificates = (ends, now) }
    return ends
  }
}

extension FolderIssuer: NoticeIssuer {
  private static let dotted = "its topic has a dot, which RabbitMQ cannot tell from a slash"

  package func connect() throws -> any BrokerLine {
    let ports: [UInt16?]
    switch broker {
    case .mosquitto(hasPlugin: false): return FolderLine(try place.connect())
    // It writes to the disk only now and then.
    case .mosquitto(hasPlugin: true): ports = [nil]
    case .rabbitMQ(let nodes): ports = nodes.isEmpty ? [nil] : nodes
    }
    return NodeLines(ports.map { port in { [place] in FolderLine(try place.connect(port: port)) } }, logger: logger)
  }

  package func notices(
    for vehicles: [NoticeOrder], now: Int64
  ) async throws -> [Result<SignedNotice, any Error>] {
    let isRabbitMQ = if case .rabbitMQ = broker { true } else { false }
    return try await perform(on: notices) { place in
      let writer = try place.noticeWriter(now: now)
      return vehicles.map { vehicle in
        Result {
          // RabbitMQ would end the connection, by which others are told as well.
          if isRabbitMQ, vehicle.topic.description.contains(".") { throw IssuerError.failed(Self.dotted) }
          return SignedNotice(
            topic: vehicle.topic.notice,
            text: try writer.notice(
              for: vehicle.id, number: vehicle.number, revoked: vehicle.revoked, acknowledged: vehicle.acknowledged))
        }
      }
    }
  }

  package func number(ofNotice payload: [UInt8]) async throws -> Int64? {
    try await perform(on: notices) { try $0.number(ofNotice: payload) }
  }
}

extension FolderIssuer: EventIssuer {
  package func listen(_ attempt: Int) throws -> any BrokerLine {
    // A message that is published at one of RabbitMQ's nodes reaches the clients of all.
    guard case .rabbitMQ(let nodes) = broker, !nodes.isEmpty else { return FolderLine(try place.listen()) }
    return FolderLine(try place.listen(port: nodes[attempt % nodes.count]))
  }

  package func canListen(to topic: TopicPrefix) -> Bool {
    if case .rabbitMQ = broker { !topic.description.contains(".") } else { true }
  }

  package func opener() async throws -> EventOpener { try await perform(on: events) { try $0.eventOpener() } }

  package func lastEvent(of vehicle: UUID) async throws -> EventPlace? {
    try await perform(on: events) { try $0.lastEvent(of: vehicle) }
  }

  package func events(
    of vehicle: UUID, verifiedBy key: VerificationKey, after place: EventPlace?, upTo count: Int
  ) async throws -> [SignedEvent] {
    try await perform(on: events) { try $0.events(of: vehicle, verifiedBy: key, after: place, upTo: count) }
  }

  package func keep(_ events: [SignedEvent], of vehicle: UUID, after place: EventPlace?) async throws -> Bool {
    try await perform(on: self.events) { try $0.keep(events, of: vehicle, after: place) }
  }
}

private final class FolderLine: BrokerLine {
  let isIncomplete = false
  private let connection: BrokerConnection
  /// It waits for one thing at a time.
  private let queue = DispatchQueue(label: "stepfleet.broker")

  init(_ connection: BrokerConnection) { self.connection = connection }

  func subscribe(to topic: String) { connection.subscribe(to: topic) }
  func publish(_ text: String, to topic: String) { connection.publish(text, to: topic) }
  func wake() { connection.wake() }
  func close() { connection.close() }

  func wait(for duration: Duration) async throws -> (events: [BrokerConnection.Event], isWoken: Bool) {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { [connection] in
        continuation.resume(with: Result { try connection.wait(until: .now + duration) })
      }
    }
  }
}
