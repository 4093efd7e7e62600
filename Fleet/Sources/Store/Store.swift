/// Where everything is kept: SQLite in a file, or PostgreSQL.
///
/// What is written is on the medium when `write` returns. The SQL is what both understand; its parameters are `?`.
package protocol Store: Sendable {
  /// Runs the body on a state of the database that does not change meanwhile. Several run at the same time.
  func read<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing Transaction) throws -> Result
  ) async throws -> Result

  /// Runs the body as a whole or not at all: when it throws, nothing of it stays. It may be run more than once.
  @discardableResult
  func write<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing Transaction) throws -> Result
  ) async throws -> Result

  /// What any server of this database has announced (`Transaction.announce`), and committed, from now on. After a lost
  /// connection everything may have changed: then `Announcement.everything` comes.
  func announcements() -> AsyncStream<Announcement>

  /// What is wrong with the database itself, in lines; none when it is sound.
  func defects() async throws -> [String]

  func close() async
}

package enum Announcement: Hashable, Sendable {
  case change(String)
  case everything
}

/// What a body can ask of the database.
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

  /// Waits until no other transaction has that name to itself, and has it until this one ends: for rules about several
  /// rows, which no constraint can express. Whoever takes two takes the account's before the vehicle's, so that two
  /// never wait for each other.
  package borrowing func reserve(_ name: String) throws(StoreError) { try connection.reserve(name) }

  /// Tells every server of this database, once this is committed. A short text without anything secret.
  package borrowing func announce(_ text: String) throws(StoreError) {
    try connection.announce(text)
    announced.texts.append(text)
  }
}

/// What a body has announced.
final class Announcements {
  var texts: [String] = []
}

/// What both databases do for a transaction.
protocol Connection {
  func run(_ sql: String, _ values: [Value]) throws(StoreError) -> [Row]
  func announce(_ text: String) throws(StoreError)
  func reserve(_ name: String) throws(StoreError)
}

/// What a column holds, or a parameter.
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

/// One row of an answer.
package struct Row: Sendable {
  let columns: [String]
  let values: [Value]

  /// What the column of that name holds. Asking for one that the statement does not have is a fault of the program.
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
  /// Of a column that is NOT NULL.
  package func text(_ column: String) -> String { optionalText(column)! }
  package func integer(_ column: String) -> Int64 { optionalInteger(column)! }
}

/// Why the database has not done what it was asked.
package enum StoreError: Error, Equatable, CustomStringConvertible {
  /// What was to be written is against that constraint.
  case constraint(String)
  /// It cannot be reached, is full, or its medium fails. Nothing was written, except where `unconfirmed`.
  case unavailable(String)
  /// The connection was lost while it committed: it may have been written.
  case unconfirmed(String)
  /// Others have written the same meanwhile, and this is to be tried once more.
  case disturbed
  /// The statement is wrong: a fault of the program.
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
