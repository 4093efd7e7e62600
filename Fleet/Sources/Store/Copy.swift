extension Migration {
  /// The tables that it makes, in an order in which each refers only to those before it.
  var tables: [String] {
    sqlite.compactMap { statement in
      let words = statement.split(whereSeparator: \.isWhitespace).prefix(3)
      return words.prefix(2).elementsEqual(["CREATE", "TABLE"]) ? words.last.map(String.init) : nil
    }
  }
}

extension Store {
  /// Copies everything, as it is at one moment, into a database that has only just been made: of either kind. Changes
  /// that were not made yet, as in an older backup, are made in the copy.
  ///
  /// - Returns: how many rows.
  package func copy(to other: any Store, _ migrations: [Migration]) async throws -> Int {
    let made = try await migrationsMade()
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

  /// The names of the changes that have been made, in no order.
  package func migrationsMade() async throws -> Set<String> {
    try await read { Set(try $0.run("SELECT name FROM migration").map { $0.text("name") }) }
  }
}
