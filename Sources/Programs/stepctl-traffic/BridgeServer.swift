import CWebSockets
import Domain
import Encoding
import Glibc
import SystemIO
import Traffic
import TrafficBridge
import TrafficFeed

/// A WebSocket server over mutual TLS, 1.2 or later, for publishers of frames and their clients.
///
/// libwebsockets calls back on the thread that runs it, and `Bridge` decides. No client's location leaves this process.
final class BridgeServer {
  private let context: OpaquePointer
  private let protocols: UnsafeMutablePointer<lws_protocols>
  private let patience: UnsafeMutablePointer<lws_retry_bo_t>
  private var bridge: Bridge
  private var peers: [OpaquePointer: Peer] = [:]
  private var counts = BridgeCounts()
  private var outgoing: OutgoingFrame
  private let input: Descriptor
  private var messages = Frames()
  private var assembly = FrameAssembly()
  /// Whether the next assembled data is a list of revoked certificates instead of a frame.
  private var takesList = false
  private var knowsRevoked = false
  private var chunk = [UInt8](repeating: 0, count: 65_536)
  private let say: (BridgeMessage) -> Void

  /// Seconds of silence after which the peer is pinged, and after which it counts as dead.
  private static let silence: (ask: UInt16, end: UInt16) = (5, 10)
  /// Seconds without a message after which a connection is closed.
  private static let idle = 60.0
  /// Seconds between two checks of a connection. Not a multiple of `silence.ask`: if the library has to send a ping and
  /// a close frame at the same time, it can end the connection without the close frame.
  static let pause = 7.0
  /// Seconds that a connection may last after its end was announced.
  private static let farewell = 3.0
  /// The most simultaneous connections, including those still in their handshake.
  static let mostConnections: UInt32 = 4096
  /// The most unsent bytes that the kernel may hold for a client.
  private static let mostUnsent: Int32 = 16_384
  /// The cost of a part of a message in addition to its bytes: even an empty part takes time.
  private static let partCost = 100

  /// - Parameter input: frames to publish, newer lists, and requests for counts. Its end ends this process.
  /// - Returns: nil if TLS cannot be set up with these files, or the port is not available.
  init?(
    at place: ListeningPlace, port: UInt16, authorities: String, certificate: String, key: String, map: RoadMap?,
    input: consuming Descriptor, say: @escaping (BridgeMessage) -> Void
  ) {
    self.input = input
    self.say = say
    bridge = Bridge(map: map)
    outgoing = OutgoingFrame(space: space_before_payload())
    lws_set_log_level(0, nil)
    protocols = .allocate(capacity: 2)
    protocols.initialize(repeating: lws_protocols(), count: 2)
    protocols[0].name = UnsafePointer(strdup("feed"))
    protocols[0].callback = bridgeCallback
    // Each connection has this buffer: a client sends little, and a publisher's frame comes in parts.
    protocols[0].rx_buffer_size = 4096
    // A frame is sent at once. By default the library would send only as much as it receives, and keep a copy of the
    // rest.
    protocols[0].tx_packet_size = FeedFrame.longest + 4096
    patience = .allocate(capacity: 1)
    patience.initialize(to: lws_retry_bo_t())
    patience.pointee.secs_since_valid_ping = Self.silence.ask
    patience.pointee.secs_since_valid_hangup = Self.silence.end
    var info = lws_context_creation_info()
    info.port = Int32(port)
    // The library keeps these strings.
    info.iface = place.address.map { UnsafePointer(strdup($0)) }
    info.protocols = UnsafePointer(protocols)
    info.retry_and_idle_policy = UnsafePointer(patience)
    info.options = serve_mutual_tls()
    // With IPv6 on, the library takes an address of IPv4 for all addresses.
    if place.isIPv4 { info.options |= UInt64(LWS_SERVER_OPTION_DISABLE_IPV6) }
    info.ssl_options_set = no_old_tls()
    info.alpn = UnsafePointer(strdup("http/1.1"))
    info.timeout_secs = 10
    info.fd_limit_per_thread = Self.mostConnections
    info.ssl_ca_filepath = UnsafePointer(strdup(authorities))
    info.ssl_cert_filepath = UnsafePointer(strdup(certificate))
    info.ssl_private_key_filepath = UnsafePointer(strdup(key))
    guard let context = lws_create_context(&info), let settings else { return nil }
    self.context = context
    keep_no_sessions(settings)
    // The library also waits for this input: with two threads, the kernel would count references to each connection.
    let file = lws_sock_file_fd_type(filefd: self.input.number)
    let vhost = lws_get_vhost_by_name(context, "default")
    guard lws_adopt_descriptor_vhost(vhost, LWS_ADOPT_RAW_FILE_DESC, file, "feed", nil) != nil else { return nil }
  }

  var port: UInt16 {
    lws_get_vhost_by_name(context, "default").map { UInt16(truncatingIfNeeded: lws_get_vhost_listen_port($0)) } ?? 0
  }

  /// Runs until the library cannot continue.
  func run() {
    current = self
    while lws_service(context, 0) >= 0 {}
  }

  /// The time for stamps: seconds since 1970.
  private var now: Double { Double(WallClock.microseconds) / 1e6 }

  /// The monotonic clock, seconds. Durations are measured with it, because somebody may set the other clock.
  private var elapsed: Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  // MARK: - What the library says

  fileprivate func handle(
    _ socket: OpaquePointer?, _ reason: lws_callback_reasons, _ bytes: UnsafeMutableRawPointer?, _ count: Int
  ) -> Int32 {
    switch reason {
    case LWS_CALLBACK_OPENSSL_PERFORM_CLIENT_CERT_VERIFICATION:
      // This result decides, rather than OpenSSL's, which is in `count`: 1 for a valid certificate.
      return count == 1 ? 0 : 1
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE: return confirm(socket)
    case LWS_CALLBACK_HTTP:
      counts.refused += 1
      _ = answer(socket, "426 Upgrade Required")
      return -1
    case LWS_CALLBACK_ESTABLISHED: establish(socket)
    case LWS_CALLBACK_RECEIVE: return receive(socket, UnsafeRawBufferPointer(start: bytes, count: count))
    case LWS_CALLBACK_SERVER_WRITEABLE: return peer(of: socket).map(write(to:)) ?? 0
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
      peer(of: socket)?.isEnding = true
      return isFarewell(UnsafeRawBufferPointer(start: bytes, count: count)) ? 0 : -1
    case LWS_CALLBACK_TIMER: return look(at: socket)
    case LWS_CALLBACK_RAW_RX_FILE: takeInput()
    case LWS_CALLBACK_RAW_CLOSE_FILE: exit(EXIT_SUCCESS)
    case LWS_CALLBACK_CLOSED, LWS_CALLBACK_WSI_DESTROY:
      // The second case is for an upgrade that was confirmed and then failed.
      if let socket { forget(socket) }
    default: break
    }
    return 0
  }

  /// - Returns: 0 for an upgrade that is allowed; more if it was answered otherwise.
  private func confirm(_ socket: OpaquePointer?) -> Int32 {
    guard let socket else { return -1 }
    func refuse(_ why: String) -> Int32 {
      counts.refused += 1
      say(.note("refused a connection: \(why)"))
      return answer(socket, "403 Forbidden") ? 1 : -1
    }
    // The library accepts any version.
    guard let version = header(of: socket, WSI_TOKEN_VERSION), identical(version, "13") else {
      counts.refused += 1
      return answer(socket, "426 Upgrade Required\r\nSec-WebSocket-Version: 13") ? 1 : -1
    }
    // A browser sends the page that opens a connection. No page may use the browser's certificate.
    if lws_hdr_total_length(socket, WSI_TOKEN_ORIGIN) > 0 { return refuse("it has an Origin header") }
    guard let name = commonName(of: socket), let role = BridgeRole(commonName: name) else {
      return refuse("its certificate names no role")
    }
    // A list may have arrived since the TLS handshake.
    guard !knowsRevoked || has_good_certificate(socket) != 0 else { return refuse("\(name)'s certificate was revoked") }
    guard lws_hdr_total_length(socket, WSI_TOKEN_HTTP_URI_ARGS) <= 0,
      let path = header(of: socket, WSI_TOKEN_GET_URI), let place = role.place(at: path)
    else { return refuse("\(name) may not use this path") }
    let peer = Peer(socket, place, now: elapsed)
    peers[socket] = peer
    lws_set_opaque_user_data(socket, Unmanaged.passUnretained(peer).toOpaque())
    return 0
  }

  /// The peer of a socket in `peers`, without a search: this is called for each frame to each client.
  private func peer(of socket: OpaquePointer?) -> Peer? {
    socket.flatMap { lws_get_opaque_user_data($0) }.map { Unmanaged<Peer>.fromOpaque($0).takeUnretainedValue() }
  }

  private func establish(_ socket: OpaquePointer?) {
    guard let socket, let peer = peer(of: socket) else { return }
    peer.isEstablished = true
    switch peer.place {
    case .publisher(let section):
      counts.publishers += 1
      say(.note("publisher of \(section) connected"))
    case .client:
      counts.clients += 1
      say(.note("client connected, \(counts.clients) now"))
    }
    keep_little_unsent(socket, Self.mostUnsent)
    lws_set_timer_usecs(socket, Int64(Self.pause * 1e6))
  }

  private func forget(_ socket: OpaquePointer) {
    lws_set_opaque_user_data(socket, nil)
    guard let peer = peers.removeValue(forKey: socket), peer.isEstablished else { return }
    counts.dropped += peer.client.dropped
    switch peer.place {
    case .publisher(let section):
      counts.publishers -= 1
      say(.note("publisher of \(section) disconnected"))
    case .client:
      counts.clients -= 1
      say(.note("client disconnected, \(counts.clients) now"))
    }
  }

  private func receive(_ socket: OpaquePointer?, _ part: UnsafeRawBufferPointer) -> Int32 {
    guard let socket, let peer = peer(of: socket) else { return -1 }
    let now = elapsed
    guard peer.bytes.take(Double(part.count + Self.partCost), at: now) else {
      return end(peer, LWS_CLOSE_STATUS_POLICY_VIOLATION, "too many bytes a second")
    }
    guard lws_frame_is_binary(socket) == 0 else {
      return end(peer, LWS_CLOSE_STATUS_UNACCEPTABLE_OPCODE, "text only")
    }
    let longest = if case .publisher = peer.place { FeedFrame.longest } else { ClientLocation.longest }
    guard peer.message.count + part.count <= longest else {
      return end(peer, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, "at most \(longest) bytes")
    }
    peer.message.append(contentsOf: part)
    guard lws_remaining_packet_payload(socket) == 0, lws_is_final_fragment(socket) != 0 else { return 0 }
    let message = peer.message
    peer.message = []
    peer.lastMessage = now
    // A peer that sends need not be pinged. The library sorts its list of pings at each call, so it is not called for
    // each message.
    if abs(now - peer.lastSign) > Double(Self.silence.ask) / 2 {
      lws_validity_confirmed(socket)
      peer.lastSign = now
    }
    switch peer.place {
    case .publisher(let section): return publish(message, section, peer)
    case .client: return place(peer, message)
    }
  }

  private func publish(_ message: [UInt8], _ section: String, _ peer: Peer) -> Int32 {
    guard peer.frames.take(at: elapsed) else {
      return end(peer, LWS_CLOSE_STATUS_POLICY_VIOLATION, "50 frames a second")
    }
    do throws(FeedFlaw) {
      let frame = try FeedFrame(parsing: message)
      guard identical(frame.section, section) else {
        return end(peer, LWS_CLOSE_STATUS_POLICY_VIOLATION, "the frame is of another section")
      }
      guard arrived(frame) else {
        say(.note("publisher of \(section): a frame of more than 1 MiB, as clients would get it"))
        return end(peer, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, "at most \(FeedFrame.longest) bytes, as it is passed on")
      }
      return 0
    } catch {
      say(.note("publisher of \(section): \(error)"))
      return end(peer, LWS_CLOSE_STATUS_INVALID_PAYLOAD, "\(error)")
    }
  }

  private func place(_ peer: Peer, _ message: [UInt8]) -> Int32 {
    do throws(FeedFlaw) {
      let location = try ClientLocation(parsing: message)
      guard bridge.place(&peer.client, at: location, now: now) else {
        return end(peer, LWS_CLOSE_STATUS_POLICY_VIOLATION, "10 locations a second")
      }
      deliver(to: peer, now)
      return 0
    } catch {
      return end(peer, LWS_CLOSE_STATUS_INVALID_PAYLOAD, "\(error)")
    }
  }

  /// - Returns: false for a frame that clients could not read.
  @discardableResult
  private func arrived(_ frame: FeedFrame) -> Bool {
    let now = now
    guard bridge.take(frame, at: now) else { return false }
    counts.received += 1
    for peer in peers.values where peer.isEstablished { deliver(to: peer, now) }
    return true
  }

  /// Sends news to a client: at once if everything before is on its way, otherwise when the library reports room.
  private func deliver(to peer: Peer, _ now: Double) {
    guard !peer.isEnding, !peer.isRevoked, bridge.hasNews(for: &peer.client, now: now) else { return }
    guard has_sent_all(peer.socket) != 0 else {
      lws_callback_on_writable(peer.socket)
      return
    }
    if write(to: peer) != 0 { cut(peer) }
  }

  /// Ends a connection without a close frame, as soon as the library has time: only a socket's own callback may end it
  /// at once.
  private func cut(_ peer: Peer) {
    peer.isEnding = true
    lws_set_timeout(peer.socket, PENDING_TIMEOUT_CLOSE_SEND, LWS_TO_KILL_ASYNC)
  }

  /// Sends only the newest frame that a client does not have.
  ///
  /// - Returns: the value that makes the library continue or close the connection.
  private func write(to peer: Peer) -> Int32 {
    if peer.isRevoked { return end(peer, LWS_CLOSE_STATUS_POLICY_VIOLATION, "its certificate was revoked") }
    guard let hasMore = bridge.write(for: &peer.client, now: now, to: &outgoing) else { return 0 }
    guard outgoing.withPayload({ lws_write(peer.socket, $0, $1, LWS_WRITE_TEXT) }) >= 0 else { return -1 }
    counts.sent += 1
    if hasMore { lws_callback_on_writable(peer.socket) }
    return 0
  }

  /// Whether a connection may stay.
  private func look(at socket: OpaquePointer?) -> Int32 {
    guard let socket, let peer = peer(of: socket) else { return 0 }
    // Its time for the close frame is over.
    if peer.isEnding {
      cut(peer)
      return 0
    }
    let received = bytes_received(socket)
    guard received < peer.received + peer.mostReceived else {
      return end(peer, LWS_CLOSE_STATUS_POLICY_VIOLATION, "too many bytes a second")
    }
    peer.received = received
    guard elapsed - peer.lastMessage < Self.idle else {
      return end(peer, LWS_CLOSE_STATUS_GOINGAWAY, "idle", isRefusal: false)
    }
    lws_set_timer_usecs(socket, Int64(Self.pause * 1e6))
    return 0
  }

  private func takeInput() {
    guard let count = try? chunk.withUnsafeMutableBytes({ try input.read(into: $0) }), count > 0 else {
      exit(EXIT_SUCCESS)
    }
    messages.append(chunk[..<count])
    do {
      while let body = try messages.next() {
        if body == BridgeMessage.count {
          sayCounts()
          continue
        }
        if body == BridgeMessage.list {
          takesList = true
          continue
        }
        switch try FeedMessage(body: body) {
        case .part(let part): try assembly.take(part)
        case .frame(_, _, let rest):
          let bytes = try assembly.finish(rest)
          if takesList {
            takesList = false
            say(
              .note(
                revoke(bytes) ? "took a newer revocation list" : "the revocation list is malformed: the old one counts")
            )
          } else if let frame = try? FeedFrame(parsing: bytes) {
            arrived(frame)
          }
        case .connected, .ended: throw MalformedMessage()
        }
      }
    } catch {
      exit(EXIT_SUCCESS)
    }
  }

  /// Accepts lists of revoked certificates, as PEM, and ends the connections whose certificate is no longer valid.
  ///
  /// - Returns: false if the bytes are not such lists; then nothing changes.
  func revoke(_ lists: [UInt8]) -> Bool {
    guard let settings, take_revocation_lists(settings, lists, Int32(lists.count)) > 0 else { return false }
    knowsRevoked = true
    for peer in peers.values where peer.isEstablished && has_good_certificate(peer.socket) == 0 {
      peer.isRevoked = true
      lws_callback_on_writable(peer.socket)
    }
    return true
  }

  private func sayCounts() {
    var counts = counts
    counts.dropped += peers.values.reduce(0) { $0 + $1.client.dropped }
    say(.counts(counts))
  }

  // MARK: -

  /// - Returns: the value that makes the library close the connection.
  private func end(_ peer: Peer, _ status: lws_close_status, _ reason: String, isRefusal: Bool = true) -> Int32 {
    peer.isEnding = true
    lws_set_timer_usecs(peer.socket, Int64(Self.farewell * 1e6))
    if isRefusal { counts.refused += 1 }
    // RFC 6455 5.5: a control frame has at most 125 bytes, of which the status takes two; 5.5.1: the rest is UTF-8.
    var text = reason.utf8(upTo: 100)
    lws_close_reason(peer.socket, status, &text, text.count)
    return -1
  }

  /// Answers a request with a status. The library's own answer would claim HTTP/1.0.
  private func answer(_ socket: OpaquePointer?, _ status: String) -> Bool {
    let before = space_before_payload()
    let text = Array("HTTP/1.1 \(status)\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8)
    var bytes = [UInt8](repeating: 0, count: before) + text
    return bytes.withUnsafeMutableBufferPointer {
      lws_write(socket, $0.baseAddress! + before, text.count, LWS_WRITE_HTTP_HEADERS)
    } == text.count
  }

  private func commonName(of socket: OpaquePointer) -> String? {
    // The longest that X.509 allows: 64 characters (RFC 5280 A.1, ub-common-name).
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { name in
      let length = Int(peer_name(socket, name.baseAddress, Int32(name.count)))
      guard length > 0 else { return nil }
      return String(validating: name[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
  }

  private func header(of socket: OpaquePointer, _ token: lws_token_indexes) -> String? {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { text in
      let length = Int(lws_hdr_copy(socket, text.baseAddress, Int32(text.count), token))
      guard length > 0 else { return nil }
      return String(validating: text[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
  }
}

/// The only server of this process; set before the library calls back about a connection, and used only on its thread.
nonisolated(unsafe) private var current: BridgeServer?
/// The server's TLS settings, an `SSL_CTX`, which the library passes once during its set-up.
nonisolated(unsafe) private var settings: OpaquePointer?

private func bridgeCallback(
  _ socket: OpaquePointer?, _ reason: lws_callback_reasons, _ user: UnsafeMutableRawPointer?,
  _ bytes: UnsafeMutableRawPointer?, _ count: Int
) -> Int32 {
  if reason == LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS { settings = user.map { OpaquePointer($0) } }
  guard let current else {
    // Before the server exists, no certificate is valid.
    return reason == LWS_CALLBACK_OPENSSL_PERFORM_CLIENT_CERT_VERIFICATION ? 1 : 0
  }
  return current.handle(socket, reason, bytes, count)
}
