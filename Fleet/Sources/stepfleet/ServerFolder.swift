import API
import Booking
import Crypto
import Domain
import Encoding
import Foundation
import Login
import Operator
import Store

/// A server's folder.
///
///     stepfleet.json         how it serves (mode 0600: a database's address may have a password). It is
///                            written last, so that a folder which a crash left half made is no server
///     terms.txt              what riders accept
///     tls/server.pem, .key   who it is to riders; a public authority's files can take their place
///     operator/              as `stepctl operator init` makes it: keys, authority, the vehicles' broker
///     data/fleet.sqlite      vehicles, bookings, accounts (not with PostgreSQL)
///     rabbitmq/              the configuration of RabbitMQ, where it is the vehicles' broker
///     run/admin.sock         where `stepfleet vehicle` and the like ask (folder: mode 0700)
struct ServerFolder: Sendable {
  let path: String

  init(_ path: String) { self.path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path }

  func path(_ name: String) -> String { "\(path)/\(name)" }

  var place: FleetOperator { FleetOperator(path("operator")) }

  /// The server's settings.
  struct Settings: Equatable {
    var host: String
    var port: Int
    /// A libpq connection URI; nil for SQLite.
    var database: String?
    /// The sender of mails.
    var mailFrom: String
    var sendmail: String
    /// A program that gets what riders are told; nil for none.
    var hook: String?
    /// How many logins and mails one network may ask for at once.
    var burst = LoginSettings.burst
    /// The maximum number of an account's bookings that are not over.
    var bookings = BookingRules.maximumBookings
    /// For how many days what vehicles have reported is kept.
    var retentionDays = FleetService.retentionDays
    /// The maximum number of riders' connections at once: in all, and from one network.
    var connections = Self.connections.all
    var connectionsEach = Self.connections.each
    static let connections: (all: Int64, each: Int64) = (2000, 250)

    /// RabbitMQ as the vehicles' broker; nil for mosquitto.
    var rabbitMQ: RabbitMQ?

    struct RabbitMQ: Equatable {
      /// Where it asks the server, at 127.0.0.1.
      var port: Int
      /// Where the server reaches the nodes, at the broker's host; empty if there is one.
      var nodes: [Int]
    }

    var origin: String {
      // RFC 3986 3.2.2: an IPv6 address is in brackets. Browsers send a name in lower case (RFC 6454, 4).
      let name = host.contains(":") ? "[\(host)]" : host.lowercased()
      return port == 443 ? "https://\(name)" : "https://\(name):\(port)"
    }
  }

  static let settings = "stepfleet.json"
  /// The largest valid port.
  static let ports = 1...65_535

  func settings() throws(ServerError) -> Settings {
    let path = path(Self.settings)
    guard let data = FileManager.default.contents(atPath: path) else { throw .notFleet(self.path) }
    return try Settings(parsing: data, path)
  }

  func write(_ settings: Settings) throws {
    var members: [JSON.Member] = [
      .init("host", .string(settings.host)), .init("port", .integer(Int64(settings.port))),
      .init("mail_from", .string(settings.mailFrom)), .init("sendmail", .string(settings.sendmail)),
      .init("burst", .integer(settings.burst)), .init("bookings", .integer(settings.bookings)),
      .init("retention_days", .integer(settings.retentionDays)), .init("connections", .integer(settings.connections)),
      .init("connections_each", .integer(settings.connectionsEach)),
    ]
    if let hook = settings.hook { members.append(.init("hook", .string(hook))) }
    if let database = settings.database { members.append(.init("database", .string(database))) }
    if let rabbitMQ = settings.rabbitMQ { members.append(.init("rabbitmq", rabbitMQ.json)) }
    // The file appears under its name complete or not at all, because it marks a complete folder.
    try Self.replace(path(Self.settings), Array((JSON.object(members).text + "\n").utf8), mode: 0o600)
  }

  /// - Parameter isNew: true creates a missing SQLite file. False throws, because an empty database in place of a lost
  ///   one would mean that nobody has ever booked.
  func store(_ settings: Settings, isNew: Bool = false) throws -> any Store {
    if let url = settings.database { return try PostgresStore(url: url) }
    let file = path("data/fleet.sqlite")
    guard isNew || FileManager.default.fileExists(atPath: file) else { throw ServerError.missing(file) }
    try Self.makeFolder(path("data"), mode: 0o700)
    return try SQLiteStore(path: file)
  }

  /// All changes of the tables, in the order of the modules.
  static let migrations = LoginStore.migrations + FleetTables.migrations

  /// The terms of use.
  func terms() throws(ServerError) -> String {
    let path = path("terms.txt")
    guard let data = FileManager.default.contents(atPath: path), let text = String(validating: data, as: UTF8.self)
    else { throw .file(path, "cannot be read as text") }
    return text
  }

  /// The certificate of the authority that signs the server's own certificate.
  func authorityFingerprint() throws -> String {
    SHA256.hash(data: Array(try place.authority())).map { byte in
      let digits = String(byte, radix: 16, uppercase: true)
      return digits.count == 1 ? "0" + digits : digits
    }.joined(separator: ":")
  }

  static func makeFolder(_ path: String, mode: mode_t) throws(ServerError) {
    guard mkdir(path, mode) == 0 || errno == EEXIST else { throw .file(path, String(cString: strerror(errno))) }
  }

  /// Creates a file, or replaces one. What root writes belongs to the owner of its folder, as a service's files do.
  static func replace(_ path: String, _ bytes: [UInt8], mode: mode_t) throws(ServerError) {
    let new = "\(path).new"
    unlink(new)
    try write(new, bytes, mode: mode, ofFolder: true)
    guard rename(new, path) == 0 else { throw .file(path, String(cString: strerror(errno))) }
  }

  /// Gives what root has made in a folder to the folder's owner.
  static func giveAway(_ file: Int32, _ path: String) throws(ServerError) {
    guard geteuid() == 0 else { return }
    var folder = stat()
    let parent = (path as NSString).deletingLastPathComponent
    guard stat(parent.isEmpty ? "." : parent, &folder) == 0, fchown(file, folder.st_uid, folder.st_gid) == 0 else {
      throw .file(path, String(cString: strerror(errno)))
    }
  }

  /// Creates a new file, and syncs it to the medium.
  ///
  /// - Parameter ofFolder: whether root gives it to the owner of its folder.
  static func write(
    _ path: String, _ bytes: [UInt8], mode: mode_t, ofFolder: Bool = false
  ) throws(ServerError) {
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
    guard file >= 0 else { throw .file(path, String(cString: strerror(errno))) }
    defer { close(file) }
    if ofFolder {
      try giveAway(file, path)
      // Whatever root's umask is: the broker's user has to read it.
      guard fchmod(file, mode) == 0 else { throw .file(path, String(cString: strerror(errno))) }
    }
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(file, $0.baseAddress, $0.count) }
      guard count > 0 else { throw .file(path, String(cString: strerror(errno))) }
      rest = rest.dropFirst(count)
    }
    guard fsync(file) == 0 else { throw .file(path, String(cString: strerror(errno))) }
  }
}

extension ServerFolder.Settings {
  /// The allowed limits.
  private static let counts: ClosedRange<Int64> = 1...1_000_000

  /// - Parameter path: for errors.
  init(parsing data: Data, _ path: String) throws(ServerError) {
    let json: JSON
    do { json = try JSON(parsing: data) } catch { throw .damaged(path, "\(error)") }
    let known = [
      "host", "port", "database", "mail_from", "sendmail", "hook", "burst", "bookings", "retention_days", "connections",
      "connections_each", "rabbitmq",
    ]
    guard let members = json.object else { throw .damaged(path, "it is no JSON object") }
    if let unknown = members.first(where: { !known.contains($0.name) }) {
      let near = Spelling.nearest(to: unknown.name, among: known).map { "did you mean \($0)?" }
      throw .damaged(path, "\(unknown.name) is unknown: \(near ?? "it has \(known.joined(separator: ", "))")")
    }
    func take<Value>(_ name: String, _ form: String, _ value: Value?) throws(ServerError) -> Value {
      guard let value else { throw .damaged(path, "\(name) has to be \(form)") }
      return value
    }
    func count(_ name: String, usual: Int64) throws(ServerError) -> Int64 {
      let value = json[name].map { $0.integer } ?? usual
      return try take(
        name, "\(Self.counts.lowerBound) to \(Self.counts.upperBound)",
        value.flatMap { Self.counts.contains($0) ? $0 : nil })
    }
    func program(_ name: String) -> String? { json[name]?.string.flatMap { $0.hasPrefix("/") ? $0 : nil } }
    let host = try take("host", "a text", json["host"]?.string)
    let port = try take(
      "port", "1 to 65535", json["port"]?.integer.flatMap { ServerFolder.ports.contains(Int($0)) ? $0 : nil })
    let mailFrom = try take(
      "mail_from", "a mail address", json["mail_from"]?.string.flatMap { EmailAddress($0) == nil ? nil : $0 })
    let sendmail = try take("sendmail", "a program's path from / on", program("sendmail"))
    if json["hook"] != nil { _ = try take("hook", "a program's path from / on", program("hook")) }
    let burst = try count("burst", usual: LoginSettings.burst)
    let bookings = try count("bookings", usual: BookingRules.maximumBookings)
    let days = try count("retention_days", usual: FleetService.retentionDays)
    let connections = try count("connections", usual: Self.connections.all)
    let each = try count("connections_each", usual: Self.connections.each)
    let rabbitMQ = json["rabbitmq"].flatMap { RabbitMQ(json: $0) }
    if json["rabbitmq"] != nil {
      _ = try take("rabbitmq", "an object with port and nodes, a list of ports", rabbitMQ)
    }
    self.init(
      host: host, port: Int(port), database: json["database"]?.string, mailFrom: mailFrom, sendmail: sendmail,
      hook: json["hook"]?.string, burst: burst, bookings: bookings, retentionDays: days, connections: connections,
      connectionsEach: each, rabbitMQ: rabbitMQ)
  }
}

extension ServerFolder.Settings.RabbitMQ {
  fileprivate init?(json: JSON) {
    func port(_ json: JSON?) -> Int? {
      (json?.integer).map(Int.init).flatMap { ServerFolder.ports.contains($0) ? $0 : nil }
    }
    guard json.object?.count == 2, let own = port(json["port"]), let nodes = json["nodes"]?.array?.map(port),
      !nodes.contains(nil)
    else { return nil }
    self.init(port: own, nodes: nodes.compactMap(\.self))
  }

  fileprivate var json: JSON {
    ["port": .integer(Int64(port)), "nodes": .array(nodes.map { .integer(Int64($0)) })]
  }
}

/// Keeps a second server out of the folder for its lifetime.
final class FolderLock {
  private let file: Int32

  init(_ path: String, of folder: String) throws(ServerError) {
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw .file(path, String(cString: strerror(errno))) }
    guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
      close(file)
      throw .alreadyServed(folder)
    }
  }

  deinit { close(file) }
}
