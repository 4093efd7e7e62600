import API
import ArgumentParser
import CMalloc
import Domain
import Encoding
import Foundation
import Hummingbird
import HummingbirdCore
import HummingbirdTLS
import Logging
import Login
import NIOCore
import NIOSSL
import Operator
import ServiceLifecycle
import Store
import Synchronization
import UnixSignals
import Web

struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Serves riders, until it is told to stop (SIGTERM).",
    usage: "stepfleet serve [<options>] <dir>")

  @Argument(help: "The server's folder.")
  var dir: String

  @Option(help: "Another TCP port than the folder's: several servers can share one PostgreSQL database.")
  var port: Int?

  @Option(
    help: ArgumentHelp(
      "Serve the metrics for Prometheus at this TCP port too, to this computer alone.", valueName: "port"))
  var metricsPort: Int?

  @Option(
    help: ArgumentHelp(
      "Answer RabbitMQ at this TCP port instead of the folder's, so that several servers can run on one computer.",
      valueName: "port"))
  var rabbitmqPort: Int?

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

    // Before anything else begins.
    // Riders' devices know the folder's port. Servers that share a database are behind something that has it.
    let choice = settings.database == nil ? "`port` in \(folder.path(ServerFolder.settings))" : "--port"
    let address = try Self.address(port: port, choice: choice)
    if let metricsPort { try Self.checkOwnPort(metricsPort, choice: "--metrics-port") }
    if rabbitmqPort != nil, settings.rabbitMQ == nil {
      throw ServerError.usage(
        "--rabbitmq-port is for a server whose broker is RabbitMQ: type `stepfleet rabbitmq` first")
    }
    let rabbitmqPort = settings.rabbitMQ.map { self.rabbitmqPort ?? $0.port }
    let ports = [port, metricsPort, rabbitmqPort].compactMap(\.self)
    guard Set(ports).count == ports.count else {
      throw ServerError.usage("--port, --metrics-port and --rabbitmq-port have to differ: \(ports)")
    }
    if let rabbitmqPort { try Self.checkOwnPort(rabbitmqPort, choice: "--rabbitmq-port") }
    let asked = settings.rabbitMQ == nil ? 0 : 512
    let most = Self.connections(settings.connections, besides: 256 + asked)

    let level: Logger.Level = verbose ? .info : .notice
    LoggingSystem.bootstrap { JSONLog(label: $0, logLevel: level) }
    let logger = Logger(label: "stepfleet")
    let clock: Clock = { Int64(Date.now.timeIntervalSince1970) }
    let store = try folder.store(settings)
    try await store.migrate(ServerFolder.migrations)
    let broker =
      try settings.rabbitMQ.map { FleetBroker.rabbitMQ(nodes: $0.nodes.map { UInt16($0) }) }
      ?? .mosquitto(hasPlugin: folder.place.brokerPlugin() != nil)
    let issuer = FolderIssuer(folder.place, broker: broker, logger: logger, clock: clock)
    let service = FleetService(
      store: store, issuer: issuer, logger: logger, limit: settings.bookings,
      retentionDays: settings.retentionDays, clock: clock)
    do { try await service.checkOperator() } catch let error as OtherOperator {
      throw ServerError.otherOperator(folder.path("operator"), key: error.key, expected: error.expected)
    }
    let isReady = await service.takeInFolder()
    let publisher = NoticePublisher(
      store: store, issuer: issuer, isAlone: settings.database == nil, logger: logger, clock: clock)
    let listener = EventListener(
      store: store, issuer: issuer, presence: service.presence, logger: logger, clock: clock)
    func sendmail() -> Sendmail {
      Sendmail(program: settings.sendmail, from: EmailAddress(settings.mailFrom)!, logger: logger)
    }
    let mailer = sendmail()
    for program in [settings.sendmail] + (settings.hook.map { [$0] } ?? []) where access(program, X_OK) != 0 {
      logger.warning(
        "a program cannot be run: riders get no messages",
        metadata: [
          "program": "\(program)", "error": "\(String(cString: strerror(errno)))",
        ])
    }
    let hook = settings.hook.map { ProgramQueue($0, logger: logger) }
    let messages = Messages(mailer: sendmail(), hook: hook, host: settings.host)
    let login = LoginService(
      settings: LoginSettings(
        origin: settings.origin, terms: try folder.terms(), burst: settings.burst,
        isShared: settings.database != nil), store: store,
      mailer: mailer,
      hooks: service.hooks, logger: logger, clock: clock)

    let (chain, key) = try Self.identity(in: folder)
    var tls = TLSConfiguration.makeServerConfiguration(
      certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
    tls.minimumTLSVersion = .tlsv12
    let connections = Connections(.init(all: most, each: Int(settings.connectionsEach)))
    // The operator's, on the socket and on the metrics' port.
    let own = Connections(.init(all: 64, each: 64))
    // RabbitMQ's: many clients connect at once when a node was away.
    let asking = Connections(.init(all: asked, each: asked))
    let readGauges = Self.gauges(
      service, issuer, connections, server: chain.first,
      clock: clock)
    let routers = Self.routers(service, login, readGauges)
    let local = [(metricsPort, routers.observers, own), (rabbitmqPort, routers.broker, asking)].compactMap {
      port, router, connections in port.map { ($0, router, connections) }
    }

    // All listen: riders and the operator can send requests.
    let starting = Starting(2 + local.count)
    let onServerRunning: @Sendable (any Channel) async -> Void = { _ in
      guard starting.isLast() else { return }
      logger.notice("serving", metadata: ["origin": "\(settings.origin)", "port": "\(port)"])
    }
    let open = Application(
      router: routers.riders,
      server: .init { [tls] responder in
        WatchedChannel(try TLSChannel(watchedHTTP1(responder), tlsConfiguration: tls), connections)
      },
      configuration: .init(address: .hostname(address, port: port), serverName: nil),
      services: [
        Housekeeping(service: service, login: login, logger: logger),
        Telling(service: service, messages: messages, logger: logger),
        Following(service: service),
        Publishing(service: service, publisher: publisher, isReady: isReady), Listening(listener: listener),
      ],
      onServerRunning: onServerRunning, logger: logger)
    func plain(_ connections: Connections) -> HTTPServerBuilder {
      HTTPServerBuilder { WatchedChannel(watchedHTTP1($0), connections) }
    }
    let admin = Application(
      router: routers.operators, server: plain(own),
      configuration: .init(address: .unixDomainSocket(path: socket), serverName: nil),
      onServerRunning: onServerRunning, logger: logger)
    let others = local.map { port, router, connections in
      Application(
        router: router, server: plain(connections),
        configuration: .init(address: .hostname("127.0.0.1", port: port), serverName: nil),
        onServerRunning: onServerRunning, logger: logger)
    }
    try await service.publishToAll()
    let group = ServiceGroup(
      configuration: .init(
        // They stop from the last to the first, one after the other.
        services: [admin] + others + [
          open, Ending(service: service, connections: [connections, own, asking], logger: logger),
        ],
        gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
    try await group.run()
    await login.finish()
    await mailer.finish()
    await store.close()
    unlink(socket)
    logger.notice("stopped")
  }

  /// What the clients may ask: riders, the operator, whoever observes the server, and RabbitMQ.
  private struct Routers {
    let riders, operators, observers, broker: Router<FleetContext>
  }

  private static func routers(
    _ service: FleetService, _ login: LoginService, _ gauges: @escaping @Sendable () async throws -> [Gauge]
  ) -> Routers {
    let metrics = Metrics()
    let riders = Router(context: FleetContext.self, options: .autoGenerateHeadEndpoints)
    riders.add(middleware: Watch(metrics))
    login.addRoutes(to: riders)
    service.addRoutes(to: riders, login)
    riders.refuseOtherMethods()
    // Only riders' requests are counted.
    let (operators, observers) = (Router(context: FleetContext.self), Router(context: FleetContext.self))
    let broker = Router(context: FleetContext.self)
    for router in [operators, observers, broker] { router.add(middleware: Watch(Metrics())) }
    for router in [operators, observers] { metrics.addAdminRoutes(to: router, gauges) }
    service.addBrokerRoutes(to: broker)
    login.addAdminRoutes(to: operators)
    service.addAdminRoutes(to: operators, login)
    return Routers(riders: riders, operators: operators, observers: observers, broker: broker)
  }
}

extension Serve {
  /// What the operator may want to know, besides how long requests took.
  private static func gauges(
    _ service: FleetService, _ issuer: FolderIssuer, _ connections: Connections, server: NIOSSLCertificate?,
    clock: @escaping Clock
  ) -> @Sendable () async throws -> [Gauge] {
    {
      var gauges = try await service.gauges()
      let (open, refused) = connections.counts
      gauges.append(Gauge("connections", "Riders' connections that are open.", Int64(open)))
      gauges.append(
        Gauge(
          "refused_connections", "Riders' connections that were refused since this server began: there were too many.",
          Int64(refused)))
      // The other numbers do not depend on files that cannot be read; what is missing shows.
      var ends = (try? await issuer.certificateEnds()) ?? [:]
      ends["server"] = server.map { Int64($0.notValidAfter) }
      let now = clock()
      for (holder, end) in ends.sorted(by: { $0.key < $1.key }) {
        let days = Int64((Double(end - now) / 86_400).rounded(.down))
        gauges.append(
          Gauge(
            "certificate_days", "Whole days until a certificate ends: of all vehicles' the first one.", days,
            label: ("holder", holder)))
      }
      return gauges
    }
  }

  /// How many riders' connections there can be: each is an open file, and the rest of the server needs some, too.
  ///
  /// - Parameter others: how many files all else needs.
  private static func connections(_ wanted: Int64, besides others: Int) -> Int {
    let own = rlim_t(others)
    var files = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &files) == 0 else { return Int(wanted) }
    let needed = rlim_t(wanted) + own
    if files.rlim_cur < needed {
      files.rlim_cur = min(needed, files.rlim_max)
      setrlimit(resource, &files)
      getrlimit(resource, &files)
    }
    return Int(min(needed, max(files.rlim_cur, own + 1)) - own)
  }

  /// The server's certificate with its chain, and its key.
  private static func identity(in folder: ServerFolder) throws -> ([NIOSSLCertificate], NIOSSLPrivateKey) {
    func read<Content>(
      _ name: String, _ kind: String, _ body: (String) throws -> Content
    ) throws(ServerError) -> Content {
      let path = folder.path(name)
      guard access(path, R_OK) == 0 else { throw .file(path, String(cString: strerror(errno))) }
      do { return try body(path) } catch { throw .damaged(path, "it contains no \(kind) in PEM form") }
    }
    return try (
      read("tls/server.pem", "certificate") { try NIOSSLCertificate.fromPEMFile($0) },
      read("tls/server.key", "private key") { try NIOSSLPrivateKey(file: $0, format: .pem) }
    )
  }

  private static func checkOwnPort(_ port: Int, choice: String) throws {
    guard ServerFolder.ports.contains(port) else { throw ServerError.usage("a port is 1 to 65535") }
    let reason = try bindingFails(SocketAddress(ipAddress: "127.0.0.1", port: port))
    guard reason == 0 else { throw ServerError.cannotListen("127.0.0.1:\(port)", reason, choice: choice) }
  }

  /// The address to listen at: all of IPv6 and IPv4 where this computer has IPv6, else all of IPv4.
  ///
  /// - Parameter choice: what chooses another port, for the error.
  /// - Throws: `ServerError.cannotListen`.
  private static func address(port: Int, choice: String) throws -> String {
    // NIO asks getaddrinfo(3), which takes no IPv6 address on a computer that has only IPv4 addresses.
    if let any = try? SocketAddress.makeAddressResolvingHost("::", port: port) {
      let reason = bindingFails(any)
      if reason == 0 { return "::" }
      guard [EAFNOSUPPORT, EADDRNOTAVAIL].contains(reason) else {
        throw ServerError.cannotListen("[::]:\(port)", reason, choice: choice)
      }
    }
    let reason = try bindingFails(SocketAddress(ipAddress: "0.0.0.0", port: port))
    guard reason == 0 else { throw ServerError.cannotListen("0.0.0.0:\(port)", reason, choice: choice) }
    return "0.0.0.0"
  }

  /// - Returns: why this process cannot listen there, as errno(3); 0 if it can.
  private static func bindingFails(_ address: SocketAddress) -> Int32 {
    let probe = socket(
      address.protocol == .inet6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue), Int32(IPPROTO_TCP))
    guard probe >= 0 else { return errno }
    defer { close(probe) }
    var isReused: Int32 = 1
    setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &isReused, socklen_t(MemoryLayout<Int32>.size))
    return address.withSockAddr { bind(probe, $0, socklen_t($1)) } == 0 ? 0 : errno
  }
}

/// The listeners that start at the same time.
private final class Starting: Sendable {
  private let left: Mutex<Int>

  init(_ count: Int) { left = Mutex(count) }

  /// Whether all others already listen.
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
    hooks.revoke = { [self] in try await revoke(.account($0, isTold: $1)) }
    hooks.noteSuspension = { [self] in try await noteSuspension(of: $0) }
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
        // What many clients needed at once, glibc would keep.
        malloc_trim(0)
        try await Task.sleep(for: .seconds(60))
      }
    }
  }
}

/// Sends messages to riders: looks for them twice a minute.
private struct Telling: Service {
  let service: FleetService
  let messages: Messages
  let logger: Logger

  func run() async throws {
    try? await cancelWhenGracefulShutdown {
      while true {
        do { try await messages.send(from: service) } catch {
          logger.error("messages to riders wait", metadata: ["error": "\(error)"])
        }
        try await Task.sleep(for: .seconds(30))
      }
    }
  }
}

/// Ends the server in time, whatever its clients do: who still reads an answer has a few seconds.
private struct Ending: Service {
  let service: FleetService
  let connections: [Connections]
  let logger: Logger

  /// Seconds from the signal.
  private static let (patience, limit) = (5.0, 9.0)

  func run() async throws {
    try? await gracefulShutdown()
    service.endWaiting()
    // This service ends now, because the others wait for it.
    DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) { for one in connections { one.end() } }
    DispatchQueue.global().asyncAfter(deadline: .now() + Self.limit) {
      // What was confirmed is on the medium, and the next start completes what was begun.
      logger.warning("stopped, with work that had not ended")
      _exit(0)
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

/// Tells vehicles what they have to know.
private struct Publishing: Service {
  let service: FleetService
  let publisher: NoticePublisher
  /// Whether the operator's folder was taken in.
  let isReady: Bool

  func run() async throws {
    try? await cancelWhenGracefulShutdown {
      var isReady = isReady
      while !isReady {
        try await Task.sleep(for: .seconds(10))
        isReady = await service.takeInFolder()
      }
      await publisher.run()
    }
  }
}

/// Hears what vehicles report.
private struct Listening: Service {
  let listener: EventListener

  func run() async throws {
    await cancelWhenGracefulShutdown { await listener.run() }
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
