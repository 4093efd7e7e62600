import API
import ArgumentParser
import Domain
import Foundation
import NIOSSL
import Operator
import Store

/// A backup is one SQLite database (mode 0600) with the server's tables and the files of its folder. It contains the
/// operator's private keys. The format is the same for both kinds of database, so a backup can also move a server from
/// one to the other.
private enum BackupFile {
  static let migration = Migration(
    "backup-1",
    ["CREATE TABLE backup_file (path TEXT NOT NULL PRIMARY KEY, mode BIGINT NOT NULL, content TEXT NOT NULL)"])

  /// Files that a server creates again: its database, its sockets, the broker's data.
  static let left = ["data", "run", "operator/data"]

  static var migrations: [Migration] { ServerFolder.migrations + [migration] }
}

struct Backup: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Copies everything of a server into one file, while it serves. The file holds its private keys.")
  @OptionGroup var server: ServerOption
  @Argument(help: "The file; it must not exist.") var file: String

  func run() async throws {
    let folder = server.folder
    let settings = try folder.settings()
    // Reserves the name, with its mode, before the file has any private data.
    try ServerFolder.write(file, [], mode: 0o600)
    do {
      let source = try folder.store(settings)
      let copy = try SQLiteStore(path: file)
      let rows = try await source.copy(to: copy, ServerFolder.migrations)
      try await copy.migrate(BackupFile.migrations)
      await source.close()
      // Last of all, so that a backup that has them is complete.
      let files = try folder.files()
      try await copy.write { transaction in
        for file in files {
          try transaction.run(
            "INSERT INTO backup_file (path, mode, content) VALUES (?, ?, ?)",
            [.text(file.path), .integer(Int64(file.mode)), .text(file.content.base64EncodedString())])
        }
      }
      await copy.close()
      sync()
      print("\(file): \(rows) rows and \(files.count) files")
    } catch {
      for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: file + suffix) }
      throw error
    }
  }
}

struct Restore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Makes a server's folder from a backup.")
  @Argument(help: "The backup.") var file: String
  @Argument(help: "The folder; it must not exist.") var dir: String
  @Option(help: ArgumentHelp("A PostgreSQL database, instead of what the server had.", valueName: "url"))
  var database: String?
  @Flag(help: "A database in a file, instead of what the server had.") var sqlite = false

  func validate() throws {
    if sqlite && database != nil { throw ValidationError("give one of --database and --sqlite") }
  }

  func run() async throws {
    let folder = ServerFolder(dir)
    guard !FileManager.default.fileExists(atPath: folder.path) else { throw ServerError.inTheWay(folder.path) }
    guard FileManager.default.fileExists(atPath: file) else { throw ServerError.missing(file) }
    // SQLite writes its locks. If it cannot, it gives no reason.
    guard access(file, R_OK | W_OK) == 0 else { throw ServerError.file(file, String(cString: strerror(errno))) }
    let copy: SQLiteStore
    do { copy = try SQLiteStore(path: file) } catch { throw ServerError.damaged(file, "it is not a backup") }
    guard
      try await copy.read({ !(try $0.run("SELECT 1 AS one FROM sqlite_master WHERE name = 'backup_file'").isEmpty) })
    else { throw ServerError.damaged(file, "it is not a whole backup") }
    let files = try await copy.read { transaction in
      try transaction.run("SELECT path, mode, content FROM backup_file").map {
        ($0.text("path"), mode_t($0.integer("mode")), $0.text("content"))
      }
    }
    guard let kept = files.first(where: { $0.0 == ServerFolder.settings }), let text = Data(base64Encoded: kept.2)
    else { throw ServerError.damaged(file, "it is not a whole backup") }
    var settings = try ServerFolder.Settings(parsing: text, "\(file): \(ServerFolder.settings)")
    if sqlite || database != nil { settings.database = database }
    try ServerFolder.makeFolder(folder.path, mode: 0o755)
    do {
      for (name, mode, content) in files where name != ServerFolder.settings {
        guard !name.hasPrefix("/"), !name.split(separator: "/").contains(".."), let data = Data(base64Encoded: content)
        else { throw ServerError.damaged(file, "it names a file outside the folder") }
        let path = folder.path(name)
        try folder.makeParents(of: name)
        try ServerFolder.write(path, Array(data), mode: mode)
      }
      try ServerFolder.makeFolder(folder.path("run"), mode: 0o700)
      try folder.place.relocate(now: Int64(Date.now.timeIntervalSince1970))
      if let plugin = try folder.place.brokerPlugin(), !FileManager.default.fileExists(atPath: plugin) {
        try folder.place.setBrokerPlugin(BrokerPlugin.path)
        print("\(plugin) is not here: operator/mosquitto.conf has \(BrokerPlugin.path ?? "a list of all vehicles")")
      }
      try settings.rabbitMQ?.configure(folder)
      // Everything made here can be deleted with the folder, except a PostgreSQL database.
      let store = try folder.store(settings, isNew: true)
      let rows = try await copy.copy(to: store, ServerFolder.migrations, without: BackupFile.migrations)
      await store.close()
      // After a crash `stepfleet.json` exists only if everything else does.
      sync()
      try folder.write(settings)
      sync()
      print("\(folder.path): \(rows) rows and \(files.count) files")
    } catch {
      try? FileManager.default.removeItem(atPath: folder.path)
      throw error
    }
    await copy.close()
  }
}

struct Check: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Looks for what does not fit together in a server's folder and database; changes nothing.")
  @OptionGroup var server: ServerOption
  @Argument(help: "The server's folder, in place of --dir.") var folder: String?

  func validate() throws {
    if folder != nil && server.dir != nil { throw ValidationError("give one of a folder and --dir") }
  }

  func run() async throws {
    let folder = folder.map { ServerFolder($0) } ?? server.folder
    let settings = try folder.settings()
    let store = try folder.store(settings)
    var defects = try await store.defects()
    let expected = Set(ServerFolder.migrations.map(\.name))
    let isCurrent = try await store.migrationsMade() == expected
    if !isCurrent {
      defects.append("the database is of another version of stepfleet")
    }
    defects += try await store.read { transaction in
      let overlaps = try transaction.run(
        """
        SELECT a.id AS a, b.id AS b FROM booking a JOIN booking b ON a.vehicle = b.vehicle AND a.id < b.id
        WHERE a.state IN ('booked', 'active') AND b.state IN ('booked', 'active')
          AND a.begins < b.ends AND b.begins < a.ends
        """)
      return overlaps.map { "the bookings \($0.text("a")) and \($0.text("b")) overlap" }
    }
    let vehicles = try await store.read { transaction in
      try transaction.run("SELECT id, name, folder FROM vehicle WHERE service <> 'removed'").map {
        ($0.text("id"), $0.text("name"), $0.text("folder"))
      }
    }
    for (id, name, vehicle) in vehicles {
      do {
        if try folder.place.record(vehicle)?.vehicle.uuid.description != id {
          defects.append("the operator does not know the vehicle \(name) (\(id))")
        }
      } catch {
        defects.append("the vehicle \(name) (\(id)): \(error)")
      }
    }
    let now = Int64(Date.now.timeIntervalSince1970)
    for (id, name, _) in isCurrent ? vehicles : [] {
      defects += try await EventCheck.defects(
        of: id, named: name, keptSince: now - settings.retentionDays * 86_400, in: store)
    }
    _ = try folder.place.ledger(now: now)
    for jti in isCurrent ? try await store.read({ try AccessTable.unknown(at: now, in: $0) }) : [] {
      defects.append("the booking's access and the token \(jti) do not fit together; `serve` mends it when it starts")
    }
    for jti in isCurrent ? try await store.read({ try AccessTable.notWithdrawn(at: now, in: $0) }) : [] {
      defects.append("the token \(jti) should be revoked, and is not yet; `serve` does it when it starts")
    }
    await store.close()
    for file in try folder.files(skipsCredentials: true) where file.isSecret && file.mode & 0o077 != 0 {
      defects.append("\(folder.path(file.path)) can be read by others")
    }
    let certificate = folder.path("tls/server.pem")
    let end = (try? NIOSSLCertificate.fromPEMFile(certificate).first)?.map { Int64($0.notValidAfter) }
    if end.map({ $0 < now + 30 * 86_400 }) ?? true {
      defects.append("\(certificate) \(end == nil ? "cannot be read" : "ends within 30 days")")
    }
    if access(settings.sendmail, X_OK) != 0 {
      let reason = String(cString: strerror(errno))
      defects.append("\(settings.sendmail) cannot be run, so nobody gets a code by mail: \(reason)")
    }
    if let hook = settings.hook, access(hook, X_OK) != 0 {
      defects.append("\(hook) cannot be run: \(String(cString: strerror(errno)))")
    }
    for defect in defects { print(defect) }
    guard defects.isEmpty else { throw ServerError.defects(defects.count) }
    print("\(folder.path): nothing is wrong")
  }
}

extension ServerFolder {
  fileprivate struct File {
    let path: String
    let mode: mode_t
    let content: Data

    var isSecret: Bool {
      path.hasSuffix(".key") || path.hasSuffix(".jwk") || path.hasSuffix("ledger.json") || path == "stepfleet.json"
    }
  }

  /// Everything in the folder except the files that a server creates again.
  ///
  /// A key may be a link to one of the service's credentials. Whoever cannot read it gets no backup, because one
  /// without that key would be of no use.
  ///
  /// - Parameter skipsCredentials: whether to leave out links to keys that cannot be read.
  fileprivate func files(skipsCredentials: Bool = false) throws -> [File] {
    guard let names = FileManager.default.enumerator(atPath: path) else { throw ServerError.notFleet(path) }
    var files: [File] = []
    for case let name as String in names {
      let attributes = names.fileAttributes ?? [:]
      if BackupFile.left.contains(name) {
        names.skipDescendants()
      } else if attributes[.type] as? FileAttributeType == .typeRegular {
        guard let content = FileManager.default.contents(atPath: path(name)) else {
          throw ServerError.file(path(name), "cannot be read")
        }
        let mode = mode_t((attributes[.posixPermissions] as? NSNumber)?.uint32Value ?? 0o600)
        files.append(File(path: name, mode: mode, content: content))
      } else if attributes[.type] as? FileAttributeType == .typeSymbolicLink,
        name.hasSuffix(".jwk") || name.hasSuffix(".key")
      {
        if let content = FileManager.default.contents(atPath: path(name)) {
          files.append(File(path: name, mode: 0o600, content: content))
        } else if !skipsCredentials {
          throw ServerError.file(path(name), "is a link to a key that cannot be read here: see stepfleet(8), KEYS")
        }
      }
    }
    return files.sorted { $0.path < $1.path }
  }

  /// The folders above a file. The operator's keys are in a private folder.
  fileprivate func makeParents(of name: String) throws {
    let parts = name.split(separator: "/").dropLast()
    for count in parts.indices {
      let folder = parts[...count].joined(separator: "/")
      let isInner = folder.hasPrefix("operator/operator")
      try Self.makeFolder(path(folder), mode: isInner ? 0o700 : 0o755)
    }
  }
}
