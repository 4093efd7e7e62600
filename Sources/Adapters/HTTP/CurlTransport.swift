import CCurl
import Glibc
package import SystemIO

/// Requests by libcurl: HTTPS only, the certificate always checked, no redirects, and limits on size and time.
///
/// It keeps its connection, so that a command's later requests are quick. One thread uses it.
package final class CurlTransport: HTTPTransport {
  private let library: CurlLibrary
  private let easy: UnsafeMutableRawPointer
  private let multi: UnsafeMutableRawPointer
  private let interruption: Interruption?
  private let authorities: [UInt8]?
  private let agent: String
  package var meanwhile: (() -> Bool)?

  /// How long a connection may take, milliseconds.
  private static let connecting = 10_000

  /// Begins to load libcurl, which is the slowest part of starting a command that asks a server.
  package static func loadAhead() { CurlLibrary.loadAhead() }

  /// Loads libcurl.
  ///
  /// - Parameters:
  ///   - authorities: certificates in PEM form, the only ones that are trusted; nil for the system's.
  ///   - agent: the program and its version.
  package init(authorities: [UInt8]?, agent: String, _ interruption: Interruption?) throws(HTTPError) {
    library = try CurlLibrary()
    guard let easy = library.easyInit() else { throw .noLibrary("curl_easy_init failed") }
    guard let multi = library.multiInit() else {
      library.easyCleanup(easy)
      throw .noLibrary("curl_multi_init failed")
    }
    self.easy = easy
    self.multi = multi
    self.interruption = interruption
    self.authorities = authorities
    self.agent = agent
  }

  deinit {
    // It has a pointer to the last request's buffer for errors (CURLOPT_ERRORBUFFER).
    library.easyReset(easy)
    // The connection belongs to the multi handle, and ends with it.
    library.easyCleanup(easy)
    _ = library.multiCleanup(multi)
  }

  package func send(_ request: HTTPRequest, within limit: Duration) throws(HTTPError) -> HTTPResponse {
    let transfer = Transfer(limit: request.limit)
    prepare(request.url, within: limit, transfer)
    if let authorities {
      // CURLOPT_CAPATH has a default, which would still be trusted.
      _ = shim_set_pointer(library.setOption, easy, CURLOPT_CAPATH, nil)
      let isSet = authorities.withUnsafeBytes {
        shim_set_authorities(library.setOption, easy, $0.baseAddress, $0.count)
      }
      // A libcurl older than 7.77 would still trust the system's.
      guard isSet == CURLE_OK else { throw .unusableAuthorities }
    }
    set(CURLOPT_CUSTOMREQUEST, request.method.rawValue)
    // libcurl repeats a request by itself only on a reused connection.
    set(CURLOPT_FRESH_CONNECT, request.isOnce ? 1 : 0)
    // A POST without a body must say so.
    if let body = request.body ?? (request.method == .post ? [] : nil) {
      set(CURLOPT_POST, 1)
      set(CURLOPT_POSTFIELDSIZE, body.count)
      // libcurl copies it. Without a pointer, libcurl would not recognise an empty body.
      (body + [0]).withUnsafeBytes { bytes in
        _ = shim_set_pointer(library.setOption, easy, CURLOPT_COPYPOSTFIELDS, bytes.baseAddress)
      }
    }
    var list: UnsafeMutablePointer<curl_slist>?
    // An empty `Expect` keeps libcurl from delaying a large body.
    for header in request.headers + [.init("Expect", "")] {
      list = library.listAppend(list, header.value.isEmpty ? "\(header.name):" : "\(header.name): \(header.value)")
    }
    _ = shim_set_pointer(library.setOption, easy, CURLOPT_HTTPHEADER, list)
    defer { library.listFree(list) }

    // Both callbacks get this pointer, which is never nil.
    let context = Unmanaged.passUnretained(transfer).toOpaque()
    _ = shim_set_pointer(library.setOption, easy, CURLOPT_WRITEDATA, context)
    _ = shim_set_callback(library.setOption, easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
      Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue().arrived(body: bytes, size * count)
    }
    _ = shim_set_pointer(library.setOption, easy, CURLOPT_HEADERDATA, context)
    _ = shim_set_callback(library.setOption, easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
      Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue().arrived(header: bytes, size * count)
    }
    try perform(request.url, transfer)
    var status = 0
    _ = shim_get_number(library.getInfo, easy, CURLINFO_RESPONSE_CODE, &status)
    return HTTPResponse(status: status, headers: transfer.headers, body: transfer.body)
  }

  package func presentedCertificates(by url: String, within limit: Duration) throws(HTTPError) -> [String] {
    let transfer = Transfer(limit: 0)
    prepare(url, within: limit, transfer)
    set(CURLOPT_SSL_VERIFYPEER, 0)
    set(CURLOPT_SSL_VERIFYHOST, 0)
    // The connection ends after the handshake, and is never used again.
    set(CURLOPT_CONNECT_ONLY, 1)
    set(CURLOPT_CERTINFO, 1)
    try perform(url, transfer)
    var chain: UnsafeMutablePointer<curl_certinfo>?
    guard shim_get_certificates(library.getInfo, easy, &chain) == CURLE_OK, let chain else { return [] }
    return (0..<Int(chain.pointee.num_of_certs)).compactMap { index in
      var entry = chain.pointee.certinfo[index]
      while let item = entry {
        let text = String(cString: item.pointee.data)
        if text.hasPrefix("Cert:") { return String(text.dropFirst(5)) }
        entry = item.pointee.next
      }
      return nil
    }
  }

  // MARK: -

  private func set(_ option: CURLoption, _ value: Int) {
    _ = shim_set_number(library.setOption, easy, option, value)
  }

  /// libcurl keeps a copy.
  private func set(_ option: CURLoption, _ value: String) {
    _ = value.withCString { shim_set_pointer(library.setOption, easy, option, $0) }
  }

  /// The settings of every request. Certificates are checked unless the caller changes that.
  private func prepare(_ url: String, within limit: Duration, _ transfer: Transfer) {
    library.easyReset(easy)
    set(CURLOPT_URL, url)
    set(CURLOPT_PROTOCOLS_STR, "https")
    set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
    set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    set(CURLOPT_USERAGENT, agent)
    // No signal handlers, and no wait at the end for a name server's answer.
    set(CURLOPT_NOSIGNAL, 1)
    set(CURLOPT_QUICK_EXIT, 1)
    let milliseconds = max(1, Int(limit.roundedUpToMilliseconds))
    set(CURLOPT_TIMEOUT_MS, milliseconds)
    set(CURLOPT_CONNECTTIMEOUT_MS, min(milliseconds, Self.connecting))
    _ = shim_set_pointer(library.setOption, easy, CURLOPT_ERRORBUFFER, transfer.reason.baseAddress)
  }

  private func perform(_ url: String, _ transfer: Transfer) throws(HTTPError) {
    let host = Self.host(of: url)
    guard library.multiAdd(multi, easy) == CURLM_OK else { throw .lost(host: host, "libcurl has no memory") }
    defer { _ = library.multiRemove(multi, easy) }
    var running: Int32 = 1
    while true {
      _ = library.multiPerform(multi, &running)
      if running == 0 { break }
      if interruption?.isPending == true { throw .interrupted }
      // The wait ends with activity on the connection, at one of libcurl's limits, or with a signal.
      var signal = curl_waitfd(fd: interruption?.number ?? -1, events: Int16(CURL_WAIT_POLLIN), revents: 0)
      _ = library.multiPoll(multi, &signal, interruption == nil ? 0 : 1, meanwhile == nil ? 60_000 : 1000, nil)
      if meanwhile?() == false { throw .interrupted }
    }
    var left: Int32 = 0
    guard let message = library.multiRead(multi, &left) else { throw .lost(host: host, "libcurl gives no result") }
    let code = message.pointee.data.result
    guard code != CURLE_OK else { return }
    throw error(code, host, transfer)
  }

  private func error(_ code: CURLcode, _ host: String, _ transfer: Transfer) -> HTTPError {
    let said = String(cString: transfer.reason.baseAddress!)
    let reason = said.isEmpty ? library.easyError(code).map { String(cString: $0) } ?? "unknown" : said
    if transfer.isTooLarge { return .tooLarge(host: host, limit: transfer.limit) }
    switch code {
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT, CURLE_URL_MALFORMAT,
      CURLE_UNSUPPORTED_PROTOCOL:
      return .unreachable(host: host, reason)
    case CURLE_OPERATION_TIMEDOUT: return .timedOut(host: host)
    case CURLE_PEER_FAILED_VERIFICATION:
      var verdict = 0
      _ = shim_get_number(library.getInfo, easy, CURLINFO_SSL_VERIFYRESULT, &verdict)
      // X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, _SELF_SIGNED_CERT_IN_CHAIN, _UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
      // _UNABLE_TO_VERIFY_LEAF_SIGNATURE (X509_STORE_CTX_get_error(3))
      guard [18, 19, 20, 21].contains(verdict) else { return .untrusted(host: host, reason) }
      return authorities == nil ? .unknownAuthority(host: host) : .otherAuthority(host: host)
    case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR:
      return .untrusted(host: host, reason)
    case CURLE_SSL_CACERT_BADFILE: return .unusableAuthorities
    default: return .lost(host: host, reason)
    }
  }

  /// `HOST[:PORT]`, for errors.
  private static func host(of url: String) -> String {
    let rest = url.dropFirst(url.hasPrefix("https://") ? 8 : 0)
    return String(rest.prefix { $0 != "/" && $0 != "?" })
  }
}

/// The received part of an answer. libcurl's callbacks copy into it; their results say whether to continue.
private final class Transfer {
  let limit: Int
  private(set) var headers: [String: String] = [:]
  private(set) var body: [UInt8] = []
  private(set) var isTooLarge = false
  /// libcurl's words for the error.
  let reason: UnsafeMutableBufferPointer<CChar>

  init(limit: Int) {
    self.limit = limit
    reason = .allocate(capacity: Int(CURL_ERROR_SIZE))
    reason.initialize(repeating: 0)
  }

  deinit { reason.deallocate() }

  func arrived(body bytes: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
    guard body.count + count <= limit else {
      isTooLarge = true
      return 0
    }
    body += UnsafeRawBufferPointer(start: bytes, count: count)
    return count
  }

  /// A header line with its line end. libcurl limits their number and size.
  func arrived(header bytes: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
    let line = String(decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
    guard let colon = line.firstIndex(of: ":") else {
      // The status line of a further response, for example after 100.
      headers = line.hasPrefix("HTTP/") ? [:] : headers
      return count
    }
    let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
    headers[line[..<colon].lowercased()] = String(value.prefix { !$0.isNewline })
    return count
  }
}
