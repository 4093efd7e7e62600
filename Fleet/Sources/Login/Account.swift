/// The operator's note of what somebody is. It gives no permission.
package enum Role: String, CaseIterable, Sendable {
  case rider
  /// Looks after vehicles.
  case technician
  /// Looks after the fleet.
  case `operator`
}

package enum AccountState: String, Sendable {
  case active
  /// Cannot log in, and none of its tokens counts.
  case suspended
  /// Its address and password are forgotten; the row remains, so that bookings of the past have an owner without a
  /// name.
  case deleted
}

/// Who somebody is.
package struct Account: Sendable, Equatable {
  /// A UUID.
  package let id: String
  /// Nil for an account that was deleted.
  package let email: String?
  package let role: Role
  package let state: AccountState
  /// The version of the terms that was accepted, and when.
  package let terms: String
  package let termsAccepted: Int64
  /// Unix time, seconds.
  package let created: Int64
}

/// A login of a device: what its tokens belong to. It lasts as long as it is renewed (RFC 9449 5, RFC 9700 4.14).
struct Session: Sendable, Equatable {
  /// Seconds that an access token counts.
  static let accessLifetime: Int64 = 600
  /// Seconds that a refresh token counts.
  static let refreshLifetime: Int64 = 90 * 86_400
  /// The most that an account has. A further login ends the one that was unused for longest.
  static let limit = 20

  /// The public part of its tokens.
  let id: String
  let account: String
  /// The thumbprint of the device's key, to which all its tokens are bound.
  let device: String
  let created: Int64
  /// When it was last renewed.
  var used: Int64
  /// The digest of the one refresh token that counts.
  var refresh: String
  /// When that ends.
  var refreshExpires: Int64
  /// The digests of the access tokens that count: the last one, and the one before, which may be on its way.
  var access: String
  var accessExpires: Int64
  var formerAccess: String?
  var formerAccessExpires: Int64 = 0
  /// The digests of the refresh token before, and of the Idempotency-Key that it was used with.
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

  /// What a refresh token is to this session.
  enum Standing: Equatable {
    case current
    case expired
    /// It was used, by a request that now comes again because its answer was lost: whoever asks has the same key for
    /// it.
    case repeated
    /// It was used before: whoever has it has it from somewhere else, or the owner's successor is somewhere else.
    case reused
  }

  func standing(of refreshToken: String, retry key: String?, at now: Int64) -> Standing {
    let digest = digest(of: refreshToken)
    if constantTimeEqual(digest, refresh) { return now < refreshExpires ? .current : .expired }
    if let formerRefresh, constantTimeEqual(digest, formerRefresh), let retry, let key,
      constantTimeEqual(Login.digest(of: key), retry)
    {
      return now < refreshExpires ? .repeated : .expired
    }
    return .reused
  }

  /// Whether the text is the session's present refresh token, or the one before.
  func knows(refreshToken: String) -> Bool {
    let digest = digest(of: refreshToken)
    return constantTimeEqual(digest, refresh) || formerRefresh.map { constantTimeEqual(digest, $0) } ?? false
  }

  func allows(accessToken: String, at now: Int64) -> Bool {
    let digest = digest(of: accessToken)
    return constantTimeEqual(digest, access) && now < accessExpires
      || formerAccess.map { constantTimeEqual(digest, $0) && now < formerAccessExpires } ?? false
  }

  /// The next tokens. The refresh token before them does not count any more; the access token does, to its end.
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

/// What a device gets. Only digests are kept.
struct Tokens: Sendable, Equatable {
  let access: String
  let refresh: String

  init(session: String, random: Randomness) {
    access = OpaqueToken(.access, session: session, random: random).text
    refresh = OpaqueToken(.refresh, session: session, random: random).text
  }
}
