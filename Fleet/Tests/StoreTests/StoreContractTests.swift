import FleetTestSupport
import Foundation
import Testing

@testable import Store

/// What both databases have to do in the same way.
@Suite struct StoreContractTests {
  @Test(.enabled(if: Engine.cluster != nil, "STEPFLEET_POSTGRES names no running cluster"))
  func `PostgreSQL is tested, too`() {}

  static let counter = Migration(
    "counter", ["CREATE TABLE counter (name TEXT NOT NULL PRIMARY KEY, value BIGINT, note TEXT UNIQUE)"])

  private func database(_ engine: Engine) async throws -> TestDatabase {
    let database = try engine.make()
    try await database.store.migrate([Self.counter])
    try await database.store.write { try $0.run("INSERT INTO counter (name, value) VALUES ('a', 0)") }
    return database
  }

  private func value(_ store: any Store, of name: String = "a") async throws -> Int64? {
    try await store.read {
      try $0.run("SELECT value FROM counter WHERE name = ?", [.text(name)]).first?.integer("value")
    }
  }

  @Test(arguments: Engine.present)
  func `what was written is there for another program`(_ engine: Engine) async throws {
    let database = try await database(engine)
    try await database.store.write { try $0.run("UPDATE counter SET value = 7") }
    let other = try database.again()
    #expect(try await value(other) == 7)
    await other.close()
  }

  @Test(arguments: Engine.present)
  func `nothing stays of a write that throws`(_ engine: Engine) async throws {
    struct Stop: Error {}
    let database = try await database(engine)
    await #expect(throws: Stop.self) {
      try await database.store.write { transaction in
        try transaction.run("UPDATE counter SET value = 7")
        throw Stop()
      }
    }
    #expect(try await value(database.store) == 0)
  }

  @Test(arguments: Engine.present)
  func `writes at the same time all count, and one that fails takes no other with it`(_ engine: Engine) async throws {
    struct Stop: Error {}
    let database = try await database(engine)
    let done = await withTaskGroup(of: Bool.self) { group in
      for number in 0..<100 {
        group.addTask {
          do {
            try await database.store.write { transaction in
              try transaction.run("UPDATE counter SET value = value + 1 WHERE name = 'a'")
              if number % 5 == 0 { throw Stop() }
            }
            return true
          } catch { return false }
        }
      }
      return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(done == 80)
    #expect(try await value(database.store) == 80)
  }

  @Test(arguments: Engine.present)
  func `a unique constraint is named`(_ engine: Engine) async throws {
    let database = try engine.make()
    try await database.store.migrate([
      Migration(
        "t", ["CREATE TABLE t (a TEXT NOT NULL, b TEXT NOT NULL, CONSTRAINT \"t.a, t.b\" UNIQUE (a, b))"])
    ])
    try await database.store.write { try $0.run("INSERT INTO t (a, b) VALUES ('x', 'y')") }
    await #expect(throws: StoreError.constraint("t.a, t.b")) {
      try await database.store.write { try $0.run("INSERT INTO t (a, b) VALUES ('x', 'y')") }
    }
  }

  @Test(arguments: Engine.present)
  func `values come back as they were given`(_ engine: Engine) async throws {
    let database = try await database(engine)
    let texts = ["", "'; DROP TABLE counter; --", "what?", "$1", "Zürich 🚲", "a\nb"]
    for (number, text) in texts.enumerated() {
      try await database.store.write {
        try $0.run(
          "INSERT INTO counter (name, value, note) VALUES (?, ?, ?)",
          [.text("n\(number)"), .integer(Int64.min + Int64(number)), .text(text)])
      }
    }
    let rows = try await database.store.read {
      try $0.run("SELECT * FROM counter WHERE note IS NOT NULL ORDER BY name")
    }
    #expect(rows.map { $0.text("note") } == texts)
    #expect(rows.map { $0.integer("value") } == texts.indices.map { Int64.min + Int64($0) })
    let empty = try await database.store.read { try $0.run("SELECT note FROM counter WHERE name = 'a'") }
    #expect(empty.map { $0["note"] } == [.null])
  }

  @Test(arguments: Engine.present)
  func `rows come back from a statement that writes`(_ engine: Engine) async throws {
    let database = try await database(engine)
    let rows = try await database.store.write {
      try $0.run("UPDATE counter SET value = value + 2 WHERE name = 'a' RETURNING value")
    }
    #expect(rows.map { $0.integer("value") } == [2])
  }

  @Test(arguments: Engine.present)
  func `a statement that is wrong is a fault of the program`(_ engine: Engine) async throws {
    let database = try await database(engine)
    let error = await #expect(throws: StoreError.self) {
      try await database.store.read { try $0.run("SELECT nothing FROM counter") }
    }
    guard case .statement? = error else {
      Issue.record("\(error as Any)")
      return
    }
    #expect(try await value(database.store) == 0)
  }

  @Test(arguments: Engine.present)
  func `a read sees one state`(_ engine: Engine) async throws {
    let database = try await database(engine)
    let store = database.store
    let (before, after) = try await store.read { transaction in
      let before = try transaction.run("SELECT value FROM counter")[0].integer("value")
      let written = DispatchSemaphore(value: 0)
      Task {
        try await store.write { try $0.run("UPDATE counter SET value = 9") }
        written.signal()
      }
      written.wait()
      return (before, try transaction.run("SELECT value FROM counter")[0].integer("value"))
    }
    #expect((before, after) == (0, 0))
    #expect(try await value(store) == 9)
  }

  @Test(arguments: Engine.present)
  func `what is announced is told when it is committed, to every server`(_ engine: Engine) async throws {
    struct Stop: Error {}
    let database = try await database(engine)
    let other = engine == .postgres ? try database.again() : database.store
    var told = other.announcements().makeAsyncIterator()
    // A listener of its own connection says when it listens.
    if engine == .postgres { #expect(await told.next() == .everything) }
    try? await database.store.write { transaction in
      try transaction.announce("never")
      throw Stop()
    }
    try await database.store.write { try $0.announce("vehicle") }
    #expect(await told.next() == .change("vehicle"))
    await other.close()
  }

  @Test(arguments: Engine.present)
  func `a migration is made once, also by two at once, and an unknown one is refused`(_ engine: Engine) async throws {
    let database = try engine.make()
    let other = engine == .postgres ? try database.again() : database.store
    async let first: Void = database.store.migrate([Self.counter])
    async let second: Void = other.migrate([Self.counter])
    _ = try await (first, second)
    #expect(try await database.store.migrationsMade() == ["counter"])
    await #expect(throws: StoreError.unavailable("it was made by a newer stepfleet (counter)")) {
      try await database.store.migrate([])
    }
  }

  @Test(arguments: Engine.present, Engine.present)
  func `a copy has every row, from any kind to any`(_ from: Engine, _ to: Engine) async throws {
    let source = try await database(from)
    try await source.store.write { transaction in
      for number in 0..<300 {
        try transaction.run(
          "INSERT INTO counter (name, value, note) VALUES (?, ?, ?)",
          [.text("\(number)"), number % 3 == 0 ? .null : .integer(Int64(number)), .text("note \(number)")])
      }
    }
    let copy = try to.make()
    #expect(try await source.store.copy(to: copy.store, [Self.counter]) == 301)
    let all: @Sendable (borrowing Transaction) throws -> [[Value]] = { transaction in
      try transaction.run("SELECT name, value, note FROM counter ORDER BY note").map { row in
        [row["name"], row["value"], row["note"]]
      }
    }
    #expect(Set(try await copy.store.read(all)) == Set(try await source.store.read(all)))
    await #expect(throws: StoreError.unavailable("it is not empty: counter has rows")) {
      try await source.store.copy(to: copy.store, [Self.counter])
    }
    #expect(try await copy.store.defects() == [])
  }

  @Test func `what is older than the program is copied, and its new tables are empty`() async throws {
    let source = try await database(.sqlite)
    let copy = try Engine.sqlite.make()
    let newer = Migration("newer", ["CREATE TABLE newer (name TEXT NOT NULL)"])
    #expect(try await source.store.copy(to: copy.store, [Self.counter, newer]) == 1)
    #expect(try await copy.store.migrationsMade() == ["counter", "newer"])
  }
}

@Suite struct SQLiteStoreTests {
  @Test func `the file is its owner's alone, and commits are durable`() async throws {
    let database = try Engine.sqlite.make()
    let store = try #require(database.store as? SQLiteStore)
    #expect(try await store.synchronous() == 2)
    await store.close()
  }

  @Test func `a folder that is not there is an error`() {
    #expect(throws: StoreError.self) { try SQLiteStore(path: "/nonexistent/fleet.sqlite") }
  }

  @Test func `a file that is no database is an error`() throws {
    let path = FileManager.default.temporaryDirectory.path + "/no-database-\(UInt32.random(in: 0...UInt32.max))"
    try Data("not a database at all, but long enough to have a header of its own, or so one might think".utf8)
      .write(to: URL(filePath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(throws: StoreError.self) { try SQLiteStore(path: path) }
  }
}
