/// The operator's note of a person's role. It gives no permission.
package enum Role: String, CaseIterable, Sendable {
  case rider
  /// Maintains vehicles.
  case technician
  /// Manages the fleet.
  case `operator`
}

package enum AccountState: String, Sendable {
  case active
  /// Cannot log in, and its tokens are not valid.
  case suspended
  /// Its address and password are deleted. The row remains, so that past bookings keep an owner without a name.
  case deleted
}

/// A person's account.
package struct Account: Sendable, Equatable {
  /// A UUID.
  package let id: String
  /// Nil for a deleted account.
  package let email: String?
  package let role: Role
  package let state: AccountState
  /// The version of the terms that was accepted, and when.
  package let terms: String
  package let termsAccepted: Int64
  /// Unix time, seconds.
  package let created: Int64
}

/// A device's login, to which its tokens belong. It lasts as long as it is renewed (RFC 9449 5, RFC 9700 4.14).
struct Session: Sendable, Equatable {
  /// Lifetime of an access token, seconds.
  static let accessLifetime: Int64 = 600
  /// Lifetime of a refresh token, seconds.
  static let refreshLifetime: Int64 = 90 * 86_400
  /// The maximum number of logins of an account. A further login ends the one that was unused for longest.
  static let limit = 20

  /// The session's name: the public part of its tokens.
  let id: String
  let account: String
  /// The thumbprint of the device's key. All tokens of the session are bound to it.
  let device: String
  let created: Int64
  /// When it was last renewed.
  var used: Int64
  /// The digest of the only valid refresh token.
  var refresh: String
  /// When the refresh token ends.
  var refreshExpires: Int64
  /// The digests of the valid access tokens: the last one, and the previous one, which may still be in a request.
  var access: String
  var accessExpires: Int64
  var formerAccess: String?
  var formerAccessExpires: Int64 = 0
  /// The digest of the previous refresh token, and of the Idempotency-Key of the request that used it.
  var formerRefresh: String?
  var retry: String?

  /// The tokens of a new session.
  static func begin(
    account: String, device: String, at now: Int64, random: Randomness
  ) -> (session: Session, tokens: Tokens) {
    let id = OpaqueToken.newSession(random)
    let tokens = Tokens(session: id, random: random)
    let session = Session(
      id: id, account: account, device: device, created: now, used: now, refresh: digest(of: tokens.refresh),
      refreshExpires: now + refreshLifetime, access: digest(of: tokens.access), accessExpires: now + accessLifetime)
    return (session, tokens)
  }

  /// The meaning of a refresh token for this session.
  enum RefreshUse: Equatable {
    case current
    case expired
    /// The token was used, and the same request comes again because its answer was lost: it has the same
    /// Idempotency-Key.
    case repeated
    /// The token was used before, by a different request. Either this sender or the earlier one has stolen it.
    case reused
  }

  func use(of refreshToken: String, retry key: String?, at now: Int64) -> RefreshUse {
    let digest = digest(of: refreshToken)
    if constantTimeEqual(digest, refresh) { return now < refreshExpires ? .current : .expired }
    if let formerRefresh, constantTimeEqual(digest, formerRefresh), let retry, let key,
      constantTimeEqual(Login.digest(of: key), retry)
    {
      return now < refreshExpires ? .repeated : .expired
    }
    return .reused
  }

  /// Whether the text is the session's present refresh token, or the previous one.
  func knows(refreshToken: String) -> Bool {
    let digest = digest(of: refreshToken)
    return constantTimeEqual(digest, refresh) || formerRefresh.map { constantTimeEqual(digest, $0) } ?? false
  }

  func allows(accessToken: String, at now: Int64) -> Bool {
    let digest = digest(of: accessToken)
    return constantTimeEqual(digest, access) && now < accessExpires
      || formerAccess.map { constantTimeEqual(digest, $0) && now < formerAccessExpires } ?? false
  }

  /// Issues the next tokens. The previous refresh token becomes invalid; the previous access token stays valid to its
  /// end.
  mutating func renew(with refreshToken: String, retry key: String?, at now: Int64, random: Randomness) -> Tokens {
    let tokens = Tokens(session: id, random: random)
    (formerRefresh, retry) = (digest(of: refreshToken), key.map(digest(of:)))
    (formerAccess, formerAccessExpires) = (access, accessExpires)
    access = digest(of: tokens.access)
    accessExpires = now + Self.accessLifetime
    refresh = digest(of: tokens.refresh)
    refreshExpires = now + Self.refreshLifetime
    used = now
    return tokens
  }
}

/// The tokens for a device. The server keeps only their digests.
struct Tokens: Sendable, Equatable {
  let access: String
  let refresh: String

  init(session: String, random: Randomness) {
    access = OpaqueToken(.access, session: session, random: random).text
    refresh = OpaqueToken(.refresh, session: session, random: random).text
  }
}
