import CMosquitto
import Glibc
import SystemIO

/// One connection: a libmosquitto handle, from CONNECT to its end, on one thread.
///
/// Each connection has a new handle. After a reconnection libmosquitto would resend unacknowledged messages, but an old
/// command must never be sent again.
final class MosquittoClient {
  struct Settings: Sendable {
    let broker: Broker
    let clientID: String
    let keepAlive: Duration
    let subscriptions: [String]
    let quality: MQTTConnection.Quality
    let screen: MQTTConnection.Screen?
    let will: Will?
    let patience: Duration
    let limits: MQTTConnection.Limits
  }

  /// How many publications may wait for PUBACK; libmosquitto's default.
  private static let publicationsInFlight = 20

  /// How many packets are read before pending writes get a turn.
  private static let packetsATurn = 64

  /// When CONNACK arrived.
  private(set) var established: Instant?

  private let settings: Settings
  private let exchange: Exchange
  private let tls: TLSContext?
  /// A `struct mosquitto`, owned.
  private let handle: OpaquePointer
  private var stage = MQTTError.Stage.connecting
  private var refusal: MQTTError?
  /// By packet identifier.
  private var unacknowledged: [Int32: Outbox.Publication] = [:]
  private var subscribing: [Int32: String] = [:]
  private var unsubscribed: [String]

  init(_ settings: Settings, _ tls: TLSContext?, _ exchange: Exchange) throws(MQTTError) {
    self.settings = settings
    self.exchange = exchange
    unsubscribed = settings.subscriptions
    self.tls = tls
    tls?.meter = .init(limit: settings.limits.packet, keepAlive: settings.keepAlive)
    _ = library
    guard let handle = mosquitto_new(settings.clientID, true, nil) else {
      throw .system(SystemError("create an MQTT client"))
    }
    self.handle = handle
    mosquitto_user_data_set(handle, Unmanaged.passUnretained(self).toOpaque())
    try check(mosquitto_int_option(handle, MOSQ_OPT_TCP_NODELAY, 1))
    try check(mosquitto_int_option(handle, MOSQ_OPT_SEND_MAXIMUM, Int32(Self.publicationsInFlight)))
    if let tls {
      try check(mosquitto_int_option(handle, MOSQ_OPT_SSL_CTX_WITH_DEFAULTS, 0))
      try check(mosquitto_void_option(handle, MOSQ_OPT_SSL_CTX, UnsafeMutableRawPointer(tls.handle)))
    }
    if let will = settings.will {
      try check(
        will.payload.withUnsafeBytes {
          mosquitto_will_set(handle, will.topic, Int32($0.count), $0.baseAddress, 1, true)
        })
    }
    // Set before connecting. No function of libmosquitto is called in a callback (mosquitto#1090).
    mosquitto_connect_callback_set(handle) { client(of: $1).connected($2) }
    mosquitto_publish_callback_set(handle) { client(of: $1).acknowledged($2) }
    mosquitto_subscribe_callback_set(handle) { client(of: $1).subscribed($2, $3, $4) }
    mosquitto_message_callback_set(handle) { _, context, message in
      if let message { client(of: context).received(message.pointee) }
    }
  }

  deinit { mosquitto_destroy(handle) }

  /// Connects, and serves the connection until it ends.
  ///
  /// Returns if the program closed the connection; any other end throws.
  ///
  /// - Parameter address: a numeric address.
  func run(connectingTo address: String) throws(MQTTError) {
    let deadline = Instant.now + settings.patience
    // In this mode libmosquitto only queues CONNECT. Otherwise a failed send would close the socket before it is read.
    try check(mosquitto_threaded_set(handle, true))
    try check(
      mosquitto_connect_async(
        handle, address, Int32(settings.broker.port), Int32(settings.keepAlive.components.seconds)))
    try check(mosquitto_threaded_set(handle, false))
    // A child process must not keep the connection open.
    _ = fcntl(mosquitto_socket(handle), F_SETFD, FD_CLOEXEC)
    if settings.limits.holdsBack {
      // Data in the kernel's buffer waits unseen by the controller; by default the kernel would buffer megabytes. But a
      // window of less than several segments (loopback's are 64 KiB) opens only at the sender's timer, after 200 ms.
      var size: Int32 = 262_144
      setsockopt(mosquitto_socket(handle), SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    }

    var entries = [pollfd(), pollfd(fd: exchange.work.number, events: Int16(POLLIN), revents: 0)]
    while !exchange.isClosing {
      entries[0] = pollfd(fd: mosquitto_socket(handle), events: interests, revents: 0)
      // Data that OpenSSL has already read does not make the socket readable.
      let canRead = isAhead && wantsRead
      if poll(&entries, 2, canRead ? 0 : timeout(deadline)) == -1, errno != EINTR {
        throw .system(SystemError("poll"))
      }
      // Cleared before the queue is read: a later message signals again.
      if entries[1].revents != 0 { exchange.work.clear() }
      try serve(Int32(entries[0].revents) | (canRead ? POLLIN : 0))
      if stage == .established {
        try check(mosquitto_loop_misc(handle))
      } else if Instant.now >= deadline {
        throw .timedOut(settings.broker, stage)
      }
    }
    if stage == .established { mosquitto_disconnect(handle) }
  }

  /// Reads before it writes. A write to a connection that the broker has ended fails. `loop_write` would then close the
  /// socket before the broker's last message is read: a CONNACK with a refusal, or a TLS alert. So `loop_write` only
  /// sends what the socket could not accept before, and never completes a handshake: in TLS 1.3 the broker checks our
  /// certificate after that (RFC 8446 2).
  private func serve(_ ready: Int32) throws(MQTTError) {
    let isBlocked = ready & POLLOUT != 0 && (stage == .greeting || stage == .established)
    if stage == .connecting {
      guard ready != 0 else { return }
      try checkConnected()
    }
    let hasEnded = ready & (POLLERR | POLLHUP) != 0
    if ready & ~POLLOUT != 0 || stage == .handshake && ready != 0 {
      try read()
      // libmosquitto 2.0.11 sees no error in a connection that was reset in the handshake, and would try forever.
      if hasEnded, !hasUnread { throw lost }
    }
    if stage == .handshake {
      guard SSL_is_init_finished(OpaquePointer(mosquitto_ssl_get(handle))) == 1 else { return }
      stage = .greeting
    }
    // Before CONNACK, bytes that arrived since poll(2) are read first: the broker may refuse the connection.
    if isBlocked, !hasEnded, stage == .established || !hasUnread { try check(mosquitto_loop_write(handle, 1)) }
    subscribe()
    publish()
  }

  /// Reads packets. OpenSSL takes everything that the socket has at once, so most packets cost no system call.
  ///
  /// It also continues the handshake, which may have to write.
  private func read() throws(MQTTError) {
    var count = 0
    repeat {
      let code = mosquitto_loop_read(handle, 1)
      if tls?.isOverfed == true { throw .oversized(settings.broker) }
      try check(code)
      if let refusal { throw refusal }
      count += 1
    } while count < Self.packetsATurn && isAhead && wantsRead
    acknowledgeAtOnce()
  }

  /// The socket has connected or failed to.
  private func checkConnected() throws(MQTTError) {
    var code: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    getsockopt(mosquitto_socket(handle), SOL_SOCKET, SO_ERROR, &code, &size)
    // Linux reports the last two for a connection that was made and then reset, and ECONNREFUSED for one that was not
    // made. After a reset there may still be something to read.
    guard [0, ECONNRESET, EPIPE].contains(code) else { throw .cannotConnect(settings.broker, code: code) }
    // libmosquitto begins the handshake before TCP has connected, and a write to a refused connection clears the error.
    // What remains is a closed socket on which nothing was ever acknowledged: no round trip was measured (tcp(7)).
    // An emulator may answer with no more than the state, the first byte (qemu-user 7.2). Then the round trip stays 0.
    var information = tcp_info()
    size = socklen_t(MemoryLayout<tcp_info>.size)
    getsockopt(mosquitto_socket(handle), Int32(IPPROTO_TCP), TCP_INFO, &information, &size)
    guard code != 0 || Int(information.tcpi_state) != TCP_CLOSE || information.tcpi_rtt > 0 else {
      throw .cannotConnect(settings.broker, code: ECONNREFUSED)
    }
    stage = tls == nil ? .greeting : .handshake
  }

  // The next two methods send at once, a waiting CONNECT first, and do not wait for CONNACK. They ignore a failure to
  // send, which does not close the socket here: the next read can report the reason.

  private func subscribe() {
    for filter in unsubscribed + exchange.takeFilters() {
      var packet: Int32 = 0
      mosquitto_subscribe(handle, &packet, filter, settings.quality.rawValue)
      subscribing[packet] = filter
    }
    unsubscribed = []
  }

  private func publish() {
    for publication in exchange.takePublications(upTo: Self.publicationsInFlight - unacknowledged.count) {
      var packet: Int32 = 0
      _ = publication.payload.withUnsafeBytes {
        mosquitto_publish(
          handle, &packet, publication.topic, Int32($0.count), $0.baseAddress, 1, publication.isRetained)
      }
      unacknowledged[packet] = publication
    }
  }

  // MARK: The socket

  private var interests: Int16 {
    let wantsWrite =
      switch stage {
      case .connecting: true
      // libmosquitto's own answer, once true, stays true for the rest of the handshake.
      case .handshake: SSL_want(OpaquePointer(mosquitto_ssl_get(handle))) == SSL_WRITING
      case .greeting, .established: mosquitto_want_write(handle)
      }
    return Int16((wantsRead ? POLLIN : 0) | (wantsWrite ? POLLOUT : 0))
  }

  private var wantsRead: Bool { stage != .established || !exchange.isHeldBack }

  private var isAhead: Bool { mosquitto_ssl_get(handle).map { TLSContext.isAhead(OpaquePointer($0)) } ?? false }

  /// The time-out for poll(2), milliseconds: up to the deadline, and then short enough to keep the keep-alive within an
  /// eighth, where the broker allows a half (MQTT 3.1.1, 3.1.2.10).
  private func timeout(_ deadline: Instant) -> Int32 {
    let wait = stage == .established ? settings.keepAlive / 8 : Instant.now.duration(to: deadline)
    return Int32(clamping: wait.roundedUpToMilliseconds)
  }

  private var hasUnread: Bool {
    var count: Int32 = 0
    return isAhead || ioctl(mosquitto_socket(handle), UInt(FIONREAD), &count) == 0 && count > 0
  }

  /// Keeps the kernel from delaying the next acknowledgement, for which a broker with Nagle's algorithm on would wait
  /// 40 ms. The kernel may reset the option (tcp(7)), so it is set again after each read.
  private func acknowledgeAtOnce() {
    var on: Int32 = 1
    setsockopt(
      mosquitto_socket(handle), Int32(IPPROTO_TCP), TCP_QUICKACK, &on, socklen_t(MemoryLayout<Int32>.size))
  }

  // MARK: Errors

  private var lost: MQTTError { tls?.error ?? .lost(settings.broker, stage) }

  /// Checks every return code of libmosquitto, except those of `subscribe` and `publish`.
  private func check(_ code: Int32) throws(MQTTError) {
    let system = errno
    if code == MOSQ_ERR_SUCCESS.code { return }
    if let refusal { throw refusal }
    if let error = tls?.error { throw error }
    if stage == .connecting, code == MOSQ_ERR_ERRNO.code { throw .cannotConnect(settings.broker, code: system) }
    switch code {
    case MOSQ_ERR_KEEPALIVE.code: throw .timedOut(settings.broker, stage)
    case MOSQ_ERR_CONN_LOST.code, MOSQ_ERR_NO_CONN.code, MOSQ_ERR_ERRNO.code, MOSQ_ERR_TLS.code: throw lost
    case MOSQ_ERR_NOMEM.code: throw .system(SystemError("allocate memory", code: ENOMEM))
    default: throw .protocolViolated(settings.broker, code: code)
    }
  }

  // MARK: Callbacks, within libmosquitto's calls: they copy, pass on and return; unusable data is not copied

  fileprivate func connected(_ code: Int32) {
    guard code == 0 else {
      refusal = .refused(settings.broker, MQTTError.ConnectReturnCode(rawValue: code))
      return
    }
    tls?.packetEnded()
    stage = .established
    established = .now
    exchange.deliver(.connected)
  }

  fileprivate func acknowledged(_ packet: Int32) {
    tls?.packetEnded()
    if let publication = unacknowledged.removeValue(forKey: packet) { exchange.acknowledged(publication) }
  }

  fileprivate func subscribed(_ packet: Int32, _ count: Int32, _ granted: UnsafePointer<Int32>?) {
    tls?.packetEnded()
    // 3.9.3: 0x80 is failure.
    guard let filter = subscribing.removeValue(forKey: packet), let granted, count > 0, granted[0] >= 0x80 else {
      return
    }
    refusal = .subscriptionRefused(settings.broker, filter: filter)
  }

  fileprivate func received(_ message: mosquitto_message) {
    tls?.packetEnded()
    let payload = UnsafeRawBufferPointer(start: message.payload, count: Int(message.payloadlen))
    if let screen = settings.screen, !screen(message.topic, payload) { return }
    guard payload.count <= settings.limits.payload else { return exchange.discardOversized() }
    exchange.deliver(
      .message(
        Message(topic: String(cString: message.topic), payload: [UInt8](payload), isRetained: message.retain)))
  }
}

/// Initialised once in a process and never cleaned up, because an abandoned thread may still use it.
private let library: Void = { mosquitto_lib_init() }()

/// - Parameter context: the value from `mosquitto_user_data_set`: the client, never nil.
private func client(of context: UnsafeMutableRawPointer?) -> MosquittoClient {
  Unmanaged<MosquittoClient>.fromOpaque(context!).takeUnretainedValue()
}

extension mosq_err_t {
  /// In the type that functions return.
  var code: Int32 { rawValue }
}
