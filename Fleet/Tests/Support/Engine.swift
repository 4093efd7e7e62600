import Foundation
package import Store

/// A kind of database that the contract is tested with.
package enum Engine: String, Sendable, CaseIterable {
  case sqlite, postgres
  /// SQLite without a file: for tests of rules, which need no second connection.
  case memory

  /// The folder of a cluster that runs (`Tests/postgres.sh start FOLDER`).
  package static let cluster = ProcessInfo.processInfo.environment["STEPFLEET_POSTGRES"]

  /// Those that can be tested here.
  package static var present: [Engine] { cluster == nil ? [.sqlite] : [.sqlite, .postgres] }

  /// Those on which rules are tested.
  package static var forRules: [Engine] { cluster == nil ? [.memory] : [.memory, .postgres] }

  /// A new, empty database of one's own.
  package func make() throws -> TestDatabase {
    let name = "test_\(UInt64.random(in: 0...UInt64.max))"
    switch self {
    case .sqlite:
      let path = FileManager.default.temporaryDirectory.path + "/\(name).sqlite"
      return TestDatabase(store: try SQLiteStore(path: path), again: { try SQLiteStore(path: path) }, path: path)
    case .memory:
      return TestDatabase(
        store: try SQLiteStore(), again: { throw StoreError.unavailable("it is in memory") }, path: nil)
    case .postgres:
      let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "postgres.sh").path
      let process = Process()
      process.executableURL = URL(filePath: script)
      process.arguments = ["database", Self.cluster!, name]
      let pipe = Pipe()
      process.standardOutput = pipe
      try process.run()
      let output = pipe.fileHandleForReading.readDataToEndOfFile()
      process.waitUntilExit()
      let url = String(decoding: output, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
      return TestDatabase(store: try PostgresStore(url: url), again: { try PostgresStore(url: url) }, path: nil)
    }
  }
}

/// A database that goes with its owner.
package final class TestDatabase: Sendable {
  package let store: any Store
  /// Another connection to it, as another program would have.
  package let again: @Sendable () throws -> any Store
  private let path: String?

  init(store: any Store, again: @escaping @Sendable () throws -> any Store, path: String?) {
    (self.store, self.again, self.path) = (store, again, path)
  }

  deinit {
    if let path { for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) } }
  }
}
