/// A change of the tables, run once in each database.
package struct Migration: Sendable {
  /// Unique, and never changed afterwards.
  package let name: String
  let sqlite: [String]
  let postgres: [String]

  /// - Parameter statements: SQL that both databases accept.
  package init(_ name: String, _ statements: [String]) { self.init(name, sqlite: statements, postgres: statements) }

  package init(_ name: String, sqlite: [String], postgres: [String]) {
    (self.name, self.sqlite, self.postgres) = (name, sqlite, postgres)
  }
}

extension Store {
  static func isNewer(_ migration: String) -> StoreError {
    .unavailable("it was made by a newer stepfleet (\(migration))")
  }

  /// Runs the missing migrations in order: all, or none.
  ///
  /// - Throws: `StoreError.unavailable` if the database has a migration that is not listed, because a newer program
  ///   made it.
  package func migrate(_ migrations: [Migration]) async throws {
    let isPostgres = self is PostgresStore
    try await write { transaction in
      // Keeps two servers that start at once from both running them.
      try transaction.reserve("migration")
      try transaction.run("CREATE TABLE IF NOT EXISTS migration (name TEXT NOT NULL PRIMARY KEY)")
      let made = Set(try transaction.run("SELECT name FROM migration").map { $0.text("name") })
      if let foreign = made.subtracting(migrations.map(\.name)).min() {
        throw Self.isNewer(foreign)
      }
      for migration in migrations where !made.contains(migration.name) {
        for statement in isPostgres ? migration.postgres : migration.sqlite { try transaction.run(statement) }
        try transaction.run("INSERT INTO migration (name) VALUES (?)", [.text(migration.name)])
      }
    }
  }
}
