import CPostgres
import Dispatch
import Glibc
import Synchronization

/// A PostgreSQL database (libpq), which several servers may share.
package final class PostgresStore: Store {
  private let url: String
  private let state = Mutex(State())
  private let listening: PostgresListener

  private struct State {
    var idle: [PostgresConnection] = []
    var count = 0
    var waiting: [CheckedContinuation<PostgresConnection?, Never>] = []
  }

  /// The maximum number of simultaneous transactions. More would only wait for one another on the same disk.
  private static let maximumConnections = 8
  /// How often a transaction is tried if others disturb it.
  private static let attempts = 5

  /// - Parameter url: a libpq connection URI. libpq takes missing parts from its environment and from `~/.pgpass`.
  /// - Throws: `StoreError.unavailable` if no server answers.
  package init(url: String) throws {
    self.url = url
    let first = try PostgresConnection(url)
    listening = PostgresListener(url)
    state.withLock {
      $0.idle = [first]
      $0.count = 1
    }
  }

  package func read<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing Transaction) throws -> Result
  ) async throws -> Result {
    try await transact("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", body)
  }

  @discardableResult
  package func write<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing Transaction) throws -> Result
  ) async throws -> Result {
    try await transact("BEGIN", body)
  }

  private func transact<Result: Sendable>(
    _ begin: String, _ body: @escaping @Sendable (borrowing Transaction) throws -> Result
  ) async throws -> Result {
    var attempt = 1
    while true {
      let connection = try await take()
      defer { give(connection) }
      do {
        return try await connection.perform { connection in
          _ = try connection.execute(begin)
          let result: Result
          do { result = try body(Transaction(connection: connection, announced: Announcements())) } catch {
            _ = try? connection.execute("ROLLBACK")
            throw error
          }
          try connection.commit()
          return result
        }
      } catch StoreError.disturbed where attempt < Self.attempts {
        attempt += 1
      }
    }
  }

  /// Waits for a free connection.
  private func take() async throws -> PostgresConnection {
    enum Turn {
      case ready(PostgresConnection)
      case new, wait
    }
    let given: PostgresConnection? = await withCheckedContinuation { continuation in
      let turn = state.withLock { state -> Turn in
        if let connection = state.idle.popLast() { return .ready(connection) }
        if state.count < Self.maximumConnections {
          state.count += 1
          return .new
        }
        state.waiting.append(continuation)
        return .wait
      }
      switch turn {
      case .ready(let connection): continuation.resume(returning: connection)
      case .new: continuation.resume(returning: nil)
      case .wait: break
      }
    }
    if let given, given.isUsable { return given }
    do {
      return try await withCheckedThrowingContinuation { continuation in
        DispatchQueue.global().async { [url] in
          continuation.resume(with: Result { try PostgresConnection(url) })
        }
      }
    } catch {
      forget()
      throw error
    }
  }

  private func give(_ connection: PostgresConnection) {
    let next = state.withLock { state -> CheckedContinuation<PostgresConnection?, Never>? in
      if !state.waiting.isEmpty { return state.waiting.removeFirst() }
      state.idle.append(connection)
      return nil
    }
    next?.resume(returning: connection)
  }

  /// A connection could not be made. A waiting transaction tries next, so that none waits for ever.
  private func forget() {
    let next = state.withLock { state -> CheckedContinuation<PostgresConnection?, Never>? in
      if !state.waiting.isEmpty { return state.waiting.removeFirst() }
      state.count -= 1
      return nil
    }
    next?.resume(returning: nil)
  }

  package func announcements() -> AsyncStream<Announcement> { listening.stream() }

  package func defects() async throws -> [String] {
    // Checking the server's files is the task of `pg_amcheck`. This only checks that every table can be read to its
    // end.
    try await read { transaction in
      let tables = try transaction.run(
        "SELECT tablename::text AS name FROM pg_tables WHERE schemaname = current_schema()")
      for table in tables { try transaction.run("SELECT count(*) AS n FROM \"\(table.text("name"))\"") }
      return []
    }
  }

  package func close() async {
    listening.stop()
    state.withLock { $0.idle.removeAll() }
  }
}

/// One connection. One transaction at a time uses it, on the connection's own queue.
final class PostgresConnection: Connection, @unchecked Sendable {
  private let handle: OpaquePointer
  private let queue = DispatchQueue(label: "stepfleet.postgres")
  private var prepared: [String: String] = [:]

  init(_ url: String) throws(StoreError) {
    guard let handle = Self.connect(url) else { throw .unavailable("no memory") }
    self.handle = handle
    guard PQstatus(handle) == CONNECTION_OK else { throw .unavailable(Self.message(of: handle)) }
    // The server's notices would go to standard error.
    _ = PQsetNoticeReceiver(handle, { _, _ in }, nil)
    for setting in ["SET synchronous_commit TO on", "SET client_encoding TO 'UTF8'", "SET statement_timeout TO '20s'"] {
      _ = try execute(setting)
    }
    let durable = try execute("SHOW synchronous_commit")
    guard durable.first?.text("synchronous_commit") == "on" else { throw .unavailable("commits would not be durable") }
  }

  deinit { PQfinish(handle) }

  /// Connects. A host that has vanished is noticed in seconds, unless the URL says otherwise (libpq, "Parameter Key
  /// Words"): libpq's own limits are the kernel's, a quarter of an hour.
  private static func connect(_ url: String) -> OpaquePointer? {
    // The URL comes last: its parameters take the place of those before.
    let parameters = [("connect_timeout", "5"), ("tcp_user_timeout", "20000"), ("dbname", url)]
    let (names, values) = (parameters.map { strdup($0.0) } + [nil], parameters.map { strdup($0.1) } + [nil])
    defer { for text in names + values { free(text) } }
    return PQconnectdbParams(names.map { UnsafePointer<CChar>($0) }, values.map { UnsafePointer<CChar>($0) }, 1)
  }

  var isUsable: Bool { PQstatus(handle) == CONNECTION_OK && PQtransactionStatus(handle) == PQTRANS_IDLE }
  var socket: Int32 { PQsocket(handle) }

  func perform<Result: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Swift.Result { try body(self) }) }
    }
  }

  func commit() throws(StoreError) {
    do { _ = try execute("COMMIT") } catch {
      guard case .unavailable(let reason) = error, PQstatus(handle) != CONNECTION_OK else { throw error }
      throw .unconfirmed(reason)
    }
  }

  /// One statement without parameters.
  func execute(_ sql: String) throws(StoreError) -> [Row] { try rows(PQexec(handle, sql)) }

  func run(_ sql: String, _ values: [Value]) throws(StoreError) -> [Row] {
    let name: String
    if let known = prepared[sql] {
      name = known
    } else {
      name = "s\(prepared.count)"
      _ = try rows(PQprepare(handle, name, Self.numbered(sql), 0, nil))
      prepared[sql] = name
    }
    let texts: [[CChar]?] = values.map {
      switch $0 {
      case .null: nil
      case .integer(let number): Array("\(number)".utf8CString)
      case .text(let text): Array(text.utf8CString)
      }
    }
    // libpq takes C strings, so a text with a zero byte would be cut.
    guard texts.allSatisfy({ ($0?.dropLast() ?? []).allSatisfy { $0 != 0 } }) else {
      throw .statement("a text has a zero byte")
    }
    return try rows(Self.withPointers(to: texts) { PQexecPrepared(handle, name, Int32(texts.count), $0, nil, nil, 0) })
  }

  func announce(_ text: String) throws(StoreError) {
    _ = try run("SELECT 1 AS one FROM (SELECT pg_notify('\(PostgresListener.channel)', ?)) AS sent", [.text(text)])
  }

  func reserve(_ name: String) throws(StoreError) {
    _ = try run("SELECT 1 AS one FROM pg_advisory_xact_lock(hashtextextended(?, 0))", [.text(name)])
  }

  var skipLocked: String { "FOR UPDATE SKIP LOCKED" }

  /// The announcements since the last call; nil when the connection is lost.
  func received() -> [String]? {
    guard PQconsumeInput(handle) == 1 else { return nil }
    var texts: [String] = []
    while let notify = PQnotifies(handle) {
      texts.append(String(cString: notify.pointee.extra))
      PQfreemem(notify)
    }
    return texts
  }

  /// Replaces each `?` with `$1`, `$2` and so on.
  private static func numbered(_ sql: String) -> String {
    var number = 0
    return sql.reduce(into: "") { text, character in
      guard character == "?" else { return text.append(character) }
      number += 1
      text += "$\(number)"
    }
  }

  private static func withPointers<Result>(
    to texts: [[CChar]?], _ body: ([UnsafePointer<CChar>?]) -> Result
  ) -> Result {
    var flat: [CChar] = []
    let starts = texts.map { text -> Int? in
      guard let text else { return nil }
      defer { flat += text }
      return flat.count
    }
    return flat.withUnsafeBufferPointer { buffer in body(starts.map { $0.map { buffer.baseAddress! + $0 } }) }
  }

  private func rows(_ result: OpaquePointer?) throws(StoreError) -> [Row] {
    guard let result else { throw .unavailable(Self.message(of: handle)) }
    defer { PQclear(result) }
    let status = PQresultStatus(result)
    guard status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK else { throw error(result) }
    let columns = (0..<PQnfields(result)).map { String(cString: PQfname(result, $0)) }
    // bool, int8, int2, int4 (pg_type.dat); everything else is text.
    let areNumbers = (0..<PQnfields(result)).map { [16, 20, 21, 23].contains(PQftype(result, $0)) }
    return (0..<PQntuples(result)).map { row in
      Row(
        columns: columns,
        values: columns.indices.map { column in
          guard PQgetisnull(result, row, Int32(column)) == 0 else { return .null }
          let text = String(cString: PQgetvalue(result, row, Int32(column)))
          guard areNumbers[column] else { return .text(text) }
          return .integer(text == "t" ? 1 : text == "f" ? 0 : Int64(text)!)
        })
    }
  }

  /// - Parameter result: the result of a failed statement (https://www.postgresql.org/docs/15/errcodes-appendix.html).
  private func error(_ result: OpaquePointer) -> StoreError {
    func field(_ code: Character) -> String? {
      PQresultErrorField(result, Int32(code.asciiValue!)).map { String(cString: $0) }
    }
    let message = field("M") ?? Self.message(of: handle)
    guard let state = field("C") else { return .unavailable(message) }
    switch state.prefix(2) {
    case "23": return .constraint(field("n") ?? message)
    case "40": return .disturbed
    case "42", "22", "26": return .statement(message)
    default: return .unavailable(message)
    }
  }

  private static func message(of handle: OpaquePointer) -> String {
    let text = String(cString: PQerrorMessage(handle))
    return text.split(whereSeparator: \.isNewline).joined(separator: "; ")
  }
}

/// A connection that only listens. If it is lost, it is made again.
final class PostgresListener: Sendable {
  static let channel = "stepfleet"

  private let url: String
  private let queue = DispatchQueue(label: "stepfleet.listener")
  /// State of the present connection; used only on the queue.
  private nonisolated(unsafe) var source: (any DispatchSourceRead)?
  private let state = Mutex(State())

  private struct State {
    var listeners: [Int: AsyncStream<Announcement>.Continuation] = [:]
    var next = 0
    var isStopped = false
  }

  init(_ url: String) {
    self.url = url
    queue.async { self.connect() }
  }

  func stream() -> AsyncStream<Announcement> {
    let (stream, continuation) = AsyncStream.makeStream(of: Announcement.self)
    let number = state.withLock { state in
      state.next += 1
      state.listeners[state.next] = continuation
      return state.next
    }
    continuation.onTermination = { _ in self.state.withLock { $0.listeners[number] = nil } }
    return stream
  }

  func stop() {
    let listeners = state.withLock { state in
      state.isStopped = true
      return Array(state.listeners.values)
    }
    for listener in listeners { listener.finish() }
    queue.async {
      self.source?.cancel()
      self.source = nil
    }
  }

  private func connect() {
    guard !state.withLock({ $0.isStopped }) else { return }
    guard let connection = try? PostgresConnection(url), (try? connection.execute("LISTEN \(Self.channel)")) != nil
    else {
      queue.asyncAfter(deadline: .now() + 1) { self.connect() }
      return
    }
    // Announcements from before are not delivered.
    tell([.everything])
    let source = DispatchSource.makeReadSource(fileDescriptor: connection.socket, queue: queue)
    source.setEventHandler {
      if let texts = connection.received() { return self.tell(texts.map(Announcement.change)) }
      source.cancel()
      self.source = nil
      self.queue.asyncAfter(deadline: .now() + 1) { self.connect() }
    }
    self.source = source
    source.activate()
  }

  private func tell(_ announcements: [Announcement]) {
    let listeners = state.withLock { Array($0.listeners.values) }
    for listener in listeners { for announcement in announcements { listener.yield(announcement) } }
  }
}
