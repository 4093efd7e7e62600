package import Domain
import Encoding
import Glibc
import HTTP
package import SystemIO

/// The user's login at a fleet's server, and the bookings that this device knows: `~/.config/stepctl/fleet`.
///
///     login.json     server, CA, tokens: mode 0600
///     bookings.json  what was booked, as the server last said
///     lock           held while tokens are changed
package struct FleetFolder: Sendable {
  package let path: String

  package init(_ path: String) { self.path = path }

  private var loginFile: String { "\(path)/login.json" }
  private var bookingsFile: String { "\(path)/bookings.json" }

  /// The stored server and login; nil if there never was one.
  package func login() throws -> SavedLogin? {
    guard Files.exists(loginFile) else { return nil }
    if try Files.isReadableByOthers(loginFile) { throw ReadableByOthers(path: loginFile) }
    guard let json = try? JSON(parsing: Files.readRegular(loginFile)), let login = SavedLogin(json) else {
      throw FleetError.damaged(loginFile)
    }
    return login
  }

  /// Changes the login, one program at a time: two simultaneous renewals would look like theft.
  ///
  /// - Parameter deadline: how long to wait for another program.
  package func change<Result>(
    until deadline: Instant, _ interruption: Interruption?,
    _ body: (SavedLogin?, _ save: (SavedLogin) throws(SystemError) -> Void) throws -> Result
  ) throws -> Result {
    try Files.createFolder(path, mode: 0o700)
    let lock = try FolderLock("\(path)/lock", O_RDWR | O_CREAT, until: deadline, interruption)
    defer { withExtendedLifetime(lock) {} }
    return try body(login()) { login throws(SystemError) in
      try Files.replace(loginFile, with: (login.json.text + "\n").utf8, mode: 0o600)
    }
  }

  /// The bookings that this device knows. An unreadable file counts as empty, because the server knows them.
  package func bookings() -> [Booking] {
    guard Files.exists(bookingsFile), let bytes = try? Files.readRegular(bookingsFile),
      let items = try? JSON(parsing: bytes).array
    else { return [] }
    return items.compactMap { try? Booking($0, from: "") }
  }

  /// Keeps a new or changed booking among the known ones, also while other programs do so.
  package func keep(_ booking: Booking, now: Int64) throws {
    try FolderLock.during(path) { try write(bookings().filter { $0.id != booking.id } + [booking], now: now) }
  }

  /// Keeps the bookings that may still be needed, in place of the known ones.
  package func keep(_ bookings: [Booking], now: Int64) throws {
    try FolderLock.during(path) { try write(bookings, now: now) }
  }

  private func write(_ bookings: [Booking], now: Int64) throws {
    // A booking that ended early may have left a token here that still looks valid, for `Booking.lead` at most. The
    // booking is kept for that time, so that `stepctl` can say that it has ended.
    let left = bookings.filter { $0.to + ($0.isLive ? Booking.grace : Booking.lead) > now }
    try Files.replace(bookingsFile, with: (JSON.array(left.map(\.json)).text + "\n").utf8, mode: 0o600)
  }

  /// Forgets the bookings and the login, with the server's address.
  package func forget() throws {
    for file in [bookingsFile, loginFile] where unlink(file) == -1 && errno != ENOENT {
      throw SystemError("remove", file)
    }
    if Files.exists(path) { try StagingFolder.synchronize(path) }
  }

  package struct ReadableByOthers: Failure {
    let path: String
    package var exitStatus: ExitStatus { .noPermission }
    package var description: String { "\(path): can be read by others" }
    package var hint: String? { "chmod 600 \(path), and log in again if somebody may have read it" }
  }
}

/// The stored data of a server, and of a login there.
package struct SavedLogin: Equatable, Sendable {
  package var server: FleetAddress
  /// The only authorities that are trusted for this server, PEM; nil for the system's.
  package var authorities: String?
  package var email: String?
  package var tokens: Tokens?

  /// The server's tokens for the login. They are useless without the device's key, but secret all the same.
  package struct Tokens: Equatable, Sendable {
    package var access: String
    /// Unix time, by this computer's clock.
    package var expires: Int64
    package var refresh: String
    /// The Idempotency-Key of a renewal that has begun but is not answered yet.
    package var retry: String?
    package var tokenEndpoint: String
    package var revocationEndpoint: String

    package init(
      access: String, expires: Int64, refresh: String, retry: String? = nil, tokenEndpoint: String,
      revocationEndpoint: String
    ) {
      self.access = access
      self.expires = expires
      self.refresh = refresh
      self.retry = retry
      self.tokenEndpoint = tokenEndpoint
      self.revocationEndpoint = revocationEndpoint
    }
  }

  package init(server: FleetAddress, authorities: String? = nil, email: String? = nil, tokens: Tokens? = nil) {
    self.server = server
    self.authorities = authorities
    self.email = email
    self.tokens = tokens
  }

  var json: JSON {
    func text(_ value: String?) -> JSON { value.map(JSON.string) ?? .null }
    return [
      "server": .string(server.description), "ca": text(authorities), "email": text(email),
      "tokens": tokens.map { tokens in
        [
          "access": .string(tokens.access), "expires": .integer(tokens.expires), "refresh": .string(tokens.refresh),
          "retry": text(tokens.retry),
          "token_endpoint": .string(tokens.tokenEndpoint), "revocation_endpoint": .string(tokens.revocationEndpoint),
        ]
      } ?? .null,
    ]
  }

  init?(_ json: JSON) {
    guard let server = json["server"]?.string.flatMap({ try? FleetAddress($0) }) else { return nil }
    self.init(server: server, authorities: json["ca"]?.string, email: json["email"]?.string)
    guard let saved = json["tokens"], saved != .null else { return }
    guard let access = saved["access"]?.string, let expires = saved["expires"]?.integer,
      let refresh = saved["refresh"]?.string, let token = saved["token_endpoint"]?.string, server.has(token),
      let revocation = saved["revocation_endpoint"]?.string, server.has(revocation)
    else { return nil }
    tokens = Tokens(
      access: access, expires: expires, refresh: refresh, retry: saved["retry"]?.string, tokenEndpoint: token,
      revocationEndpoint: revocation)
  }
}
