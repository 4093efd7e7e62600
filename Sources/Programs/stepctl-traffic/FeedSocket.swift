import CWebSockets
import Glibc
import Synchronization
import SystemIO
import Traffic
import TrafficFeed

/// A WebSocket to a bridge, over TLS 1.2 or later, with checks of the certificate's chain, name and time.
///
/// libwebsockets calls back on the thread that runs it; a callback copies, passes on and returns.
final class FeedSocket {
  /// The part for other threads: the message to send, and the signal to the socket's thread. Unchecked, because
  /// `context` is a pointer: other threads only pass it to lws_cancel_service, which libwebsockets allows.
  final class Wake: @unchecked Sendable {
    private let message = Mutex<[UInt8]?>(nil)
    fileprivate let context: OpaquePointer

    fileprivate init(_ context: OpaquePointer) { self.context = context }

    /// Sends a message, in place of an earlier one that is still unsent.
    func send(_ message: [UInt8]) {
      self.message.withLock { $0 = message }
      // The only function that any thread may call.
      lws_cancel_service(context)
    }

    fileprivate func take() -> [UInt8]? {
      message.withLock { message in
        defer { message = nil }
        return message
      }
    }

    fileprivate var isWaiting: Bool { message.withLock { $0 != nil } }
  }

  let wake: Wake
  private let queue: FeedQueue
  private let context: OpaquePointer
  private let protocols: UnsafeMutablePointer<lws_protocols>
  private let patience: UnsafeMutablePointer<lws_retry_bo_t>
  private var socket: OpaquePointer?
  private var frame: [UInt8] = []
  private var end: FeedMessage?
  private let address: (host: String, port: UInt16, path: String)

  /// Seconds of silence after which the bridge is pinged, and after which it counts as dead.
  private static let silence: (ask: UInt16, end: UInt16) = (3, 6)

  /// - Returns: nil if TLS cannot be set up with these files.
  init?(
    host: String, port: UInt16, path: String, authorities: String?, certificate: String?, key: String?,
    queue: FeedQueue
  ) {
    address = (host, port, path)
    self.queue = queue
    lws_set_log_level(0, nil)
    protocols = .allocate(capacity: 2)
    protocols.initialize(repeating: lws_protocols(), count: 2)
    let name = strdup("feed")
    protocols[0].name = UnsafePointer(name)
    protocols[0].callback = feedCallback
    protocols[0].rx_buffer_size = 65536
    patience = .allocate(capacity: 1)
    patience.initialize(to: lws_retry_bo_t())
    patience.pointee.secs_since_valid_ping = Self.silence.ask
    patience.pointee.secs_since_valid_hangup = Self.silence.end
    var info = lws_context_creation_info()
    info.port = CONTEXT_PORT_NO_LISTEN
    info.protocols = UnsafePointer(protocols)
    info.retry_and_idle_policy = UnsafePointer(patience)
    info.options = UInt64(LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT)
    info.ssl_client_options_set = no_old_tls()
    info.timeout_secs = 10
    // The library keeps these strings.
    let files = [authorities, certificate, key].map { $0.flatMap { strdup($0) } }
    info.client_ssl_ca_filepath = files[0].map { UnsafePointer($0) }
    info.client_ssl_cert_filepath = files[1].map { UnsafePointer($0) }
    info.client_ssl_private_key_filepath = files[2].map { UnsafePointer($0) }
    guard let context = lws_create_context(&info) else { return nil }
    self.context = context
    wake = Wake(context)
  }

  /// Runs until the connection has ended.
  func run() -> FeedMessage {
    current = self
    connect()
    while end == nil { if lws_service(context, 0) < 0 { break } }
    return end ?? .ended(.closed, "")
  }

  private func connect() {
    let isIPv6 = address.host.contains(":")
    address.host.withCString { host in
      (isIPv6 ? "[\(address.host)]" : address.host).withCString { header in
        address.path.withCString { path in
          var info = lws_client_connect_info()
          info.context = context
          info.address = host
          info.host = header
          info.port = Int32(address.port)
          info.path = path
          info.ssl_connection = use_tls()
          // The library compares the certificate with the text before the first colon. `is_for_host` compares it too.
          if isIPv6 { info.ssl_connection |= Int32(LCCSCF_SKIP_SERVER_CERT_HOSTNAME_CHECK.rawValue) }
          info.local_protocol_name = UnsafePointer(protocols[0].name)
          // The callback reports an error too, and does so before this returns.
          if lws_client_connect_via_info(&info) == nil, end == nil { end = .ended(.refused, Self.unreachable) }
        }
      }
    }
  }

  fileprivate func handle(
    _ socket: OpaquePointer?, _ reason: lws_callback_reasons, _ user: UnsafeMutableRawPointer?,
    _ bytes: UnsafeMutableRawPointer?, _ count: Int
  ) -> Int32 {
    switch reason {
    case LWS_CALLBACK_OPENSSL_PERFORM_SERVER_CERT_VERIFICATION:
      // A fault that OpenSSL has found remains a fault.
      return count == 1 && is_for_host(user, address.host) == 0 ? 1 : 0
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
      end = .ended(.refused, problem(of: socket, UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : count)))
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
      // The library was told to overlook some faults; none is overlooked here.
      if let problem = certificate_problem(socket) {
        end = .ended(.refused, "its certificate: \(String(cString: problem))")
        return -1
      }
      self.socket = socket
      queue.connect()
      lws_callback_on_writable(socket)
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
      if let socket = self.socket { lws_callback_on_writable(socket) }
    case LWS_CALLBACK_CLIENT_WRITEABLE:
      return send()
    case LWS_CALLBACK_CLIENT_RECEIVE:
      return receive(socket, UnsafeRawBufferPointer(start: bytes, count: count))
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
      return isFarewell(UnsafeRawBufferPointer(start: bytes, count: count)) ? 0 : -1
    case LWS_CALLBACK_CLIENT_CLOSED:
      self.socket = nil
      if end == nil { end = .ended(.closed, "") }
    default: break
    }
    return 0
  }

  private static let unreachable = "cannot connect"

  /// Why there is no connection. For TLS, the library gives only numbers.
  private func problem(of socket: OpaquePointer?, _ text: UnsafeRawBufferPointer) -> String {
    if let problem = certificate_problem(socket) { return "its certificate: \(String(cString: problem))" }
    let told = String(decoding: text, as: UTF8.self)
    if told.isEmpty { return "it does not answer" }
    if told.hasPrefix("Unable to connect") { return Self.unreachable }
    // The library's own text: "HS: ws upgrade response not 101".
    if told.contains("not 101") {
      let status = lws_http_client_http_response(socket)
      return status == 403
        ? "the bridge does not let this certificate use \(address.path) (HTTP 403)"
        : "there is no feed at \(address.path) (HTTP \(status) in place of 101)"
    }
    return told.contains("SSL") ? "TLS failed; the bridge may not take this certificate" : told
  }

  private func send() -> Int32 {
    guard let socket, let message = wake.take() else { return 0 }
    // The library writes the frame's header before the payload.
    let before = space_before_payload()
    var buffer = [UInt8](repeating: 0, count: before) + message
    let sent = buffer.withUnsafeMutableBufferPointer {
      lws_write(socket, $0.baseAddress! + before, message.count, LWS_WRITE_TEXT)
    }
    if wake.isWaiting { lws_callback_on_writable(socket) }
    return sent < 0 ? -1 : 0
  }

  private func receive(_ socket: OpaquePointer?, _ part: UnsafeRawBufferPointer) -> Int32 {
    guard lws_frame_is_binary(socket) == 0 else {
      end = .ended(.binary, "")
      return -1
    }
    guard frame.count + part.count <= FeedFrame.longest else {
      end = .ended(.tooLong, "")
      return -1
    }
    frame.append(contentsOf: part)
    if lws_remaining_packet_payload(socket) == 0, lws_is_final_fragment(socket) != 0 {
      queue.put(frame, received: UInt64(clamping: WallClock.microseconds))
      frame = []
    }
    return 0
  }
}

/// The only socket of this process; set before the library calls back, and used only on its thread.
nonisolated(unsafe) private var current: FeedSocket?

private func feedCallback(
  _ socket: OpaquePointer?, _ reason: lws_callback_reasons, _ user: UnsafeMutableRawPointer?,
  _ bytes: UnsafeMutableRawPointer?, _ count: Int
) -> Int32 {
  current?.handle(socket, reason, user, bytes, count) ?? 0
}
