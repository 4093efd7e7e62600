package import Store

/// The tables of accounts and logins, and the transactions on them.
///
/// Each method is one transaction. If two requests compete (for a refresh token, a device code, an attempt at a mailed
/// code), the row itself decides: an UPDATE or DELETE names the old state, and returns the row to only one of them.
package struct LoginStore: Sendable {
  private let store: any Store

  package init(_ store: any Store) { self.store = store }

  package static let migrations = [
    Migration(
      "login-1",
      [
        """
        CREATE TABLE account (
          id TEXT NOT NULL PRIMARY KEY, email TEXT UNIQUE, password TEXT,
          role TEXT NOT NULL CHECK (role IN ('rider', 'technician', 'operator')),
          state TEXT NOT NULL CHECK (state IN ('active', 'suspended', 'deleted')),
          terms TEXT NOT NULL, terms_accepted BIGINT NOT NULL, created BIGINT NOT NULL)
        """,
        // People who asked for an account, until the address is confirmed.
        """
        CREATE TABLE registration (
          id TEXT NOT NULL PRIMARY KEY, email TEXT NOT NULL, password TEXT NOT NULL, terms TEXT NOT NULL,
          code TEXT NOT NULL, attempts BIGINT NOT NULL, created BIGINT NOT NULL, expires BIGINT NOT NULL)
        """,
        "CREATE INDEX registration_email ON registration (email)",
        // People who asked for a new password.
        """
        CREATE TABLE password_reset (
          id TEXT NOT NULL PRIMARY KEY, account TEXT NOT NULL REFERENCES account (id), code TEXT NOT NULL,
          attempts BIGINT NOT NULL, expires BIGINT NOT NULL)
        """,
        "CREATE INDEX password_reset_account ON password_reset (account)",
        """
        CREATE TABLE device_grant (
          device_code TEXT NOT NULL PRIMARY KEY, user_code TEXT NOT NULL UNIQUE,
          state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied')),
          account TEXT REFERENCES account (id), expires BIGINT NOT NULL)
        """,
        """
        CREATE TABLE session (
          id TEXT NOT NULL PRIMARY KEY, account TEXT NOT NULL REFERENCES account (id), device TEXT NOT NULL,
          created BIGINT NOT NULL, used BIGINT NOT NULL, refresh TEXT NOT NULL, refresh_expires BIGINT NOT NULL,
          access TEXT NOT NULL, access_expires BIGINT NOT NULL, former_access TEXT, former_access_expires BIGINT NOT NULL,
          former_refresh TEXT, retry TEXT)
        """,
        "CREATE INDEX session_account ON session (account)",
      ]),
    // Used proofs, for servers that share a database. They matter for minutes. A crash may lose them, because a server
    // accepts no proof from before its start.
    Migration(
      "login-2", sqlite: ["CREATE TABLE used_proof (proof TEXT NOT NULL PRIMARY KEY, expires BIGINT NOT NULL)"],
      postgres: ["CREATE UNLOGGED TABLE used_proof (proof TEXT NOT NULL PRIMARY KEY, expires BIGINT NOT NULL)"]),
  ]

  // MARK: Accounts

  /// An account that waits for its address to be confirmed.
  struct Registration: Sendable {
    let id: String
    let email: EmailAddress
    /// The hash.
    let password: String
    let terms: String
    /// The digest of the mailed code.
    let code: String
  }

  enum Registered: Sendable, Equatable {
    case added
    case accountExists
    /// The address has the maximum number of valid codes.
    case tooMany
  }

  /// Several registrations can wait for one address, each with its own code and password. So nobody can put their own
  /// password behind the code that another person requested.
  func register(_ registration: Registration, at now: Int64) async throws -> Registered {
    try await store.write { transaction in
      // Simultaneous requests count one after the other.
      try transaction.reserve(registration.email.description)
      try transaction.run("DELETE FROM registration WHERE expires <= ?", [.integer(now)])
      let email = Value.text(registration.email.description)
      guard try transaction.run("SELECT id FROM account WHERE email = ?", [email]).isEmpty else {
        return .accountExists
      }
      guard try transaction.run("SELECT id FROM registration WHERE email = ?", [email]).count < MailedCode.limit else {
        return .tooMany
      }
      try transaction.run(
        """
        INSERT INTO registration (id, email, password, terms, code, attempts, created, expires)
        VALUES (?, ?, ?, ?, ?, 0, ?, ?)
        """,
        [
          .text(registration.id), email, .text(registration.password), .text(registration.terms),
          .text(registration.code), .integer(now), .integer(now + MailedCode.lifetime),
        ])
      return .added
    }
  }

  /// Creates the account that the code belongs to.
  ///
  /// - Returns: nil for a wrong code, or one that has expired or was tried too often.
  func confirm(_ email: EmailAddress, _ code: MailedCode, as id: String, at now: Int64) async throws -> Account? {
    try await store.write { transaction in
      // Counts the attempt before checking it, so that simultaneous attempts count too.
      let rows = try transaction.run(
        """
        UPDATE registration SET attempts = attempts + 1 WHERE email = ? AND expires > ? AND attempts < ?
        RETURNING id, password, terms, code, created
        """, [.text(email.description), .integer(now), .integer(MailedCode.attempts)])
      guard let row = rows.first(where: { constantTimeEqual(code.digest(for: $0.text("id")), $0.text("code")) }) else {
        return nil
      }
      let account = Account(
        id: id, email: email.description, role: .rider, state: .active, terms: row.text("terms"),
        termsAccepted: row.integer("created"), created: now)
      // Another request may have confirmed the address meanwhile.
      guard try transaction.run("SELECT id FROM account WHERE email = ?", [.text(email.description)]).isEmpty else {
        return nil
      }
      try transaction.run(
        """
        INSERT INTO account (id, email, password, role, state, terms, terms_accepted, created)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [
          .text(account.id), .text(email.description), .text(row.text("password")), .text(account.role.rawValue),
          .text(account.state.rawValue), .text(account.terms), .integer(account.termsAccepted), .integer(now),
        ])
      try transaction.run("DELETE FROM registration WHERE email = ?", [.text(email.description)])
      return account
    }
  }

  /// The account with that address and the hash of its password.
  func account(of email: EmailAddress) async throws -> (account: Account, password: String)? {
    try await store.read { transaction in
      try transaction.run("SELECT * FROM account WHERE email = ?", [.text(email.description)]).first.map { row in
        (Account(row), row.text("password"))
      }
    }
  }

  func account(id: String) async throws -> (account: Account, password: String?)? {
    try await store.read { transaction in
      try transaction.run("SELECT * FROM account WHERE id = ?", [.text(id)]).first.map { row in
        (Account(row), row.optionalText("password"))
      }
    }
  }

  func accounts() async throws -> [Account] {
    try await store.read { transaction in
      try transaction.run("SELECT * FROM account WHERE state <> 'deleted' ORDER BY email").map(Account.init)
    }
  }

  /// - Returns: whether there is an account that can get a new password.
  func beginReset(
    _ email: EmailAddress, id: String, code: String, at now: Int64
  ) async throws -> Bool {
    try await store.write { transaction in
      try transaction.reserve(email.description)
      try transaction.run("DELETE FROM password_reset WHERE expires <= ?", [.integer(now)])
      guard
        let account = try transaction.run(
          "SELECT id FROM account WHERE email = ? AND state = 'active'", [.text(email.description)]
        ).first?.text("id"),
        try transaction.run("SELECT id FROM password_reset WHERE account = ?", [.text(account)]).count
          < MailedCode.limit
      else { return false }
      try transaction.run(
        "INSERT INTO password_reset (id, account, code, attempts, expires) VALUES (?, ?, ?, 0, ?)",
        [.text(id), .text(account), .text(code), .integer(now + MailedCode.lifetime)])
      return true
    }
  }

  /// Sets a new password if the code is right. Then every login ends.
  ///
  /// - Parameter password: the hash.
  /// - Returns: whether the code was right.
  func finishReset(
    _ email: EmailAddress, _ code: MailedCode, password: String, at now: Int64
  ) async throws -> Bool {
    try await store.write { transaction in
      let rows = try transaction.run(
        """
        UPDATE password_reset SET attempts = attempts + 1
        WHERE account = (SELECT id FROM account WHERE email = ? AND state = 'active') AND expires > ? AND attempts < ?
        RETURNING id, account, code
        """, [.text(email.description), .integer(now), .integer(MailedCode.attempts)])
      guard let row = rows.first(where: { constantTimeEqual(code.digest(for: $0.text("id")), $0.text("code")) }) else {
        return false
      }
      let account = Value.text(row.text("account"))
      try transaction.run("UPDATE account SET password = ? WHERE id = ?", [.text(password), account])
      try Self.endLogins(of: row.text("account"), in: transaction)
      return true
    }
  }

  /// Sets a new password for a person who is logged in. Every other login ends.
  ///
  /// - Parameters:
  ///   - password: the hash.
  ///   - former: the hash that was checked. If it has changed meanwhile, nothing is set.
  func setPassword(_ password: String, instead former: String, of id: String, keeping device: String) async throws
    -> Bool
  {
    try await store.write { transaction in
      guard
        try !transaction.run(
          "UPDATE account SET password = ? WHERE id = ? AND password = ? RETURNING id",
          [.text(password), .text(id), .text(former)]
        ).isEmpty
      else { return false }
      try Self.endLogins(of: id, keeping: device, in: transaction)
      return true
    }
  }

  func acceptTerms(_ version: String, of id: String, at now: Int64) async throws {
    try await store.write { transaction in
      _ = try transaction.run(
        "UPDATE account SET terms = ?, terms_accepted = ? WHERE id = ?", [.text(version), .integer(now), .text(id)])
    }
  }

  func setRole(_ role: Role, of id: String) async throws {
    try await store.write { transaction in
      _ = try transaction.run("UPDATE account SET role = ? WHERE id = ?", [.text(role.rawValue), .text(id)])
    }
  }

  /// Suspends an account, or reinstates it. A suspended account has no login left.
  ///
  /// - Returns: whether the account was not so before.
  func setState(suspended: Bool, of id: String) async throws -> Bool {
    try await store.write { transaction in
      let state = Value.text((suspended ? AccountState.suspended : .active).rawValue)
      let changed = try transaction.run(
        "UPDATE account SET state = ? WHERE id = ? AND state NOT IN ('deleted', ?) RETURNING id",
        [state, .text(id), state])
      if suspended { try Self.endLogins(of: id, in: transaction) }
      return !changed.isEmpty
    }
  }

  /// Deletes the person's data.
  func delete(_ id: String) async throws {
    try await store.write { transaction in
      try Self.endLogins(of: id, in: transaction)
      try transaction.run(
        "UPDATE account SET email = NULL, password = NULL, state = 'deleted' WHERE id = ?", [.text(id)])
    }
  }

  /// Ends an account's logins, and everything that could still become one: an allowed login whose device has not
  /// fetched its tokens yet, and a code for a new password.
  ///
  /// - Parameter device: the device whose logins stay.
  private static func endLogins(
    of account: String, keeping device: String? = nil, in transaction: borrowing Transaction
  ) throws(StoreError) {
    try transaction.run(
      "DELETE FROM session WHERE account = ? AND device <> ?", [.text(account), .text(device ?? "")])
    try transaction.run("DELETE FROM password_reset WHERE account = ?", [.text(account)])
    try transaction.run("DELETE FROM device_grant WHERE account = ?", [.text(account)])
  }

  // MARK: Device grants

  /// - Returns: false if the maximum number of grants is reached.
  func addGrant(deviceCode: String, userCode: UserCode, at now: Int64) async throws -> Bool {
    try await store.write { transaction in
      try transaction.run("DELETE FROM device_grant WHERE expires <= ?", [.integer(now - DeviceGrant.lifetime)])
      guard
        try transaction.run("SELECT count(*) AS n FROM device_grant WHERE expires > ?", [.integer(now)])[0]
          .integer("n") < DeviceGrant.limit
      else { return false }
      try transaction.run(
        "INSERT INTO device_grant (device_code, user_code, state, expires) VALUES (?, ?, 'pending', ?)",
        [.text(digest(of: deviceCode)), .text(userCode.digest), .integer(now + DeviceGrant.lifetime)])
      return true
    }
  }

  /// - Parameter password: the hash that was checked. If it has changed meanwhile, nothing is decided.
  /// - Returns: whether a device with that code waits for a decision.
  func decide(
    _ userCode: UserCode, approved: Bool, account: String, password: String, at now: Int64
  ) async throws -> Bool {
    try await store.write { transaction in
      try !transaction.run(
        """
        UPDATE device_grant SET state = ?, account = ? WHERE user_code = ? AND state = 'pending' AND expires > ?
          AND EXISTS (SELECT 1 FROM account WHERE id = ? AND password = ? AND state = 'active')
        RETURNING user_code
        """,
        [
          .text((approved ? DeviceGrant.State.approved : .denied).rawValue), .text(account), .text(userCode.digest),
          .integer(now), .text(account), .text(password),
        ]
      ).isEmpty
    }
  }

  /// The state of a grant, and when it expires.
  func grant(deviceCode: String) async throws -> (state: DeviceGrant.State, expires: Int64)? {
    try await store.read { transaction in
      try transaction.run(
        "SELECT state, expires FROM device_grant WHERE device_code = ?", [.text(digest(of: deviceCode))]
      ).first.map { (DeviceGrant.State(rawValue: $0.text("state"))!, $0.integer("expires")) }
    }
  }

  func removeGrant(deviceCode: String) async throws {
    try await store.write { transaction in
      _ = try transaction.run("DELETE FROM device_grant WHERE device_code = ?", [.text(digest(of: deviceCode))])
    }
  }

  /// Turns an approved grant into a session, once.
  ///
  /// - Parameter begin: makes the new session for that account.
  /// - Returns: nil if no approved grant exists, or the account is no longer usable.
  func redeem(
    deviceCode: String, begin: @escaping @Sendable (_ account: String) -> (session: Session, tokens: Tokens)
  ) async throws -> Tokens? {
    try await store.write { transaction in
      guard
        let account = try transaction.run(
          "DELETE FROM device_grant WHERE device_code = ? AND state = 'approved' RETURNING account",
          [.text(digest(of: deviceCode))]
        ).first?.optionalText("account"),
        try !transaction.run("SELECT id FROM account WHERE id = ? AND state = 'active'", [.text(account)]).isEmpty
      else { return nil }
      let (session, tokens) = begin(account)
      // One device has one login. If the account has too many, the oldest logins of other devices end.
      try transaction.run(
        "DELETE FROM session WHERE account = ? AND device = ?", [.text(account), .text(session.device)])
      try transaction.run(
        """
        DELETE FROM session WHERE account = ? AND id NOT IN
          (SELECT id FROM session WHERE account = ? ORDER BY used DESC, id LIMIT ?)
        """, [.text(account), .text(account), .integer(Int64(Session.limit - 1))])
      try transaction.run(
        """
        INSERT INTO session (id, account, device, created, used, refresh, refresh_expires, access, access_expires,
          former_access, former_access_expires) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [
          .text(session.id), .text(session.account), .text(session.device), .integer(session.created),
          .integer(session.used), .text(session.refresh), .integer(session.refreshExpires), .text(session.access),
          .integer(session.accessExpires), Value(session.formerAccess), .integer(session.formerAccessExpires),
        ])
      return tokens
    }
  }

  // MARK: Sessions

  func session(id: String) async throws -> (session: Session, role: Role, state: AccountState)? {
    try await store.read { transaction in
      try transaction.run(
        """
        SELECT session.*, account.role AS role, account.state AS state FROM session
        JOIN account ON account.id = session.account WHERE session.id = ?
        """, [.text(id)]
      ).first.map { row in
        (Session(row), Role(rawValue: row.text("role"))!, AccountState(rawValue: row.text("state"))!)
      }
    }
  }

  func sessions(of account: String) async throws -> [Session] {
    try await store.read { transaction in
      try transaction.run("SELECT * FROM session WHERE account = ? ORDER BY created, id", [.text(account)])
        .map(Session.init)
    }
  }

  /// - Parameter former: the digest of the refresh token that was valid.
  /// - Returns: whether it was still valid; another request may have been faster, or may have ended the session.
  func renew(_ session: Session, instead former: String) async throws -> Bool {
    try await store.write { transaction in
      try !transaction.run(
        """
        UPDATE session SET used = ?, refresh = ?, refresh_expires = ?, access = ?, access_expires = ?, former_access = ?,
          former_access_expires = ?, former_refresh = ?, retry = ?
        WHERE id = ? AND refresh = ? AND refresh_expires > ? RETURNING id
        """,
        [
          .integer(session.used), .text(session.refresh), .integer(session.refreshExpires), .text(session.access),
          .integer(session.accessExpires), Value(session.formerAccess), .integer(session.formerAccessExpires),
          Value(session.formerRefresh), Value(session.retry), .text(session.id), .text(former),
          .integer(session.used),
        ]
      ).isEmpty
    }
  }

  /// Marks a proof as used at every server of this database.
  ///
  /// - Returns: false when it was used before.
  func use(_ proof: DPoPProof) async throws -> Bool {
    let name = digest(of: "\(proof.thumbprint) \(proof.id)")
    return try await store.write { transaction in
      try !transaction.run(
        "INSERT INTO used_proof (proof, expires) VALUES (?, ?) ON CONFLICT (proof) DO NOTHING RETURNING proof",
        [.text(name), .integer(proof.issued + DPoPProof.maximumAge)]
      ).isEmpty
    }
  }

  func endSession(id: String) async throws {
    try await store.write { transaction in
      _ = try transaction.run("DELETE FROM session WHERE id = ?", [.text(id)])
    }
  }

  func endSessions(of account: String) async throws {
    try await store.write { try Self.endLogins(of: account, in: $0) }
  }

  /// Stops the renewal of a device's sessions. `sweep` removes them.
  ///
  /// - Returns: the number of sessions.
  func endSessions(ofDevice device: String, at now: Int64) async throws -> Int {
    try await store.write { transaction in
      try transaction.run(
        "UPDATE session SET refresh_expires = ? WHERE device = ? AND refresh_expires > ? RETURNING id",
        [.integer(now), .text(device), .integer(now)]
      ).count
    }
  }

  /// Removes what has expired.
  package func sweep(at now: Int64) async throws {
    try await store.write { transaction in
      try transaction.run("DELETE FROM registration WHERE expires <= ?", [.integer(now)])
      try transaction.run("DELETE FROM password_reset WHERE expires <= ?", [.integer(now)])
      try transaction.run("DELETE FROM device_grant WHERE expires <= ?", [.integer(now - DeviceGrant.lifetime)])
      try transaction.run("DELETE FROM session WHERE refresh_expires <= ?", [.integer(now)])
      try transaction.run("DELETE FROM used_proof WHERE expires < ?", [.integer(now)])
    }
  }
}

extension Account {
  fileprivate init(_ row: Row) {
    id = row.text("id")
    email = row.optionalText("email")
    role = Role(rawValue: row.text("role"))!
    state = AccountState(rawValue: row.text("state"))!
    terms = row.text("terms")
    termsAccepted = row.integer("terms_accepted")
    created = row.integer("created")
  }
}

extension Session {
  fileprivate init(_ row: Row) {
    id = row.text("id")
    account = row.text("account")
    device = row.text("device")
    created = row.integer("created")
    used = row.integer("used")
    refresh = row.text("refresh")
    refreshExpires = row.integer("refresh_expires")
    access = row.text("access")
    accessExpires = row.integer("access_expires")
    formerAccess = row.optionalText("former_access")
    formerAccessExpires = row.integer("former_access_expires")
    formerRefresh = row.optionalText("former_refresh")
    retry = row.optionalText("retry")
  }
}
