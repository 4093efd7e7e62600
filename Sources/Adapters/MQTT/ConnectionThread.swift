import Glibc
import SystemIO

/// The thread that connects, serves the connection, and reconnects, until it has to stop.
final class ConnectionThread: Sendable {
  private let exchange: Exchange
  private let reconnecting: MQTTConnection.Reconnecting
  private let settings: MosquittoClient.Settings
  private let preparation: TLSPreparation?

  init(
    exchange: Exchange, reconnecting: MQTTConnection.Reconnecting, settings: MosquittoClient.Settings,
    preparation: TLSPreparation?
  ) {
    self.exchange = exchange
    self.reconnecting = reconnecting
    self.settings = settings
    self.preparation = preparation
  }

  /// Starts the thread, which keeps this object until it ends.
  func start() throws(SystemError) {
    try DetachedThread.start(run)
  }

  private func run() {
    var pacing = Pacing()
    while true {
      var established: Instant?
      let delay: Duration
      do {
        try connect(&established)
        break
      } catch {
        exchange.connectionEnded(error, isFinal: reconnecting == .never)
        let lasted = established.map { $0.duration(to: .now) } ?? .zero
        delay = pacing.next(after: error, lasting: lasted, chance: Double.random(in: 0...1))
      }
      if reconnecting == .never || !wait(for: delay) { break }
      exchange.connectionBegan()
    }
    exchange.threadEnded()
  }

  /// One connection, from name resolution to its end.
  ///
  /// Returns if the program closed the connection; any other end throws.
  private func connect(_ established: inout Instant?) throws(MQTTError) {
    let addresses = try resolve(settings.broker.host)
    let tls = try tlsContext()
    var failure: MQTTError?
    for address in addresses where !exchange.isClosing {
      let client = try MosquittoClient(settings, tls, exchange)
      defer { established = client.established }
      do {
        return try client.run(connectingTo: address)
      } catch {
        // A host with addresses of two families may be reachable by only one of them.
        guard error.isBeforeConnection else { throw error }
        if case .cannotConnect(let reason) = error, failure != nil, reason.isForWantOfWay { continue }
        failure = error
      }
    }
    if let failure, !exchange.isClosing { throw failure }
  }

  /// Nil for a connection without TLS.
  private func tlsContext() throws(MQTTError) -> TLSContext? {
    guard let files = settings.broker.tls else { return nil }
    if let prepared = try preparation?.take() { return prepared }
    return try TLSContext(files, settings.broker)
  }

  /// The numeric addresses of a host, in the order in which to try them (RFC 6724).
  private func resolve(_ host: String) throws(MQTTError) -> [String] {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var first: UnsafeMutablePointer<addrinfo>?
    let code = exchange.resolving { getaddrinfo(host, nil, &hints, &first) }
    guard code == 0 else { throw .cannotResolve(host: host, code: code) }
    defer { freeaddrinfo(first) }
    // If getaddrinfo(3) returns 0, it gives at least one address.
    let addresses = sequence(first: first!) { $0.pointee.ai_next }.compactMap {
      Connecting.numericHost($0.pointee.ai_addr, $0.pointee.ai_addrlen)
    }
    if addresses.isEmpty { throw .cannotResolve(host: host, code: EAI_NONAME) }
    return addresses
  }

  /// - Returns: false if the program closed the connection meanwhile.
  private func wait(for duration: Duration) -> Bool {
    let deadline = Instant.now + duration
    while !exchange.isClosing, .now < deadline {
      // A new publication wakes the thread too, but has to wait.
      guard let ready = try? waitReadable([exchange.work.number], until: deadline) else {
        // The kernel has no memory for poll(2) just now.
        usleep(200_000)
        continue
      }
      if ready[0] { exchange.work.clear() }
    }
    return !exchange.isClosing
  }
}

extension MQTTError {
  /// Whether TCP did not connect, so that nothing was sent.
  fileprivate var isBeforeConnection: Bool {
    switch self {
    case .cannotConnect, .timedOut(_, .connecting): true
    default: false
    }
  }
}
