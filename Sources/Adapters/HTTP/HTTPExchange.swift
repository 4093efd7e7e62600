package import Domain
package import SystemIO

/// A request (RFC 9110). The adapter adds the headers that all requests of this program have.
package struct HTTPRequest: Equatable, Sendable {
  package enum Method: String, Sendable {
    case get = "GET"
    case post = "POST"
    case patch = "PATCH"
    case delete = "DELETE"
  }

  package struct Header: Equatable, Sendable {
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  package var method: Method
  /// `https://HOST[:PORT]/PATH`
  package var url: String
  package var headers: [Header]
  /// Nil for a request without a body.
  package var body: [UInt8]?
  /// The largest accepted body of an answer, bytes.
  package var limit: Int
  /// Whether the request must not be sent twice. Any other request is repeated if a reused connection turns out closed.
  package var isOnce = false

  package init(_ method: Method, _ url: String, headers: [Header] = [], body: [UInt8]? = nil, limit: Int = 1 << 20) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
    self.limit = limit
  }
}

extension HTTPRequest {
  /// Whether it names a version that is known already (RFC 9110, 13.1.2).
  package var hasTag: Bool { headers.contains { $0.name == "If-None-Match" } }
}

/// A complete answer.
package struct HTTPResponse: Equatable, Sendable {
  package let status: Int
  /// By name in lower case; the last one if a name is repeated.
  package let headers: [String: String]
  package let body: [UInt8]

  package init(status: Int, headers: [String: String] = [:], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

/// Carries requests: libcurl, or a test double.
package protocol HTTPTransport: AnyObject {
  /// Sends a request and waits for the complete answer, whatever its status. Does not follow redirects.
  ///
  /// - Parameter limit: the time limit, to the last byte.
  func send(_ request: HTTPRequest, within limit: Duration) throws(HTTPError) -> HTTPResponse

  /// What is called about once a second while an answer is awaited. False ends the request, as a signal does.
  var meanwhile: (() -> Bool)? { get set }

  /// The certificates that a server presents in the handshake, PEM, its own first. Nothing is sent and nothing is
  /// trusted: they are only to be shown to people.
  func presentedCertificates(by url: String, within limit: Duration) throws(HTTPError) -> [String]
}

/// Why there is no answer.
package enum HTTPError: Failure, Equatable {
  /// libcurl cannot be loaded; the loader's words.
  case noLibrary(String)
  /// Nobody listens, or the name is unknown. Nothing was sent.
  case unreachable(host: String, String)
  /// This computer does not know the authority that issued the server's certificate. Nothing was sent.
  case unknownAuthority(host: String)
  /// The certificate is from none of the authorities that are trusted for this server. Nothing was sent.
  case otherAuthority(host: String)
  /// TLS failed in another way: another name, an expired certificate. Nothing was sent.
  case untrusted(host: String, String)
  /// The request may have arrived; the answer did not.
  case lost(host: String, String)
  case timedOut(host: String)
  /// The body is larger than the limit, bytes.
  case tooLarge(host: String, limit: Int)
  /// The given authorities contain no certificate.
  case unusableAuthorities
  case interrupted
  case system(SystemError)

  package var exitStatus: ExitStatus {
    switch self {
    case .noLibrary, .unreachable, .unknownAuthority, .otherAuthority, .untrusted, .lost, .timedOut, .tooLarge:
      .unavailable
    case .unusableAuthorities: .configuration
    case .interrupted: .failure
    case .system(let error): error.exitStatus
    }
  }

  package var description: String {
    switch self {
    case .noLibrary(let reason): "cannot load libcurl: \(reason)"
    case .unreachable(let host, let reason): "cannot reach \(host): \(reason)"
    case .unknownAuthority(let host): "this computer does not know the authority that issued the certificate of \(host)"
    case .otherAuthority(let host): "the trusted authority did not issue the certificate of \(host)"
    case .untrusted(let host, let reason): "the certificate of \(host) was not accepted: \(reason)"
    case .lost(let host, let reason): "the connection to \(host) was lost: \(reason)"
    case .timedOut(let host): "\(host) did not answer in time"
    case .tooLarge(let host, let limit): "\(host) sent more than \(limit) bytes"
    case .unusableAuthorities: "the CA file has no usable certificate in PEM form"
    case .interrupted: "interrupted"
    case .system(let error): error.description
    }
  }

  package var hint: String? {
    switch self {
    case .noLibrary: "install it: apt-get install libcurl4"
    case .unknownAuthority: "use --ca with the file of the server's CA"
    case .otherAuthority: "ask the server's operator; `stepctl login` takes another authority with --ca"
    case .unreachable, .timedOut, .lost: "check the address and the network, and try again"
    case .untrusted, .tooLarge, .unusableAuthorities, .interrupted, .system: nil
    }
  }

  package var isInterruption: Bool { self == .interrupted }

  /// Whether the server may have done what was asked.
  package var mayHaveArrived: Bool {
    switch self {
    case .lost, .timedOut, .tooLarge: true
    case .noLibrary, .unreachable, .unknownAuthority, .otherAuthority, .untrusted, .unusableAuthorities, .interrupted,
      .system:
      false
    }
  }
}
