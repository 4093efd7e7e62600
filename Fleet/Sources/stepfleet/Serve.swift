import API
import ArgumentParser
import Domain
import Encoding
import Foundation
import Hummingbird
import HummingbirdTLS
import Logging
import Login
import NIOCore
import NIOSSL
import ServiceLifecycle
import Store
import Synchronization
import UnixSignals
import Web

struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Serves riders, until it is told to stop (SIGTERM).")

  @Argument(help: "The server's folder.")
  var dir: String

  @Option(help: "Another TCP port than the folder's: several servers can share one PostgreSQL database.")
  var port: Int?

  @Flag(help: "Log every request.")
  var verbose = false

  func run() async throws {
    let folder = ServerFolder(dir)
    let settings = try folder.settings()
    let port = port ?? settings.port
    guard ServerFolder.ports.contains(port) else { throw ServerError.usage("a port is 1 to 65535") }
    try ServerFolder.makeFolder(folder.path("run"), mode: 0o700)
    let socket = folder.path(Admin.socket(port == settings.port ? nil : port))
    try Admin.checkLength(socket)
    let lock = try FolderLock(
      folder.path(settings.database == nil ? "run/lock" : "run/lock-\(port)"), of: folder.path)
    defer { withExtendedLifetime(lock) {} }

    let level: Logger.Level = verbose ? .info : .notice
    LoggingSystem.bootstrap { JSONLog(label: $0, logLevel: level) }
    let logger = Logger(label: "stepfleet")
    let clock: Clock = { Int64(Date.now.timeIntervalSince1970) }
    let store = try folder.store(settings)
    try await store.migrate(ServerFolder.migrations)
    let desk = FolderDesk(folder.place, logger: logger, clock: clock)
    let service = FleetService(store: store, desk: desk, logger: logger, limit: settings.bookings, clock: clock)
    let login = LoginService(
      settings: LoginSettings(
        origin: settings.origin, terms: try folder.terms(), burst: settings.burst,
        isShared: settings.database != nil), store: store,
      mailer: Sendmail(program: settings.sendmail, from: EmailAddress(settings.mailFrom)!, logger: logger),
      hooks: service.hooks, logger: logger, clock: clock)

    let metrics = Metrics()
    let riders = Router(context: FleetContext.self, options: .autoGenerateHeadEndpoints)
    riders.add(middleware: Watch(metrics))
    login.addRoutes(to: riders)
    service.addRoutes(to: riders, login)
    metrics.addRoutes(to: riders)
    riders.refuseOtherMethods()
    let operators = Router(context: FleetContext.self)
    // The operator's requests are counted separately, because everybody can read /metrics.
    operators.add(middleware: Watch(Metrics()))
    login.addAdminRoutes(to: operators)
    service.addAdminRoutes(to: operators, login)

    var tls = try TLSConfiguration.makeServerConfiguration(
      certificateChain: NIOSSLCertificate.fromPEMFile(folder.path("tls/server.pem")).map { .certificate($0) },
      privateKey: .privateKey(NIOSSLPrivateKey(file: folder.path("tls/server.key"), format: .pem)))
    tls.minimumTLSVersion = .tlsv12
    // Both sockets listen: riders and the operator can send requests.
    let starting = Starting()
    let onServerRunning: @Sendable (any Channel) async -> Void = { _ in
      guard starting.isLast() else { return }
      logger.notice("serving", metadata: ["origin": "\(settings.origin)", "port": "\(port)"])
    }
    let open = Application(
      router: riders,
      server: try .tls(.http1(configuration: .init(idleTimeout: .seconds(30))), tlsConfiguration: tls),
      configuration: .init(address: .hostname(Self.anyAddress, port: port), serverName: nil),
      services: [Housekeeping(service: service, login: login, logger: logger), Following(service: service)],
      onServerRunning: onServerRunning, logger: logger)
    let admin = Application(
      router: operators, configuration: .init(address: .unixDomainSocket(path: socket), serverName: nil),
      onServerRunning: onServerRunning, logger: logger)
    // Publishes what the server had not published when it stopped.
    try await service.publishToAll()
    let group = ServiceGroup(
      configuration: .init(
        services: [open, admin], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
    try await group.run()
    await login.finish()
    await store.close()
    unlink(socket)
    logger.notice("stopped")
  }
}

extension Serve {
  /// All IPv6 and IPv4 addresses, or only IPv4 if the kernel has no IPv6.
  private static var anyAddress: String {
    let probe = socket(AF_INET6, Int32(SOCK_STREAM.rawValue), 0)
    guard probe >= 0 else { return "0.0.0.0" }
    close(probe)
    return "::"
  }
}

/// The two servers that start at the same time.
private final class Starting: Sendable {
  private let left = Mutex(2)

  /// Whether the other server already runs.
  func isLast() -> Bool {
    left.withLock {
      $0 -= 1
      return $0 == 0
    }
  }
}

extension FleetService {
  /// The bookings' part of ending and exporting an account.
  fileprivate var hooks: AccountHooks {
    var hooks = AccountHooks()
    hooks.revoke = { [self] in try await revoke(.account($0)) }
    hooks.export = { [self] in try await export($0) }
    return hooks
  }
}

/// Applies the effects of time once a minute.
private struct Housekeeping: Service {
  let service: FleetService
  let login: LoginService
  let logger: Logger

  func run() async throws {
    try? await cancelWhenGracefulShutdown {
      while true {
        // A failure of one task must not prevent the other.
        for tidy in [service.tidy, login.tidy] {
          do { try await tidy() } catch {
            logger.error("housekeeping failed", metadata: ["error": "\(error)"])
          }
        }
        try await Task.sleep(for: .seconds(60))
      }
    }
  }
}

/// Follows the changes that other servers of the same database make.
private struct Following: Service {
  let service: FleetService

  func run() async throws {
    await cancelWhenGracefulShutdown { await service.followAnnouncements() }
  }
}

/// The log: one JSON object per line, on standard error.
private struct JSONLog: LogHandler {
  let label: String
  var logLevel: Logger.Level
  var metadata: Logger.Metadata = [:]

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let now = Date.now.timeIntervalSince1970
    let all = metadata.merging(event.metadata ?? [:]) { $1 }
    let json = JSON.object(
      [
        JSON.Member("time", .rounded(now, places: 3)), .init("level", .string(event.level.rawValue)),
        .init("message", .string("\(event.message)")),
      ] + all.sorted { $0.key < $1.key }.map { .init($0.key, .string("\($0.value)")) })
    // If the log cannot be written, its disk may be full. The server continues.
    try? FileHandle.standardError.write(contentsOf: Data((json.text + "\n").utf8))
  }
}
