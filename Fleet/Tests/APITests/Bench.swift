import Access
import Booking
import Domain
import Encoding
import FleetTestSupport
import Geography
import HTTPTypes
import Hummingbird
import Logging
import Login
import NIOCore
import NIOEmbedded
import Operator
import StepProtocol
import Store
import Synchronization
import Web

@testable import API

let hour: Int64 = 3600

/// A server without a network: a clock that is set, an operator that is played, a database of its own. It has the
/// vehicles "car" and "van" and the accounts ada and bob.
final class Bench: Sendable {
  let service: FleetService
  let issuer = PlayedIssuer()
  let log = Log()
  private let database: TestDatabase
  private let time = PlayedClock()

  init(_ engine: Engine = .memory, limit: Int64 = 20) async throws {
    database = try engine.make()
    try await database.store.migrate(LoginStore.migrations + FleetTables.migrations)
    try await database.store.write { transaction in
      for account in ["ada", "bob"] {
        try transaction.run(
          """
          INSERT INTO account (id, email, role, state, terms, terms_accepted, created)
          VALUES (?, ?, 'rider', 'active', '1', 0, 0)
          """, [.text(account), .text("\(account)@example.org")])
      }
    }
    service = FleetService(
      store: database.store, issuer: issuer, logger: Logger(label: "test") { [log] _ in log.handler() }, limit: limit,
      clock: { [time] in time.now })
    for name in ["car", "van"] {
      issuer.have(name)
      _ = try await service.addVehicle(name)
    }
    // They have had their first notices.
    try await store.write { _ = try $0.run("DELETE FROM notice") }
  }

  final class PlayedClock: Sendable {
    private let seconds = Mutex<Int64>(1_800_000_000)
    var now: Int64 { seconds.withLock { $0 } }
    func wait(_ seconds: Int64) { self.seconds.withLock { $0 += seconds } }
  }

  var now: Int64 { time.now }
  func wait(_ seconds: Int64) { time.wait(seconds) }
  var store: any Store { database.store }

  func id(of name: String) async throws -> String { try await service.named(name).vehicle.id }

  /// An interval in hours from now.
  func interval(_ begin: Double, _ end: Double) -> Interval {
    Interval(now + Int64(begin * 3600), now + Int64(end * 3600))
  }

  @discardableResult
  func book(
    _ name: String = "car", _ begin: Double = 1, _ end: Double = 3, by account: String = "ada", steps: [StepID]? = nil,
    repeatable: Repeatable? = nil
  ) async throws -> BookingForm {
    try await service.book(
      BookingRequest(vehicle: try await id(of: name), interval(begin, end), steps: steps),
      for: Caller(account: account, device: "none"), repeatable: repeatable)
  }

  /// A booking that has begun, with access for the device.
  func ride(_ device: TestDevice, _ name: String = "car", by account: String = "ada") async throws -> BookingForm {
    let booking = try await book(name, 0, 3, by: account)
    _ = try await access(to: booking.id, device, by: account)
    return booking
  }

  func access(to booking: String, _ device: TestDevice, by account: String = "ada") async throws -> String {
    try await service.access(to: booking, for: device.caller(account), device.request(at: now))
  }

  func state(of booking: String) async throws -> BookingState {
    try await service.booking(booking, of: nil).booking.state(at: now)
  }

  /// What happened to a vehicle, with the times.
  func events(of name: String) async throws -> [String] {
    let id = try await id(of: name)
    return try await store.read { transaction in
      try transaction.run("SELECT event FROM vehicle_event WHERE vehicle = ? ORDER BY time, event", [.text(id)]).map {
        $0.text("event")
      }
    }
  }

  /// The names of the vehicles that wait for a notice, sorted.
  func untold() async throws -> [String] {
    try await store.read { transaction in
      try transaction.run(
        "SELECT name FROM notice JOIN vehicle ON vehicle.id = notice.vehicle WHERE since IS NOT NULL ORDER BY name"
      ).map { $0.text("name") }
    }
  }

  /// What notices say is revoked.
  func revoked() async throws -> [Notice.Subject] {
    let now = now
    return try await store.read { try TokenTable.withdrawals(of: nil, at: now, in: $0).map(\.subject) }
  }

  /// Which access of bookings counts, in the order of the tokens' ids.
  func standings() async throws -> [String] {
    try await store.read { try $0.run("SELECT standing FROM access ORDER BY jti").map { $0.text("standing") } }
  }

  /// The broker has all notices.
  func tell() async throws { try await run("UPDATE notice SET since = NULL") }

  func run(_ sql: String, _ values: [Value] = []) async throws {
    try await store.write { _ = try $0.run(sql, values) }
  }

  // MARK: - By HTTP

  /// The routes as the server has them, for riders and for the operator.
  func router(isOperators: Bool = false, metrics: Metrics = Metrics()) -> Router<FleetContext> {
    let router = Router(context: FleetContext.self, options: .autoGenerateHeadEndpoints)
    router.add(middleware: Watch(metrics))
    if isOperators {
      service.addAdminRoutes(to: router, PlayedAuthenticator())
      metrics.addAdminRoutes(to: router) { [service] in try await service.gauges() }
    } else {
      service.addRoutes(to: router, PlayedAuthenticator())
      router.refuseOtherMethods()
    }
    return router
  }

  struct Answer {
    let status: Int
    let headers: HTTPFields
    let text: String
    var json: JSON { (try? JSON(parsing: text.utf8)) ?? .null }
    var code: String? { json["code"]?.string }
    var detail: String? { json["detail"]?.string }
  }

  /// - Parameter caller: account and device; nil for nobody.
  func ask(
    _ method: HTTPRequest.Method, _ path: String, _ body: JSON? = nil, by caller: String? = "ada phone",
    headers: HTTPFields = [:], form: String? = nil, router: Router<FleetContext>? = nil
  ) async throws -> Answer {
    var headers = headers
    headers[.authorization] = caller
    if body != nil { headers[.contentType] = "application/json" }
    if form != nil { headers[.contentType] = "application/x-www-form-urlencoded" }
    let request = Request(
      head: .init(method: method, scheme: "https", authority: "fleet.example", path: path, headerFields: headers),
      body: .init(buffer: ByteBuffer(string: form ?? body?.text ?? "")))
    let context = FleetContext(
      source: ApplicationRequestContextSource(
        channel: EmbeddedChannel(), logger: Logger(label: "test") { [log] _ in log.handler() }))
    let response = try await (router ?? self.router()).buildResponder().respond(to: request, context: context)
    let collected = Collected()
    try await response.body.write(Collector(into: collected))
    return Answer(status: response.status.code, headers: response.headers, text: collected.text)
  }

  func command(_ method: HTTPRequest.Method, _ path: String, _ body: JSON? = nil) async throws -> Answer {
    try await ask(method, path, body, by: nil, router: router(isOperators: true))
  }
}

private final class Collected: Sendable {
  private let bytes = Mutex<[UInt8]>([])
  func add(_ buffer: ByteBuffer) { bytes.withLock { $0 += buffer.readableBytesView } }
  var text: String { String(decoding: bytes.withLock { $0 }, as: UTF8.self) }
}

private struct Collector: ResponseBodyWriter {
  let collected: Collected
  init(into collected: Collected) { self.collected = collected }
  mutating func write(_ buffer: ByteBuffer) async throws { collected.add(buffer) }
  consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
}

/// Knows a caller by the header Authorization: the account, a space, the device.
struct PlayedAuthenticator: Authenticator {
  func caller(of request: Request, _ context: FleetContext) async throws -> Caller {
    guard let parts = request.headers[.authorization]?.split(separator: " "), parts.count == 2 else {
      throw Problem(.unauthorized, "unauthorized", "nobody")
    }
    return Caller(account: String(parts[0]), device: String(parts[1]))
  }

  /// Each device has two logins.
  func endLogins(of device: String) async throws -> Int { 2 }
}

/// What was logged.
final class Log: Sendable {
  private let lines = Mutex<[String]>([])
  var text: String { lines.withLock { $0.joined(separator: "\n") } }
  func handler() -> Handler { Handler(log: self) }

  struct Handler: LogHandler {
    let log: Log
    var logLevel: Logger.Level = .trace
    var metadata: Logger.Metadata = [:]
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }
    func log(event: LogEvent) {
      let all = metadata.merging(event.metadata ?? [:]) { $1 }.sorted { $0.key < $1.key }
      let text = all.map { " \($0.key)=\($0.value)" }.joined()
      log.lines.withLock { $0.append("\(event.level.rawValue): \(event.message)\(text)") }
    }
  }
}

/// A rider's device with a key.
struct TestDevice {
  let key = SigningKey()
  var thumbprint: Thumbprint { key.verificationKey.thumbprint }

  func caller(_ account: String) -> Caller { Caller(account: account, device: thumbprint.description) }

  func text(at now: Int64) -> String {
    DeviceRequest.signed(name: "phone", certificateRequest: [1, 2, 3], issued: now, by: key)
  }

  func request(at now: Int64) throws -> DeviceRequest { try DeviceRequest(verifying: text(at: now)) }
}

/// An operator without files: it remembers what it was asked, and fails when it is told to.
final class PlayedIssuer: AccessIssuer {
  private let state = Mutex(State())

  struct State {
    /// By their folders.
    var vehicles: [String: VehicleRecord] = [:]
    var damaged: Set<String> = []
    var listed = ListedVehicles.all
    /// The topics that the broker's lists have, by the folders.
    var topics: [String: TopicPrefix] = [:]
    /// The vehicles that its lists say were removed.
    var former: Set<UUID> = []
    var grants: [Grant] = []
    /// What is in the folder, and how often it was written.
    var ledger = Ledger(tokens: [], withdrawals: [], revokedCertificates: [])
    var keptLedgers = 0
    /// The tokens of the last `retireKey`.
    var lasting: [Ledger.Entry] = []
    /// The folders.
    var removed: [String] = []
    /// The number of the last notice.
    var last: Int64 = 0
    /// The next requests throw this.
    var error: (any Error)?
    /// Runs while the next token is made.
    var meanwhile: (@Sendable () async throws -> Void)?
  }

  var now: State { state.withLock { $0 } }
  func lists(_ vehicles: ListedVehicles) { state.withLock { $0.listed = vehicles } }
  func fail(_ error: (any Error)?) { state.withLock { $0.error = error } }
  func meanwhile(_ body: @escaping @Sendable () async throws -> Void) { state.withLock { $0.meanwhile = body } }

  static let steps = [
    Step(id: StepID("left")!, side: .left, major: 1), Step(id: StepID("right")!, side: .right, major: 2),
  ]

  /// A vehicle of that name and topic is in the folder of that name.
  func have(_ name: String) {
    state.withLock { $0.vehicles[name] = Self.record(name) }
  }

  /// Somebody has damaged folders by hand.
  func damage(_ folders: Set<String>) { state.withLock { $0.damaged = folders } }

  /// Somebody has removed a folder by hand.
  func lose(_ folder: String) { state.withLock { $0.vehicles[folder] = nil } }

  func have(_ record: VehicleRecord, in folder: String) { state.withLock { $0.vehicles[folder] = record } }

  static func record(
    _ name: String, id: UUID = .random(), steps: [Step] = steps, topic: String? = nil
  ) -> VehicleRecord {
    VehicleRecord(
      vehicle: try! Vehicle(name: name, uuid: id, steps: steps),
      topic: TopicPrefix(topic ?? name) ?? TopicPrefix("vehicles/\(id)")!,
      encryptionKey: DecryptionKey().encryptionKey, signingKey: SigningKey().verificationKey,
      certificate: Array("certificate".utf8))
  }

  private func check() throws { if let error = now.error { throw error } }

  let key = SigningKey()
  func keys() async throws -> [VerificationKey] { [key.verificationKey] }
  func signers() async throws -> [VerificationKey] { [key.verificationKey] }

  func record(in folder: String) async throws -> VehicleRecord? {
    try check()
    if now.damaged.contains(folder) { throw IssuerError.failed("\(folder)/vehicle.toml: damaged") }
    return now.vehicles[folder]
  }

  func folders() async throws -> Set<String> {
    try check()
    return Set(now.vehicles.keys)
  }

  func admit(_ vehicle: Vehicle, _ enrolment: Enrolment, now: Int64) async throws -> Admission {
    try check()
    return Admission(
      keys: [key.verificationKey], host: "fleet.example", port: 8883, authority: "authority",
      certificate: "certificate",
      end: now + 100)
  }

  func keep(_ new: [String: VehicleRecord], without former: [String: Set<UUID>]) async throws {
    try check()
    state.withLock { state in
      for (folder, ids) in former where ids.contains(where: { state.vehicles[folder]?.vehicle.uuid == $0 }) {
        state.removed.append(folder)
        state.vehicles[folder] = nil
      }
      state.vehicles.merge(new) { there, _ in there }
    }
  }

  var listed: ListedVehicles { now.listed }

  func write(_ lists: BrokerLists) async throws {
    try check()
    state.withLock { state in
      state.former = lists.former
      state.topics = state.vehicles.mapValues { $0.topic }.merging(lists.known.mapValues(\.topic)) { $1 }
        .filter { state.vehicles[$0.key] != nil && !lists.others.contains($0.key) }
    }
  }

  func issue(_ grant: Grant, now: Int64) async throws -> IssuedToken {
    try check()
    let (number, meanwhile) = state.withLock { state in
      state.grants.append(grant)
      defer { state.meanwhile = nil }
      return (state.grants.count, state.meanwhile)
    }
    try await meanwhile?()
    let vehicle = grant.vehicle.vehicle
    let entry = Ledger.Entry(
      id: "token \(number)", rider: grant.subject, vehicle: vehicle.uuid, steps: grant.steps,
      notBefore: grant.validity.lowerBound, expires: grant.validity.upperBound,
      device: grant.request.device.thumbprint, key: key.verificationKey.thumbprint,
      certificate: Ledger.IssuedNumber(serial: "0\(number % 10)", end: grant.validity.upperBound))
    return IssuedToken(entry: entry, text: "access \(number)")
  }

  func ledger(now: Int64) async throws -> Ledger {
    try check()
    return self.now.ledger
  }

  func have(_ ledger: Ledger) { state.withLock { $0.ledger = ledger } }

  func keep(_ known: Ledger, inPlaceOf read: Ledger, now: Int64) async throws {
    try check()
    state.withLock {
      $0.ledger = known
      $0.keptLedgers += 1
    }
  }

  func numbered(_ number: Int64) { state.withLock { $0.last = number } }
  func lastNumber() async throws -> Int64 { now.last }

  func rotateKeys(above number: Int64, next key: [UInt8]?, now: Int64) async throws -> (text: String, number: Int64) {
    try check()
    return ("rotated", number + 1)
  }

  func retireKey(tokens: [Ledger.Entry], now: Int64) async throws {
    try check()
    state.withLock { $0.lasting = tokens }
  }
}

/// What the work is refused with; nil if it is not.
func refusal(_ work: () async throws -> Void) async -> FleetRefusal? {
  do {
    try await work()
    return nil
  } catch { return error as? FleetRefusal }
}
