extension Migration {
  /// The tables that the module creates, ordered so that each refers only to earlier ones.
  var tables: [String] {
    sqlite.compactMap { statement in
      let words = statement.split(whereSeparator: \.isWhitespace).prefix(3)
      return words.prefix(2).elementsEqual(["CREATE", "TABLE"]) ? words.last.map(String.init) : nil
    }
  }
}

extension Store {
  /// Copies everything, as it is at one moment, into a new database of either kind. Migrations that the source lacks,
  /// as in an older backup, are run in the copy.
  ///
  /// - Parameter others: migrations whose tables are not copied.
  /// - Returns: the number of rows.
  /// - Throws: `StoreError.unavailable` if a newer program made the source: this one would leave out what it does not
  ///   know.
  package func copy(
    to other: any Store, _ migrations: [Migration], without others: [Migration] = []
  ) async throws -> Int {
    let made = try await migrationsMade()
    if let foreign = made.subtracting((migrations + others).map(\.name)).min() { throw Self.isNewer(foreign) }
    let tables = migrations.filter { made.contains($0.name) }.flatMap(\.tables)
    let content = try await read { transaction in
      try tables.map { ($0, try transaction.run("SELECT * FROM \($0)")) }
    }
    try await other.migrate(migrations)
    return try await other.write { transaction in
      for (table, rows) in content {
        guard try transaction.run("SELECT 1 AS one FROM \(table) LIMIT 1").isEmpty else {
          throw StoreError.unavailable("it is not empty: \(table) has rows")
        }
        for row in rows {
          let places = row.columns.map { _ in "?" }.joined(separator: ", ")
          try transaction.run(
            "INSERT INTO \(table) (\(row.columns.joined(separator: ", "))) VALUES (\(places))", row.values)
        }
      }
      return content.reduce(0) { $0 + $1.1.count }
    }
  }

  /// The names of the migrations that were run, unordered.
  package func migrationsMade() async throws -> Set<String> {
    try await read { Set(try $0.run("SELECT name FROM migration").map { $0.text("name") }) }
  }
}
