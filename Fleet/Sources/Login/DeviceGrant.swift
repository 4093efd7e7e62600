/// The login of a device (RFC 8628): the program shows a code, and a person allows it in a browser.
package enum DeviceGrant {
  /// Time for the person's decision, seconds.
  static let lifetime: Int64 = 600
  /// Minimum interval between two requests of the device, seconds.
  static let interval: Int64 = 3

  /// The maximum number of pending grants on the whole server.
  static let limit: Int64 = 10_000

  /// The person's decision.
  package enum State: String, Sendable {
    case pending, approved, denied
  }

  /// Whether a device asks too often (RFC 8628 3.5). Kept in memory only, because no decision depends on it.
  struct Pace: Equatable {
    private(set) var interval = DeviceGrant.interval
    private var last: Int64?

    /// - Returns: whether the device must slow down. Each time it must wait five seconds more.
    mutating func isTooFast(at now: Int64) -> Bool {
      defer { last = now }
      // After the clock was set back, the time says nothing.
      guard let last, (0..<interval).contains(now - last) else { return false }
      interval = min(interval + 5, 60)
      return true
    }
  }
}

/// An error of the token endpoint (RFC 6749 5.2, RFC 8628 3.5, RFC 9449 5).
package enum OAuthError: Error, Equatable {
  case invalidRequest(String)
  case invalidClient
  case invalidGrant(String)
  case unsupportedGrantType
  case authorizationPending
  case slowDown(interval: Int64)
  case accessDenied
  case expiredToken
  case invalidProof(ProofError)

  /// The value of `error`.
  var code: String {
    switch self {
    case .invalidRequest: "invalid_request"
    case .invalidClient: "invalid_client"
    case .invalidGrant: "invalid_grant"
    case .unsupportedGrantType: "unsupported_grant_type"
    case .authorizationPending: "authorization_pending"
    case .slowDown: "slow_down"
    case .accessDenied: "access_denied"
    case .expiredToken: "expired_token"
    case .invalidProof: "invalid_dpop_proof"
    }
  }

  /// The value of `error_description`, for people.
  var detail: String {
    switch self {
    case .invalidRequest(let what): what
    case .invalidClient: "this client is not known here"
    case .invalidGrant(let what): what
    case .unsupportedGrantType: "this server gives tokens for a device code or a refresh token"
    case .authorizationPending: "nobody has allowed it yet"
    case .slowDown(let interval): "ask every \(interval) s at the most"
    case .accessDenied: "the login was refused in the browser"
    case .expiredToken: "the code has expired: log in again"
    case .invalidProof(let error): error.description
    }
  }
}
