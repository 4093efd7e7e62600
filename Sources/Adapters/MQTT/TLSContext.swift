import CMosquitto
import Glibc
import SystemIO

/// OpenSSL's settings for one connection, and the faults that it found in the other side.
///
/// libmosquitto's own context would report faults only in a log. This one reports by codes which file is unusable and
/// why a handshake failed, and lets OpenSSL check the name instead of libmosquitto's string comparison.
final class TLSContext {
  /// An `SSL_CTX`, owned.
  let handle: OpaquePointer
  private let broker: Broker
  private let tls: Broker.TLS
  /// The name for the server name indication; a numeric address has none (RFC 6066 3).
  private let serverName: String?
  /// An `X509_V_ERR_*` value; 0 while the broker's certificate has no fault.
  private var verification = 0
  /// The fatal alert that the broker sent.
  private var alert: UInt8?
  /// OpenSSL's code for a failed handshake; 0 for none.
  private var failure: UInt = 0
  private var wantsPassphrase = false
  var meter = PacketMeter(limit: .max, keepAlive: .seconds(30))

  init(_ tls: Broker.TLS, _ broker: Broker) throws(MQTTError) {
    guard let handle = Self.newHandle() else { throw .tlsFailed(broker, code: ERR_get_error()) }
    self.handle = handle
    (self.tls, self.broker) = (tls, broker)
    var address = in6_addr()
    let isNumeric = inet_pton(AF_INET, broker.host, &address) == 1 || inet_pton(AF_INET6, broker.host, &address) == 1
    serverName = isNumeric ? nil : broker.host

    // SSL_CTX_set_min_proto_version, SSL_CTX_set_read_ahead and SSL_CTX_set_app_data are macros over these calls.
    SSL_CTX_ctrl(handle, SSL_CTRL_SET_READ_AHEAD, 1, nil)
    let isPrepared =
      SSL_CTX_ctrl(handle, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil) == 1
      && SSL_CTX_set_ex_data(handle, 0, Unmanaged.passUnretained(self).toOpaque()) == 1

    SSL_CTX_set_verify(handle, SSL_VERIFY_PEER, nil)
    let parameters = SSL_CTX_get0_param(handle)
    X509_VERIFY_PARAM_set_hostflags(parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
    let isNamed =
      isNumeric
      ? X509_VERIFY_PARAM_set1_ip_asc(parameters, broker.host)
      : X509_VERIFY_PARAM_set1_host(parameters, broker.host, 0)
    guard isPrepared, isNamed == 1 else { throw .tlsFailed(broker, code: ERR_get_error()) }

    // Without this, OpenSSL would ask for a passphrase at the terminal.
    SSL_CTX_set_default_passwd_cb(handle) { _, _, _, context in
      // This context, as set below.
      Unmanaged<TLSContext>.fromOpaque(context!).takeUnretainedValue().wantsPassphrase = true
      return -1
    }
    SSL_CTX_set_default_passwd_cb_userdata(handle, Unmanaged.passUnretained(self).toOpaque())
    try load(.authority, tls.authority) { SSL_CTX_load_verify_file(handle, $0) }
    if let identity = tls.identity {
      try load(.certificate, identity.certificate) { SSL_CTX_use_certificate_chain_file(handle, $0) }
      try load(.key, identity.key) { SSL_CTX_use_PrivateKey_file(handle, $0, SSL_FILETYPE_PEM) }
      guard SSL_CTX_check_private_key(handle) == 1 else {
        throw .unusableFile(.key, path: identity.key, .mismatch)
      }
    }
    SSL_CTX_set_info_callback(handle, observe)
  }

  deinit { SSL_CTX_free(handle) }

  private static func newHandle() -> OpaquePointer? {
    // exit(3) must not free OpenSSL's tables while another thread uses them.
    OPENSSL_init_ssl(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    return SSL_CTX_new(TLS_client_method())
  }

  /// Makes OpenSSL load on another thread what every connection needs, for a caller that needs it later: OpenSSL makes
  /// a second caller wait for the first. `init` reports a failure.
  static func loadAhead() { try? DetachedThread.startAhead { SSL_CTX_free(newHandle()) } }

  /// Why TLS failed; nil if the failure was not in TLS.
  var error: MQTTError? {
    switch verification {
    case Int(X509_V_OK): break
    case Int(X509_V_ERR_CERT_HAS_EXPIRED): return .untrustedBroker(broker, .expired)
    case Int(X509_V_ERR_CERT_NOT_YET_VALID): return .untrustedBroker(broker, .notYetValid)
    case Int(X509_V_ERR_HOSTNAME_MISMATCH), Int(X509_V_ERR_IP_ADDRESS_MISMATCH):
      return .untrustedBroker(broker, .nameMismatch)
    // The last is an authority with the same name but another key.
    case Int(X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT), Int(X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY),
      Int(X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE), Int(X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN),
      Int(X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT), Int(X509_V_ERR_CERT_SIGNATURE_FAILURE):
      return .untrustedBroker(broker, .unknownAuthority)
    default: return .untrustedBroker(broker, .other(verification))
    }
    if let alert { return .refusedByAlert(broker, alert) }
    // An end of file is not a TLS failure.
    if failure == 0 || ERR_GET_REASON(failure) == SSL_R_UNEXPECTED_EOF_WHILE_READING { return nil }
    return .tlsFailed(broker, code: failure)
  }

  /// Whether OpenSSL has more of the broker's bytes than libmosquitto has read, and more than a part of a record, as
  /// the last read has shown.
  static func isAhead(_ connection: OpaquePointer) -> Bool {
    SSL_has_pending(connection) == 1 && SSL_want(connection) != SSL_READING
  }

  /// The end of a packet was read.
  func packetEnded() { meter.packetEnded() }

  /// Whether the other side sent too much without ending a packet. Then nothing more is read.
  var isOverfed: Bool { meter.isOverfed }

  private func load(
    _ file: MQTTError.TLSFile, _ path: String, _ load: (String) -> Int32
  ) throws(MQTTError) {
    // OpenSSL would wait for the writer of a pipe.
    try tls.check(file, path)
    ERR_clear_error()
    if load(path) == 1 { return }
    // The first code is the cause; the later ones come from its callers.
    let code = ERR_peek_error()
    let fault: MQTTError.FileFault =
      switch (ERR_GET_LIB(code), ERR_GET_REASON(code)) {
      case (ERR_LIB_SYS, let number): .unreadable(SystemError("open", path, code: number))
      case (ERR_LIB_X509, X509_R_KEY_VALUES_MISMATCH), (ERR_LIB_X509, X509_R_KEY_TYPE_MISMATCH): .mismatch
      default: wantsPassphrase ? .encrypted : .malformed(code)
      }
    ERR_clear_error()
    throw .unusableFile(file, path: path, fault)
  }

  /// SSL_CTX_set_info_callback(3): called by OpenSSL within libmosquitto's calls, so on their thread.
  fileprivate func note(_ connection: OpaquePointer, _ event: Int32, _ value: Int32) {
    switch event {
    case SSL_CB_HANDSHAKE_START:
      // The transport that libmosquitto has just made.
      let transport = SSL_get_rbio(connection)
      BIO_set_callback_arg(transport, Unmanaged.passUnretained(self).toOpaque().assumingMemoryBound(to: CChar.self))
      BIO_set_callback_ex(transport, measure)
      // libmosquitto gets numeric addresses, and sets them here.
      _ = (serverName ?? "").withCString {
        SSL_ctrl(
          connection, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name),
          serverName == nil ? nil : UnsafeMutableRawPointer(mutating: $0))
      }
    case SSL_CB_READ_ALERT where value >> 8 == SSL3_AL_FATAL:
      alert = UInt8(truncatingIfNeeded: value)
    case SSL_CB_WRITE_ALERT:
      verification = SSL_get_verify_result(connection)
    case SSL_CB_CONNECT_EXIT where value <= 0 && failure == 0:
      failure = ERR_peek_error()
    default: break
    }
  }
}

private func observe(_ connection: OpaquePointer?, _ event: Int32, _ value: Int32) {
  guard let connection, let context = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(connection), 0) else { return }
  Unmanaged<TLSContext>.fromOpaque(context).takeUnretainedValue().note(connection, event, value)
}

/// BIO_set_callback_ex(3): called before and after each read from the socket.
private func measure(
  _ transport: OpaquePointer?, _ operation: Int32, _: UnsafePointer<CChar>?, _: Int, _: Int32, _: Int,
  _ result: Int32, _ count: UnsafeMutablePointer<Int>?
) -> Int {
  guard let context = BIO_get_callback_arg(transport) else { return Int(result) }
  let tls = Unmanaged<TLSContext>.fromOpaque(context).takeUnretainedValue()
  switch operation {
  case BIO_CB_READ: return tls.isOverfed ? -1 : Int(result)
  case BIO_CB_READ | BIO_CB_RETURN where result > 0: tls.meter.received(count?.pointee ?? 0)
  default: break
  }
  return Int(result)
}

/// Counts the bytes up to the end of a packet.
///
/// libmosquitto 2.0 allocates the length that a packet's header claims, up to 256 MB, and reports nothing before the
/// whole packet is there. The allocation only uses memory as it is filled, so it is enough to stop reading.
struct PacketMeter {
  private let limit: Int
  private let keepAlive: Duration
  private var unfinished = 0
  private var lastEnd = Instant.now
  private(set) var isOverfed = false

  /// - Parameter limit: bytes of TLS records.
  init(limit: Int, keepAlive: Duration) {
    self.limit = limit
    self.keepAlive = keepAlive
  }

  mutating func received(_ count: Int) {
    unfinished += count
    guard unfinished > limit else { return }
    // Only the end of a ping response is not reported: two bytes, in a record of at most 64.
    let pings = Int(lastEnd.duration(to: .now) / keepAlive) + 1
    isOverfed = unfinished > limit + 64 * pings
  }

  mutating func packetEnded() { (unfinished, lastEnd) = (0, .now) }
}

extension Broker.TLS {
  /// Checks that every file can be opened, before a thread is started in vain.
  func checkReadable() throws(MQTTError) {
    try check(.authority, authority)
    if let identity {
      try check(.certificate, identity.certificate)
      try check(.key, identity.key)
    }
  }

  fileprivate func check(_ file: MQTTError.TLSFile, _ path: String) throws(MQTTError) {
    do { _ = try Descriptor.openRegular(path) } catch { throw .unusableFile(file, path: path, .unreadable(error)) }
  }
}
