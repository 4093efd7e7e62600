package import Domain
import FileFormats
import MQTT
package import StepProtocol
package import SystemIO

/// Fetches vehicles' events from their brokers, checks and stores them, and acknowledges them with the next notice.
///
/// A vehicle publishes the events that its last notice does not acknowledge, up to `VehicleEvent.window` events, and
/// starts again at each new notice. A notice that takes effect is itself an event: when that event arrives, all earlier
/// events have arrived.
package final class EventReader {
  package enum Report: Sendable {
    case event(SignedEvent, of: Vehicle)
    case finding(EventChain.Finding, of: Vehicle)
    /// A message on the topic that is not an event of the vehicle.
    case foreign(ProtocolError, of: Vehicle)
    /// The connection to the broker is lost, and will be tried again.
    case disconnected(String)
  }

  /// The number of new events after which a notice acknowledges them.
  private static let acknowledging = VehicleEvent.window / 2
  /// How long to wait for an event after a later one has arrived.
  private static let patience = Duration.seconds(3)
  /// How long to wait for a server that adds to the operator's folder what it has heard.
  private static let othersPatience = Duration.seconds(2)

  private let place: OperatorPlace
  private let opener: EventOpener
  private let report: (Report) throws -> Void
  private let now: () -> Int64
  private var readings: [Reading] = []
  private let loop: EventLoop

  private final class Reading {
    let folder: VehicleFolder
    let vehicle: Vehicle
    let topic: TopicPrefix
    let broker: Broker
    let controller: VerificationKey
    let writer: EventArchive.Writer
    var chain = EventChain()
    var waiting: [SignedEvent] = []
    /// Accepted, but not stored yet.
    var new: [(line: SignedEvent, findings: [EventChain.Finding])] = []
    /// The number of the last notice.
    var asked: Int64?
    var unacknowledged = 0
    var isComplete = false
    /// Whether the vehicle is absent, according to the broker.
    var isAbsent = false
    var overtaken: Registration?
    var connection: MQTTConnection?

    init(_ folder: VehicleFolder, _ place: OperatorPlace) throws {
      self.folder = folder
      let file = try folder.readVehicleFile()
      vehicle = file.vehicle
      topic = try file.present(file.topic, "topic")
      broker = try file.present(file.broker, "[broker]")
      controller = try file.present(file.controller, "[controller]").signing
      let archive = place.archive(of: vehicle.uuid)
      writer = try archive.writer(patience: EventReader.othersPatience)
      try archive.read { line in
        if chain.take(line.event, line.digest) == .waits { _ = chain.accept(line.event, line.digest) }
      }
    }
  }

  /// Opens the vehicles' archives.
  ///
  /// - Parameters:
  ///   - now: Unix time.
  ///   - report: called for each new event once it is stored.
  package init(
    _ place: OperatorPlace, _ vehicles: [VehicleFolder], now: @escaping () -> Int64,
    report: @escaping (Report) throws -> Void
  ) throws {
    self.place = place
    self.now = now
    self.report = report
    opener = try EventOpener(place.eventKeys())
    loop = try EventLoop()
    readings = try vehicles.map { try Reading($0, place) }
  }

  /// Fetches the available events, or goes on until the interruption.
  ///
  /// - Parameters:
  ///   - patience: after this time without progress, gives up the vehicles that have not answered.
  ///   - follows: whether to go on.
  /// - Throws: `EventError.silent`, and the error that ends a connection.
  package func run(patience: Duration, follows: Bool, until interruption: Interruption) throws {
    var idle: Registration?
    func progressed() {
      guard !follows else { return }
      idle?.cancel()
      idle = loop.schedule(at: .now + patience) { [unowned self] in loop.stop() }
      if readings.allSatisfy({ $0.isComplete || $0.isAbsent }) { loop.stop() }
    }
    // One broker serves all vehicles of a fleet, so one connection is enough.
    for (address, group) in Dictionary(grouping: readings, by: { "\($0.broker)" }) {
      var limits = MQTTConnection.Limits()
      limits.holdsBack = true
      let connection = try MQTTConnection(
        broker: place.asOperator(group[0].broker),
        subscriptions: group.flatMap { [$0.topic.events, $0.topic.availability] },
        reconnecting: follows ? .forever : .never, patience: patience, limits: limits)
      for reading in group { reading.connection = connection }
      try loop.watch(connection.descriptor) { [unowned self] in
        while let event = try connection.next(until: .now) {
          switch event {
          case .connected: for reading in group { try ask(reading) }
          case .disconnected(let error):
            guard follows else { throw error }
            try report(.disconnected("\(address): \(error)"))
          case .message(let message): try arrived(message, for: group)
          case .acknowledged: break
          }
        }
        for reading in group { try store(reading) }
        progressed()
      }
    }
    defer { for reading in readings { reading.connection?.close() } }
    var wasInterrupted = false
    try loop.watch(interruption.number) { [unowned self] in
      wasInterrupted = true
      loop.stop()
    }
    progressed()
    try loop.run()
    for reading in readings { try settle(reading) }
    if follows || wasInterrupted { return }
    let silent = readings.filter { !$0.isComplete }.map(\.vehicle.name)
    guard silent.isEmpty else { throw EventError.silent(silent) }
  }

  /// Publishes a notice that acknowledges the stored events; the vehicle then sends the events after those.
  private func ask(_ reading: Reading) throws {
    let notice = try place.notice(for: reading.folder, now: now())
    try notice.checkSize()
    reading.asked = notice.sequence
    reading.unacknowledged = 0
    reading.connection?.publish(topic: notice.topic.notice, payload: Array(notice.text.utf8), retain: true)
  }

  private func arrived(_ message: Message, for group: [Reading]) throws {
    for reading in group {
      if message.topic == reading.topic.availability {
        reading.isAbsent = message.payload == Availability.offline.payload
      } else if message.topic == reading.topic.events {
        do throws(ProtocolError) {
          let line = try opener.event(message.payload, of: reading.vehicle.uuid, verifiedBy: reading.controller)
          add(line, to: reading)
        } catch {
          try report(.foreign(error, of: reading.vehicle))
        }
      }
    }
  }

  private func add(_ line: SignedEvent, to reading: Reading) {
    switch reading.chain.take(line.event, line.digest) {
    case .known: break
    case .waits: if !reading.waiting.contains(line) { reading.waiting.append(line) }
    case .follows(let findings):
      note(line, findings, reading)
      // Later events that have waited for this one may fit now.
      let waiting = reading.waiting.sorted { $0.event.sequence < $1.event.sequence }
      reading.waiting = []
      for line in waiting { add(line, to: reading) }
    }
  }

  private func note(_ line: SignedEvent, _ findings: [EventChain.Finding], _ reading: Reading) {
    reading.new.append((line, findings))
    reading.unacknowledged += 1
    // The vehicle ignores a notice that a later one of another program has overtaken.
    if let notice = line.event.content.notice, let asked = reading.asked, notice >= asked { reading.isComplete = true }
  }

  /// Stores and reports the accepted events, and asks for more.
  private func store(_ reading: Reading) throws {
    try reading.writer.append(reading.new.map(\.line))
    let new = reading.new
    reading.new = []
    for (line, findings) in new {
      for finding in findings { try report(.finding(finding, of: reading.vehicle)) }
      try report(.event(line, of: reading.vehicle))
    }
    if !reading.waiting.isEmpty, reading.overtaken == nil {
      // The missing event may have been lost on the way: the vehicle sends it again.
      try ask(reading)
      reading.overtaken = loop.schedule(at: .now + Self.patience) { [unowned self] in
        reading.overtaken = nil
        try settle(reading)
        try ask(reading)
      }
    } else if reading.waiting.isEmpty {
      reading.overtaken?.cancel()
      reading.overtaken = nil
      if reading.unacknowledged >= Self.acknowledging { try ask(reading) }
    }
  }

  /// Accepts the waiting events, although an earlier event is missing.
  private func settle(_ reading: Reading) throws {
    let waiting = reading.waiting.sorted { $0.event.sequence < $1.event.sequence }
    reading.waiting = []
    for line in waiting {
      switch reading.chain.take(line.event, line.digest) {
      case .known: break
      case .follows(let findings): note(line, findings, reading)
      case .waits: note(line, reading.chain.accept(line.event, line.digest), reading)
      }
    }
    try store(reading)
  }
}
