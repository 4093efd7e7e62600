/// The server's database: SQLite in a file, or PostgreSQL.
///
/// When `write` returns, its changes are on the medium. The SQL must be valid for both databases; its parameters are
/// `?`.
package protocol Store: Sendable {
  /// Runs the body on a snapshot of the database. Several bodies run at the same time.
  func read<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing Transaction) throws -> Result
  ) async throws -> Result

  /// Runs the body as a whole or not at all: when it throws, nothing of it remains. The body may run more than once.
  @discardableResult
  func write<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing Transaction) throws -> Result
  ) async throws -> Result

  /// The committed announcements (`Transaction.announce`) of any server of this database, from now on. After a lost
  /// connection everything may have changed: then `Announcement.everything` comes.
  func announcements() -> AsyncStream<Announcement>

  /// The defects of the database itself, one per line; empty if it is sound.
  func defects() async throws -> [String]

  func close() async
}

package enum Announcement: Hashable, Sendable {
  case change(String)
  case everything
}

/// The operations of a body on the database.
package struct Transaction: ~Copyable {
  let connection: any Connection
  let announced: Announcements

  /// Runs one statement.
  ///
  /// - Returns: the rows of a SELECT, or of RETURNING.
  @discardableResult
  package borrowing func run(_ sql: String, _ values: [Value] = []) throws(StoreError) -> [Row] {
    try connection.run(sql, values)
  }

  /// Waits for the exclusive lock of that name, and holds it until this transaction ends. It enforces rules about
  /// several rows, which no constraint can express. To avoid a deadlock, a transaction that takes two locks takes the
  /// account's before the vehicle's.
  package borrowing func reserve(_ name: String) throws(StoreError) { try connection.reserve(name) }

  /// What ends a SELECT of rows that this transaction will change: it does not wait for rows that another one changes,
  /// but leaves them out.
  package var skipLocked: String { connection.skipLocked }

  /// Tells every server of this database, after the commit. The text is short and not secret.
  package borrowing func announce(_ text: String) throws(StoreError) {
    try connection.announce(text)
    announced.texts.append(text)
  }
}

/// What a body has announced.
final class Announcements {
  var texts: [String] = []
}

/// The operations that both databases provide for a transaction.
protocol Connection {
  func run(_ sql: String, _ values: [Value]) throws(StoreError) -> [Row]
  func announce(_ text: String) throws(StoreError)
  func reserve(_ name: String) throws(StoreError)
  var skipLocked: String { get }
}

/// The value of a column or a parameter.
package enum Value: Hashable, Sendable {
  case null
  case integer(Int64)
  case text(String)
}

extension Value: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByNilLiteral {
  package init(stringLiteral value: String) { self = .text(value) }
  package init(integerLiteral value: Int64) { self = .integer(value) }
  package init(nilLiteral: ()) { self = .null }
  package init(_ text: String?) { self = text.map(Value.text) ?? .null }
  package init(_ number: Int64?) { self = number.map(Value.integer) ?? .null }
}

/// One row of a result.
package struct Row: Sendable {
  let columns: [String]
  let values: [Value]

  /// The value of the named column. Asking for a column that the statement does not have is a programming error.
  package subscript(column: String) -> Value {
    guard let index = columns.firstIndex(of: column) else { fatalError("no column \(column) in \(columns)") }
    return values[index]
  }

  package func optionalText(_ column: String) -> String? {
    if case .text(let text) = self[column] { text } else { nil }
  }
  package func optionalInteger(_ column: String) -> Int64? {
    if case .integer(let number) = self[column] { number } else { nil }
  }
  /// Reads a column that is NOT NULL.
  package func text(_ column: String) -> String { optionalText(column)! }
  package func integer(_ column: String) -> Int64 { optionalInteger(column)! }
}

/// Why the database has not done what it was asked.
package enum StoreError: Error, Equatable, CustomStringConvertible {
  /// The write violates that constraint.
  case constraint(String)
  /// The database cannot be reached, is full, or its medium fails. Nothing was written, except with `unconfirmed`.
  case unavailable(String)
  /// The connection was lost during the commit: the change may have been written.
  case unconfirmed(String)
  /// Another transaction has written the same rows; try this one again.
  case disturbed
  /// The statement is wrong: a programming error.
  case statement(String)

  package var description: String {
    switch self {
    case .constraint(let name): "the database refuses it: \(name)"
    case .unavailable(let reason): "the database cannot be used: \(reason)"
    case .unconfirmed(let reason): "the database may have written it: \(reason)"
    case .disturbed: "others write the same in the database"
    case .statement(let reason): "the database does not take a statement: \(reason)"
    }
  }
}
