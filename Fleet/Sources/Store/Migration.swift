/// A change of the tables, made once in each database.
package struct Migration: Sendable {
  /// Unique, and never changed.
  package let name: String
  let sqlite: [String]
  let postgres: [String]

  /// - Parameter statements: what both databases take.
  package init(_ name: String, _ statements: [String]) { self.init(name, sqlite: statements, postgres: statements) }

  package init(_ name: String, sqlite: [String], postgres: [String]) {
    (self.name, self.sqlite, self.postgres) = (name, sqlite, postgres)
  }
}

extension Store {
  /// Makes what is missing of the changes, in their order; all, or nothing.
  ///
  /// - Throws: `StoreError.unavailable` when the database has a change that is not listed: a newer program has made it.
  package func migrate(_ migrations: [Migration]) async throws {
    let isPostgres = self is PostgresStore
    try await write { transaction in
      // Two servers that start at once do not both make them.
      try transaction.reserve("migration")
      try transaction.run("CREATE TABLE IF NOT EXISTS migration (name TEXT NOT NULL PRIMARY KEY)")
      let made = Set(try transaction.run("SELECT name FROM migration").map { $0.text("name") })
      if let foreign = made.subtracting(migrations.map(\.name)).min() {
        throw StoreError.unavailable("it was made by a newer stepfleet (\(foreign))")
      }
      for migration in migrations where !made.contains(migration.name) {
        for statement in isPostgres ? migration.postgres : migration.sqlite { try transaction.run(statement) }
        try transaction.run("INSERT INTO migration (name) VALUES (?)", [.text(migration.name)])
      }
    }
  }
}
