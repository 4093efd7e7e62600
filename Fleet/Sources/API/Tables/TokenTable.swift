import Domain
import Operator
import StepProtocol
import Store

/// The rows of tokens that have not ended long ago: those that the server has given, and those that `stepctl provision
/// token` has given by hand (`by_hand`). What notices revoke is read from here alone. `withdrawn` is since when a token
/// is revoked, Unix time; null if it counts.
enum TokenTable {
  private static let columns = """
    token.jti, token.rider, token.vehicle, token.steps, token.begins, token.expires, token.device, token.key,
    token.certificate, token.certificate_ends
    """

  /// SQL for what commands by hand have to know. SQLite uses the index of these rows where a condition is this text.
  static let isKnown = "(by_hand = 1 OR withdrawn IS NOT NULL)"

  /// Adds a token. One that is there stays as it is, but one by hand is withdrawn if it now is.
  ///
  /// - Parameter withdrawn: since when it is revoked, Unix time; nil if it counts.
  static func insert(
    _ token: Ledger.Entry, isByHand: Bool, withdrawn: Int64? = nil, in transaction: borrowing Transaction
  ) throws(StoreError) {
    try transaction.run(
      """
      INSERT INTO token (jti, rider, vehicle, steps, begins, expires, device, key, certificate, certificate_ends,
        by_hand, withdrawn)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (jti) DO UPDATE SET
        withdrawn = CASE WHEN token.by_hand = 1 THEN COALESCE(token.withdrawn, excluded.withdrawn)
          ELSE token.withdrawn END,
        certificate = COALESCE(token.certificate, excluded.certificate),
        certificate_ends = COALESCE(token.certificate_ends, excluded.certificate_ends)
      """,
      [
        .text(token.id), .text(token.rider), .text(token.vehicle.description),
        .text(token.steps.map(\.description).joined(separator: " ")), .integer(token.notBefore),
        .integer(token.expires), .text(token.device.description), .text(token.key.description),
        Value(token.certificate?.serial), Value(token.certificate?.end), .integer(isByHand ? 1 : 0), Value(withdrawn),
      ])
  }

  /// When the tokens end that have not ended, revoked ones included: a vehicle's, and a device's for that vehicle.
  static func ends(
    at vehicle: String, of device: String, after now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> (vehicle: [Int64], device: [Int64]) {
    let rows = try transaction.run(
      "SELECT device, expires FROM token WHERE vehicle = ? AND expires > ?", [.text(vehicle), .integer(now)])
    return (
      rows.map { $0.integer("expires") },
      rows.filter { $0.text("device") == device }.map { $0.integer("expires") }
    )
  }

  /// The ids of a device's tokens that count, whoever gave them.
  static func given(
    to device: String, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> [String] {
    try transaction.run(
      "SELECT jti FROM token WHERE device = ? AND expires > ? AND withdrawn IS NULL", [.text(device), .integer(now)]
    ).map { $0.text("jti") }
  }

  static func countGiven(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) -> Int64 {
    try transaction.run("SELECT count(*) AS n FROM token WHERE expires > ? AND withdrawn IS NULL", [.integer(now)])[0]
      .integer("n")
  }

  /// Revokes tokens, and wants notices for their vehicles.
  ///
  /// - Returns: how many of them counted until now.
  static func withdraw(
    _ tokens: [String], at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> Int {
    var vehicles: [String] = []
    // In one order, so that two transactions do not wait for each other.
    for jti in tokens.sorted() {
      vehicles += try transaction.run(
        "UPDATE token SET withdrawn = ? WHERE jti = ? AND withdrawn IS NULL RETURNING vehicle",
        [.integer(now), .text(jti)]
      ).map { $0.text("vehicle") }
      try transaction.run(
        """
        UPDATE access SET standing = CASE WHEN EXISTS (SELECT 1 FROM token WHERE token.jti = access.jti)
          THEN 'withdrawn' ELSE 'withdrawing' END
        WHERE jti = ?
        """, [.text(jti)])
    }
    if !vehicles.isEmpty { try NoticeTable.want(vehicles, at: now, in: transaction) }
    return vehicles.count
  }

  /// Takes revocations back, and wants a notice for the vehicle.
  static func restore(
    _ tokens: [String], of vehicle: String, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    for jti in tokens.sorted() {
      try transaction.run("UPDATE token SET withdrawn = NULL WHERE jti = ?", [.text(jti)])
      try transaction.run("UPDATE access SET standing = 'given' WHERE jti = ?", [.text(jti)])
    }
    if !tokens.isEmpty { try NoticeTable.want([vehicle], at: now, in: transaction) }
  }

  /// What a vehicle's notice has to revoke; of a revoked device the device, and not each of its tokens.
  ///
  /// - Parameter vehicle: nil for all.
  static func withdrawals(
    of vehicle: String?, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> [Ledger.Withdrawal] {
    let rows = try transaction.run(
      """
      SELECT jti, device, expires, withdrawn, (SELECT count(*) FROM revoked_device
        WHERE revoked_device.device = token.device AND (ends IS NULL OR ends > ?)) AS is_device
      FROM token WHERE \(vehicle == nil ? isKnown : "vehicle = ?") AND withdrawn IS NOT NULL AND expires > ?
      ORDER BY begins, jti
      """, [.integer(now)] + (vehicle.map { [.text($0)] } ?? []) + [.integer(now)])
    var withdrawals: [Ledger.Withdrawal] = []
    var devices: [Thumbprint: Int] = [:]
    for row in rows {
      let (until, since) = (row.integer("expires"), row.integer("withdrawn"))
      guard row.integer("is_device") > 0, let device = Thumbprint(row.text("device")) else {
        withdrawals.append(.init(.token(row.text("jti")), until: until, since: since))
        continue
      }
      if let index = devices[device] {
        let known = withdrawals[index]
        withdrawals[index] = .init(known.subject, until: max(known.until, until), since: min(known.since, since))
      } else {
        devices[device] = withdrawals.count
        withdrawals.append(.init(.device(device), until: until, since: since))
      }
    }
    return withdrawals
  }

  /// Removes what ended more than a day ago: it no longer needs to be revoked.
  static func forget(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) {
    let time = Value.integer(now - 86_400)
    try transaction.run(
      "DELETE FROM token WHERE expires < ? AND (certificate_ends IS NULL OR certificate_ends < ?)", [time, time])
    try transaction.run("DELETE FROM revoked_device WHERE ends < ?", [time])
  }

  /// The tokens that count, of all devices that have one for that vehicle by another key than the present one.
  ///
  /// - Parameter key: the present one's thumbprint.
  static func givenByOldKeys(
    _ key: String, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> [Ledger.Entry] {
    try transaction.run(
      """
      SELECT \(columns) FROM token WHERE expires > ? AND withdrawn IS NULL AND EXISTS (
        SELECT 1 FROM token old WHERE old.device = token.device AND old.vehicle = token.vehicle AND old.key <> ?
          AND old.expires > ? AND old.withdrawn IS NULL)
      """, [.integer(now), .text(key), .integer(now)]
    ).compactMap(Ledger.Entry.init)
  }
}

/// The operator's ledger, and the rows.
extension TokenTable {
  /// What commands by hand have to know: what they gave, and what is revoked, as far as it has not ended.
  static func known(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) -> Ledger {
    let tokens = try transaction.run(
      """
      SELECT \(columns) FROM token
      WHERE \(isKnown) AND (expires > ? OR certificate_ends > ?) ORDER BY begins, jti
      """, [.integer(now), .integer(now)]
    ).compactMap(Ledger.Entry.init)
    return Ledger(
      tokens: tokens, withdrawals: try withdrawals(of: nil, at: now, in: transaction),
      revokedCertificates: try revokedCertificates(at: now, in: transaction))
  }

  /// The certificates of devices that have no token for their vehicle any more, since one was revoked. Those of earlier
  /// tokens are among them, because they last longer than the tokens.
  private static func revokedCertificates(
    at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> [Ledger.RevokedCertificate] {
    try transaction.run(
      """
      SELECT token.certificate, token.certificate_ends, min(gone.withdrawn) AS since
      FROM (SELECT device, vehicle, withdrawn FROM token WHERE \(isKnown) AND withdrawn IS NOT NULL) AS gone
        JOIN token ON token.device = gone.device AND token.vehicle = gone.vehicle
      WHERE token.certificate_ends > ? AND NOT EXISTS (
          SELECT 1 FROM token other WHERE other.device = token.device AND other.vehicle = token.vehicle
            AND other.withdrawn IS NULL AND other.expires > ?)
      GROUP BY token.certificate, token.certificate_ends ORDER BY token.certificate
      """, [.integer(now), .integer(now)]
    ).compactMap { row in
      Ledger.IssuedNumber(serial: row.text("certificate"), end: row.integer("certificate_ends")).map {
        Ledger.RevokedCertificate($0, since: row.integer("since"))
      }
    }
  }

  /// Takes in what was given and revoked by hand; from a ledger of an earlier version, all that was given.
  ///
  /// - Parameter known: what `known` has.
  static func takeIn(
    _ ledger: Ledger, beyond known: Ledger, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    let (ids, before) = (Set(known.tokens.map(\.id)), Set(known.withdrawals))
    var (tokens, devices): ([String: Int64], [Thumbprint: Int64]) = ([:], [:])
    for withdrawal in ledger.withdrawals where withdrawal.until > now && !before.contains(withdrawal) {
      switch withdrawal.subject {
      case .token(let id): tokens[id] = withdrawal.since
      case .device(let device):
        devices[device] = withdrawal.since
        try AccessTable.revokeDevice(device.description, until: withdrawal.until, at: withdrawal.since, in: transaction)
      }
    }
    var vehicles: [String] = []
    // In one order, so that two servers do not wait for each other.
    for token in ledger.tokens.sorted(by: { $0.id < $1.id }) {
      let withdrawn = tokens[token.id] ?? devices[token.device]
      guard withdrawn != nil || !ids.contains(token.id), max(token.expires, token.certificate?.end ?? 0) > now else {
        continue
      }
      let isByHand = try transaction.run("SELECT jti FROM access WHERE jti = ?", [.text(token.id)]).isEmpty
      try insert(token, isByHand: isByHand, withdrawn: withdrawn, in: transaction)
      if withdrawn != nil { vehicles.append(token.vehicle.description) }
    }
    if !vehicles.isEmpty { try NoticeTable.want(vehicles, at: now, in: transaction) }
    try agree(at: now, in: transaction)
  }

  /// Adds the tokens that the ledger of an earlier version has lost.
  ///
  /// - Parameter key: the thumbprint of the key that has probably signed them.
  static func complete(
    signedBy key: String, at now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) {
    try transaction.run(
      """
      INSERT INTO token (jti, rider, vehicle, steps, begins, expires, device, key, by_hand)
      SELECT access.jti, booking.subject, booking.vehicle, booking.steps, booking.begins, access.expires,
        access.device, CAST(? AS TEXT), 0
      FROM access JOIN booking ON booking.id = access.booking
      WHERE access.expires > ? AND standing <> 'asked'
        AND NOT EXISTS (SELECT 1 FROM token WHERE token.jti = access.jti)
      """, [.text(key), .integer(now)])
    try agree(at: now, in: transaction)
  }

  /// Withdraws what a revoked device has, and what a booking no longer gives.
  private static func agree(at now: Int64, in transaction: borrowing Transaction) throws(StoreError) {
    let overdue = try transaction.run(
      """
      SELECT jti FROM token WHERE expires > ? AND withdrawn IS NULL AND (
        device IN (SELECT device FROM revoked_device WHERE ends IS NULL OR ends > ?)
        OR jti IN (SELECT jti FROM access WHERE standing IN ('withdrawing', 'withdrawn')))
      """, [.integer(now), .integer(now)]
    ).map { $0.text("jti") }
    _ = try withdraw(overdue, at: now, in: transaction)
    // By hand, in the time of an earlier version.
    try transaction.run(
      """
      UPDATE access SET standing = 'withdrawn' WHERE standing IN ('given', 'withdrawing')
        AND jti IN (SELECT jti FROM token WHERE withdrawn IS NOT NULL)
      """)
  }
}

extension Ledger.Entry {
  /// Nil if the row is damaged: nothing is guessed.
  fileprivate init?(_ row: Row) {
    let steps = row.text("steps").split(separator: " ").map { StepID(String($0)) }
    guard let vehicle = UUID(row.text("vehicle")), let device = Thumbprint(row.text("device")),
      let key = Thumbprint(row.text("key")), !steps.contains(nil)
    else { return nil }
    let certificate: Ledger.IssuedNumber? =
      if let serial = row.optionalText("certificate"), let end = row.optionalInteger("certificate_ends") {
        Ledger.IssuedNumber(serial: serial, end: end)
      } else { nil }
    self.init(
      id: row.text("jti"), rider: row.text("rider"), vehicle: vehicle, steps: steps.compactMap(\.self),
      notBefore: row.integer("begins"), expires: row.integer("expires"), device: device, key: key,
      certificate: certificate)
  }
}
