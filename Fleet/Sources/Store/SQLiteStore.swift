import Dispatch
import GRDB
import Glibc
import Synchronization

/// A database in a file (GRDB), or in memory. Only one process may use it.
///
/// Writes that wait for one another are committed together. Each runs in its own savepoint, and all are answered when
/// the common commit is on the medium. So 64 riders who book at once wait for a few disk syncs instead of 64.
package final class SQLiteStore: Store {
  private let database: any DatabaseWriter
  private let queue = DispatchQueue(label: "stepfleet.sqlite")
  private let state = Mutex(State())

  private struct State {
    var waiting: [Job] = []
    var isWorking = false
    var listeners: [Int: AsyncStream<Announcement>.Continuation] = [:]
    var nextListener = 0
  }

  /// A waiting write.
  private struct Job: Sendable {
    /// Runs in a savepoint. Returns what to do after the commit has succeeded or failed.
    let run: @Sendable (Database) -> @Sendable ((any Error)?) -> Void
    /// Called instead of `run`.
    let refuse: @Sendable (any Error) -> Void
  }

  /// The maximum number of writes in one commit, so that the first one does not wait long.
  private static let batch = 64

  /// Opens the database, or creates it (mode 0600).
  package init(path: String) throws {
    var configuration = Configuration()
    configuration.label = "stepfleet"
    configuration.foreignKeysEnabled = true
    configuration.maximumReaderCount = 4
    configuration.busyMode = .timeout(5)
    // SQLite would make the file readable for everyone. Its log and index get the mode of the file.
    let file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw StoreError.unavailable("\(path): \(String(cString: strerror(errno)))") }
    Glibc.close(file)
    do { database = try DatabasePool(path: path, configuration: configuration) } catch { throw StoreError(error) }
    do {
      // GRDB sets NORMAL when it opens the writer. With NORMAL a power failure would lose the last commits.
      try database.writeWithoutTransaction { database in
        try database.execute(sql: "PRAGMA synchronous = FULL")
        guard try Self.synchronous(database) == Self.full else {
          throw StoreError.unavailable("\(path): commits would not be durable")
        }
      }
    } catch { throw StoreError(error) }
  }

  /// A database in memory, which ends with its owner: for tests. It has one connection, so that no read runs beside a
  /// write.
  package init() throws {
    var configuration = Configuration()
    configuration.foreignKeysEnabled = true
    do { database = try DatabaseQueue(configuration: configuration) } catch { throw StoreError(error) }
  }

  /// https://www.sqlite.org/pragma.html#pragma_synchronous
  private static let full = 2

  private static func synchronous(_ database: Database) throws -> Int? {
    try Int.fetchOne(database, sql: "PRAGMA synchronous")
  }

  /// The writer's durability setting; for tests.
  func synchronous() async throws -> Int? { try await database.writeWithoutTransaction(Self.synchronous) }

  package func read<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing Transaction) throws -> Result
  ) async throws -> Result {
    do {
      return try await self.database.read { database in
        try body(Transaction(connection: SQLiteConnection(database: database), announced: Announcements()))
      }
    } catch let error as DatabaseError { throw StoreError(error) }
  }

  @discardableResult
  package func write<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing Transaction) throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      let run: @Sendable (Database) -> @Sendable ((any Error)?) -> Void = { database in
        let announced = Announcements()
        do {
          var result: Result?
          try database.inSavepoint {
            result = try body(Transaction(connection: SQLiteConnection(database: database), announced: announced))
            return .commit
          }
          let texts = announced.texts
          return { [result] failure in
            if let failure { return continuation.resume(throwing: StoreError(failure)) }
            self.announce(texts)
            continuation.resume(returning: result!)
          }
        } catch {
          let error = error is DatabaseError ? StoreError(error) : error
          return { _ in continuation.resume(throwing: error) }
        }
      }
      let job = Job(run: run, refuse: { continuation.resume(throwing: StoreError($0)) })
      let isFirst = state.withLock { state in
        state.waiting.append(job)
        defer { state.isWorking = true }
        return !state.isWorking
      }
      if isFirst { queue.async { self.work() } }
    }
  }

  /// Commits waiting writes until there are none.
  private func work() {
    while true {
      let jobs = state.withLock { state in
        let jobs = Array(state.waiting.prefix(Self.batch))
        state.waiting.removeFirst(jobs.count)
        if jobs.isEmpty { state.isWorking = false }
        return jobs
      }
      if jobs.isEmpty { return }
      var ends: [@Sendable ((any Error)?) -> Void] = []
      var failure: (any Error)?
      do {
        try self.database.writeWithoutTransaction { database in
          try database.inTransaction(.immediate) {
            for job in jobs {
              // SQLite rolls back the whole transaction if its medium fails or is full.
              guard database.isInsideTransaction else { throw StoreError.unavailable("a write was taken back") }
              ends.append(job.run(database))
            }
            return .commit
          }
        }
      } catch { failure = error }
      for end in ends { end(failure) }
      if let failure { for job in jobs.dropFirst(ends.count) { job.refuse(failure) } }
    }
  }

  private func announce(_ texts: [String]) {
    let listeners = state.withLock { Array($0.listeners.values) }
    for text in texts { for listener in listeners { listener.yield(.change(text)) } }
  }

  package func announcements() -> AsyncStream<Announcement> {
    let (stream, continuation) = AsyncStream.makeStream(of: Announcement.self)
    let number = state.withLock { state in
      state.nextListener += 1
      state.listeners[state.nextListener] = continuation
      return state.nextListener
    }
    continuation.onTermination = { _ in self.state.withLock { $0.listeners[number] = nil } }
    return stream
  }

  package func defects() async throws -> [String] {
    do {
      return try await self.database.read { database in
        let lines = try String.fetchAll(database, sql: "PRAGMA integrity_check").filter { $0 != "ok" }
        let orphans = try GRDB.Row.fetchAll(database, sql: "PRAGMA foreign_key_check")
        return lines + orphans.map { "a row of \($0["table"] as String? ?? "?") refers to nothing" }
      }
    } catch { throw StoreError(error) }
  }

  package func close() async {
    for listener in state.withLock({ Array($0.listeners.values) }) { listener.finish() }
    try? database.close()
  }
}

private struct SQLiteConnection: Connection {
  let database: Database

  func run(_ sql: String, _ values: [Value]) throws(StoreError) -> [Row] {
    do {
      let statement = try database.cachedStatement(sql: sql)
      try statement.setArguments(
        StatementArguments(
          values.map { value -> DatabaseValue in
            switch value {
            case .null: .null
            case .integer(let number): number.databaseValue
            case .text(let text): text.databaseValue
            }
          }))
      guard statement.columnCount > 0 else {
        try statement.execute()
        return []
      }
      let columns = statement.columnNames
      return try GRDB.Row.fetchAll(statement).map { row in
        Row(
          columns: columns,
          values: row.databaseValues.map { value in
            switch value.storage {
            case .null, .blob: .null
            case .int64(let number): .integer(number)
            case .double(let number): .integer(Int64(number))
            case .string(let text): .text(text)
            }
          })
      }
    } catch { throw StoreError(error) }
  }

  func announce(_ text: String) {}

  /// There is only one writer.
  func reserve(_ name: String) {}
  var skipLocked: String { "" }
}

extension StoreError {
  /// Converts GRDB's error, or any other.
  fileprivate init(_ error: any Error) {
    if let error = error as? StoreError {
      self = error
      return
    }
    guard let error = error as? DatabaseError else {
      self = .unavailable("\(error)")
      return
    }
    let message = error.message ?? "\(error.resultCode)"
    self =
      switch error.resultCode {
      case .SQLITE_CONSTRAINT:
        // SQLite writes `UNIQUE constraint failed: vehicle.name`. A trigger's own text has no such prefix.
        .constraint(message.split(separator: "failed: ").last.map(String.init) ?? message)
      case .SQLITE_ERROR, .SQLITE_MISUSE, .SQLITE_RANGE, .SQLITE_MISMATCH: .statement(message)
      default: .unavailable(message)
      }
  }
}
