import API
import Booking
import FleetTestSupport
import Foundation
import Store

/// What goes wrong when many want the same at once, with the mechanism that keeps it from going wrong switched off and
/// on. `make concurrency` prints the table of CONCURRENCY.md.
///
/// The databases are real, and so are the tables' constraint and the store's locks and connections. What is switched
/// off is written here, because the server has no switch for it.
@main
enum Concurrency {
  static func main() async throws {
    let arguments = CommandLine.arguments.dropFirst()
    switch arguments.first {
    case "bookings": return print(try await bookings())
    case "amdahl":
      guard let one = arguments.dropFirst().first.flatMap(Double.init), let two = arguments.last.flatMap(Double.init)
      else { exit(64) }
      return amdahl(one, two)
    default: break
    }
    print(row("", "database", "off", "on"))
    for engine in Engine.present {
      let name = engine == .sqlite ? "SQLite" : "PostgreSQL"
      print(row("race", name, try await race(engine, isOn: false), try await race(engine, isOn: true)))
      if engine == .postgres {
        print(row("deadlock", name, try await deadlock(engine, isOn: false), try await deadlock(engine, isOn: true)))
      }
      print(row("livelock", name, try await livelock(engine, isOn: false), try await livelock(engine, isOn: true)))
      print(
        row("starvation", name, try await starvation(engine, isOn: false), try await starvation(engine, isOn: true)))
    }
  }

  private static func row(_ cells: String...) -> String {
    zip(cells, [12, 12, 44, 44]).map { $0.padding(toLength: max($1, $0.count), withPad: " ", startingAt: 0) }
      .joined(separator: "  ").trimmingCharacters(in: .whitespaces)
  }

  // MARK: - A race

  /// 64 riders want one vehicle for one hour. On: the table's constraint. Off: each looks whether the hour is free, and
  /// takes it then.
  private static func race(_ engine: Engine, isOn: Bool) async throws -> String {
    let database = try engine.make()
    let store = database.store
    try await prepare(store)
    try await store.write { _ = try $0.run("CREATE TABLE hour (id TEXT NOT NULL PRIMARY KEY, begins BIGINT NOT NULL)") }
    let winners = try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<64 {
        group.addTask {
          if isOn { return try await book(number, hour: 0, in: store) }
          let taken = try await store.read { try $0.run("SELECT count(*) AS n FROM hour")[0].integer("n") }
          guard taken == 0 else { return false }
          try await store.write { _ = try $0.run("INSERT INTO hour (id, begins) VALUES (?, 0)", [.text("\(number)")]) }
          return true
        }
      }
      return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    await store.close()
    return winners == 1 ? "1 of 64 has the hour" : "\(winners) of 64 have the same hour"
  }

  /// - Returns: false if somebody else has that hour.
  private static func book(_ number: Int, hour: Int64, in store: any Store) async throws -> Bool {
    do {
      try await store.write { transaction in
        try transaction.reserve("account \(number)")
        try transaction.reserve("car")
        try transaction.run(
          """
          INSERT INTO booking (id, vehicle, account, subject, begins, ends, steps, state, has_access, version, created)
          VALUES (?, 'car', ?, 'b', ?, ?, 'left', 'booked', 0, 1, 0)
          """,
          [.text("\(number)"), .text("account \(number)"), .integer(hour * 3600), .integer(hour * 3600 + 3600)])
      }
      return true
    } catch StoreError.constraint { return false }
  }

  private static func prepare(_ store: any Store) async throws {
    try await store.migrate(FleetTables.migrations)
    try await store.write { transaction in
      try transaction.run(
        """
        INSERT INTO vehicle (id, name, folder, steps, service, created) VALUES ('car', 'car', 'car', '[]', 'in_service', 0)
        """)
    }
  }

  // MARK: - A deadlock

  /// Eight transactions, five times each, lock an account and a vehicle. On: in one order. Off: half of them in the
  /// other order. PostgreSQL notices after a second, and undoes one; the store tries it again. SQLite has one writer,
  /// and so no locks.
  private static func deadlock(_ engine: Engine, isOn: Bool) async throws -> String {
    let database = try engine.make()
    let store = database.store
    let tries = Counter()
    let begin = ContinuousClock.now
    let failures = Counter()
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<8 {
        let names = isOn || number.isMultiple(of: 2) ? ["account", "car"] : ["car", "account"]
        group.addTask {
          for _ in 0..<5 {
            do {
              try await store.write { transaction in
                tries.add()
                try transaction.reserve(names[0])
                // The time in which the other one takes its first lock.
                usleep(2000)
                try transaction.reserve(names[1])
              }
            } catch { failures.add() }
          }
        }
      }
    }
    await store.close()
    let lost = failures.value > 0 ? ", \(failures.value) given up" : ""
    return "40 transactions, \(tries.value) tries\(lost), \(seconds(begin))"
  }

  // MARK: - A livelock

  /// 16 writers change one row, and each must have read its newest version (If-Match). On: who was late waits for a
  /// random time, longer each time. Off: all read again after the same time, and so at the same time.
  private static func livelock(_ engine: Engine, isOn: Bool) async throws -> String {
    let database = try engine.make()
    let store = database.store
    try await store.write { transaction in
      try transaction.run("CREATE TABLE item (id BIGINT NOT NULL PRIMARY KEY, version BIGINT NOT NULL)")
      try transaction.run("INSERT INTO item (id, version) VALUES (1, 0)")
    }
    let begin = ContinuousClock.now
    let tries = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<16 {
        group.addTask {
          var (tries, pause) = (0, 20.0)
          while true {
            tries += 1
            let version = try await store.read { try $0.run("SELECT version FROM item")[0].integer("version") }
            // The way to the client and back.
            try await Task.sleep(for: .milliseconds(10))
            let written = try await store.write {
              try $0.run("UPDATE item SET version = version + 1 WHERE version = ? RETURNING id", [.integer(version)])
            }
            if !written.isEmpty { return tries }
            try await Task.sleep(for: .milliseconds(isOn ? Double.random(in: 0...pause) : 20))
            pause *= 2
          }
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    await store.close()
    return "\(tries.reduce(0, +)) tries, \(tries.max() ?? 0) at most, \(seconds(begin))"
  }

  // MARK: - Starvation

  /// 64 writers, ten writes each, beside four that export without a pause. On: an export reads a snapshot, by
  /// a connection of its own. Off: it is a transaction among the writers', and has the lock that all of them take.
  private static func starvation(_ engine: Engine, isOn: Bool) async throws -> String {
    let database = try engine.make()
    let store = database.store
    try await store.write { _ = try $0.run("CREATE TABLE line (id TEXT NOT NULL PRIMARY KEY)") }
    // All connections are there: opening one takes longer than a write.
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<64 { group.addTask { _ = try await store.read { try $0.run("SELECT count(*) AS n FROM line") } } }
      try await group.waitForAll()
    }
    // Some tenths of a second in either database.
    let export = """
      WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 700000)
      SELECT max(n) AS n FROM number
      """
    let times = try await withThrowingTaskGroup(of: [Double]?.self) { group in
      for _ in 0..<4 {
        group.addTask {
          // Again and again, until the last writer has written.
          while !Task.isCancelled {
            if isOn {
              _ = try await store.read { try $0.run(export).count }
            } else {
              _ = try await store.write { transaction in
                try transaction.reserve("lines")
                return try transaction.run(export).count
              }
            }
          }
          return nil
        }
      }
      for writer in 0..<64 {
        group.addTask {
          var times: [Double] = []
          for number in 0..<10 {
            let begin = ContinuousClock.now
            try await store.write { transaction in
              try transaction.reserve("lines")
              try transaction.run("INSERT INTO line (id) VALUES (?)", [.text("\(writer) \(number)")])
            }
            times.append((ContinuousClock.now - begin) / .milliseconds(1))
          }
          return times
        }
      }
      var all: [Double] = []
      var writers = 64
      while writers > 0, let times = try await group.next() {
        guard let times else { continue }
        all += times
        writers -= 1
      }
      group.cancelAll()
      return all.sorted()
    }
    await store.close()
    let (median, slowest) = (times[times.count / 2], times.last ?? 0)
    return String(format: "median %.0f ms, slowest %.0f ms: %.1f times", median, slowest, slowest / median)
  }

  // MARK: - Amdahl

  /// Bookings a second in a SQLite file: the rules, the locks and the commit, without HTTP.
  private static func bookings() async throws -> String {
    let database = try Engine.sqlite.make()
    let store = database.store
    try await prepare(store)
    let (riders, each) = (16, 125)
    let begin = ContinuousClock.now
    try await withThrowingTaskGroup(of: Void.self) { group in
      for rider in 0..<riders {
        group.addTask {
          for number in 0..<each {
            let hour = Int64(rider * each + number)
            guard try await book(rider * each + number, hour: hour, in: store) else { throw StoreError.disturbed }
          }
        }
      }
      try await group.waitForAll()
    }
    await store.close()
    return String(format: "%.0f", Double(riders * each) / ((ContinuousClock.now - begin) / .seconds(1)))
  }

  /// Prints what the speed on one processor and on two says of more.
  private static func amdahl(_ one: Double, _ two: Double) {
    let serial = Amdahl.serial(speedupOnTwo: two / one)
    print(String(format: "\nAmdahl: %.0f bookings a second on one processor, %.0f on two: S = %.2f", one, two, serial))
    for count in [4.0, 16, 64] {
      let speedup = Amdahl.speedup(parallel: 1 - serial, processors: count)
      print(String(format: "on %2.0f: %.2f times as many as on one", count, speedup))
    }
  }

  private static func seconds(_ begin: ContinuousClock.Instant) -> String {
    String(format: "%.1f s", (ContinuousClock.now - begin) / .seconds(1))
  }
}

private final class Counter: @unchecked Sendable {
  private let lock = NSLock()
  private var count = 0
  func add() { lock.withLock { count += 1 } }
  var value: Int { lock.withLock { count } }
}
