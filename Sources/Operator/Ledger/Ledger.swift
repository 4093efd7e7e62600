import Certificates
package import Domain
import Encoding
package import StepProtocol

/// What an operator has issued and revoked: the tokens, the revocations, and the number of the last notice. A value;
/// `OperatorPlace` keeps it in a file.
package struct Ledger: Sendable, Equatable {
  /// A token that was issued.
  package struct Entry: Sendable, Equatable {
    package let id: String
    package let rider: String
    package let vehicle: UUID
    package let steps: [StepID]
    /// Seconds of Unix time, like the other times.
    package let notBefore: Int64
    package let expires: Int64
    package let device: Thumbprint
    /// The operator's key that signed the token.
    package let key: Thumbprint
    /// The rider's certificate for the broker; nil if it was not recorded.
    let certificate: IssuedNumber?

    init(_ token: Token, key: Thumbprint, certificate: IssuedNumber? = nil) {
      id = token.id
      rider = token.subject
      vehicle = token.vehicle
      steps = token.steps
      notBefore = token.notBefore
      expires = token.expires
      device = token.device.thumbprint
      self.key = key
      self.certificate = certificate
    }
  }

  /// A certificate for the broker.
  struct IssuedNumber: Hashable, Sendable {
    let number: SerialNumber
    /// The end of its validity.
    let end: Int64
  }

  /// A certificate that the broker no longer accepts.
  struct RevokedCertificate: Equatable, Sendable {
    let certificate: IssuedNumber
    let since: Int64
  }

  /// A revocation.
  package struct Withdrawal: Sendable, Equatable {
    package let subject: Notice.Subject
    /// When the last affected token ends.
    package let until: Int64
    /// When it was revoked.
    package let since: Int64

    init(_ subject: Notice.Subject, until: Int64, since: Int64) {
      (self.subject, self.until, self.since) = (subject, until, since)
    }
  }

  /// The number of the last notice.
  package private(set) var sequence: Int64 = 0
  /// In the order of issue.
  package private(set) var tokens: [Entry] = []
  package private(set) var withdrawals: [Withdrawal] = []
  /// Certificates of devices that no longer have a token.
  private(set) var revokedCertificates: [RevokedCertificate] = []

  package init() {}

  mutating func note(_ token: Token, key: Thumbprint, certificate: IssuedNumber? = nil) {
    tokens.removeAll { $0.id == token.id }
    tokens.append(Entry(token, key: key, certificate: certificate))
  }

  /// Removes tokens that ended before a time, with their certificates: they no longer need to be revoked.
  package mutating func forget(endedBefore time: Int64) {
    tokens.removeAll { $0.expires < time && ($0.certificate?.end ?? 0) < time }
    withdrawals.removeAll { $0.until < time }
  }

  func isRevoked(_ number: SerialNumber) -> Bool {
    revokedCertificates.contains { $0.certificate.number == number }
  }

  /// Whether a token was revoked before its end.
  package func isRevoked(_ entry: Entry) -> Bool {
    withdrawals.contains { $0.subject.concerns(entry) }
  }

  /// The tokens that have not ended and are not revoked.
  package func current(at now: Int64) -> [Entry] { tokens.filter { $0.expires > now && !isRevoked($0) } }

  /// Whether a device is revoked, and so every token for it.
  func isRevoked(_ device: Thumbprint, at now: Int64) -> Bool {
    withdrawals.contains { $0.subject == .device(device) && $0.until > now }
  }

  /// Revokes tokens that have not ended yet.
  ///
  /// - Returns: the affected tokens.
  package mutating func withdraw(_ subject: Notice.Subject, now: Int64) -> [Entry] {
    let concerned = current(at: now).filter(subject.concerns)
    guard let until = concerned.map(\.expires).max() else { return [] }
    withdrawals.removeAll { $0.subject == subject }
    withdrawals.append(Withdrawal(subject, until: until, since: now))
    revokeCertificates(of: concerned, now: now)
    return concerned
  }

  /// The tokens that were revoked earlier and have not ended.
  func withdrawn(_ subject: Notice.Subject, now: Int64) -> [Entry] {
    tokens.filter { $0.expires > now && isRevoked($0) && subject.concerns($0) }
  }

  /// Revokes all certificates of devices that no longer have a token for a vehicle. This includes the certificates of
  /// earlier tokens, because they last longer than the tokens.
  private mutating func revokeCertificates(of concerned: [Entry], now: Int64) {
    let current = current(at: now)
    revokedCertificates.removeAll { $0.certificate.end <= now }
    for entry in concerned {
      func isOfSameDevice(_ other: Entry) -> Bool { other.device == entry.device && other.vehicle == entry.vehicle }
      guard !current.contains(where: isOfSameDevice) else { continue }
      for certificate in tokens.filter(isOfSameDevice).compactMap(\.certificate)
      where certificate.end > now && !isRevoked(certificate.number) {
        revokedCertificates.append(RevokedCertificate(certificate: certificate, since: now))
      }
    }
  }

  /// A notice for a vehicle, with a new number. The number is greater than the last one, and at least the present time,
  /// because a ledger can come from a backup.
  mutating func notice(
    for vehicle: UUID, keys: [VerificationKey], eventKey: EncryptionKey? = nil, acknowledged: EventPlace? = nil,
    now: Int64
  ) -> Notice {
    sequence = max(sequence + 1, now)
    let revoked = withdrawals.filter { withdrawal in
      withdrawal.until > now && tokens.contains { $0.vehicle == vehicle && withdrawal.subject.concerns($0) }
    }
    return Notice(
      vehicle: vehicle, sequence: sequence, issued: now, keys: keys,
      revoked: revoked.map { .init($0.subject, until: $0.until) }, eventKey: eventKey, acknowledged: acknowledged)
  }
}

extension Notice.Subject {
  fileprivate func concerns(_ entry: Ledger.Entry) -> Bool {
    switch self {
    case .token(let id): id == entry.id
    case .device(let device): device == entry.device
    }
  }
}

extension Ledger {
  /// The bytes are not a ledger. The content is never guessed.
  package struct Damage: Error, Equatable {}

  package init(parsing bytes: [UInt8]) throws(Damage) {
    guard let value = try? JSON(parsing: bytes), let count = value.object?.count, let sequence = value["seq"]?.integer,
      let tokens = value["tokens"]?.array, let withdrawals = value["revoked"]?.array
    else { throw Damage() }
    self.sequence = sequence
    self.tokens = tokens.compactMap(Entry.init)
    self.withdrawals = withdrawals.compactMap(Withdrawal.init)
    let certificates = value["certificates"]?.array
    revokedCertificates = (certificates ?? []).compactMap(RevokedCertificate.init)
    guard self.tokens.count == tokens.count, self.withdrawals.count == withdrawals.count,
      count == (certificates == nil ? 3 : 4), revokedCertificates.count == certificates?.count ?? 0
    else { throw Damage() }
  }

  /// One token or revocation per line.
  package var text: String {
    func lines(_ items: [JSON]) -> String {
      items.isEmpty ? "[]" : "[\n" + items.map { "  \($0.text)" }.joined(separator: ",\n") + "\n]"
    }
    let certificates =
      revokedCertificates.isEmpty ? "" : ",\"certificates\":\(lines(revokedCertificates.map(\.json)))"
    let (tokens, revoked) = (lines(tokens.map(\.json)), lines(withdrawals.map(\.json)))
    return "{\"seq\":\(sequence),\"tokens\":\(tokens),\"revoked\":\(revoked)\(certificates)}\n"
  }
}

extension Ledger.Entry {
  fileprivate init?(_ value: JSON) {
    let certificate = value["certificate"]
    guard value.object?.count == (certificate == nil ? 8 : 9), let id = value["jti"]?.string,
      let rider = value["rider"]?.string,
      let vehicle = value["vehicle"]?.string.flatMap({ UUID($0) }),
      let steps = value["steps"]?.array?.map({ $0.string.flatMap { StepID($0) } }),
      let notBefore = value["nbf"]?.integer, let expires = value["exp"]?.integer,
      let device = value["device"]?.string.flatMap({ Thumbprint($0) }),
      let key = value["key"]?.string.flatMap({ Thumbprint($0) })
    else { return nil }
    self.id = id
    self.rider = rider
    self.vehicle = vehicle
    self.steps = steps.compactMap(\.self)
    self.notBefore = notBefore
    self.expires = expires
    self.device = device
    self.key = key
    self.certificate = certificate.flatMap(Ledger.IssuedNumber.init)
    guard self.steps.count == steps.count, (self.certificate == nil) == (certificate == nil) else { return nil }
  }

  fileprivate var json: JSON {
    let members: JSON = [
      "jti": .string(id), "rider": .string(rider), "vehicle": .string(vehicle.description),
      "steps": .array(steps.map { .string($0.description) }), "nbf": .integer(notBefore), "exp": .integer(expires),
      "device": .string(device.description), "key": .string(key.description),
    ]
    guard let certificate else { return members }
    return .object((members.object ?? []) + [.init("certificate", certificate.json)])
  }
}

extension Ledger.IssuedNumber {
  fileprivate init?(_ value: JSON) {
    guard value.object?.count == 2, let bytes = value["serial"]?.string.flatMap({ hexadecimal($0) }),
      (1...20).contains(bytes.count), let end = value["end"]?.integer
    else { return nil }
    self.init(number: SerialNumber(bytes: bytes), end: end)
  }

  fileprivate var json: JSON { ["serial": .string(hexadecimal(number.bytes)), "end": .integer(end)] }
}

extension Ledger.RevokedCertificate {
  fileprivate init?(_ value: JSON) {
    guard value.object?.count == 2, let certificate = value["certificate"].flatMap(Ledger.IssuedNumber.init),
      let since = value["since"]?.integer
    else { return nil }
    self.init(certificate: certificate, since: since)
  }

  fileprivate var json: JSON { ["certificate": certificate.json, "since": .integer(since)] }
}

extension Ledger.Withdrawal {
  fileprivate init?(_ value: JSON) {
    guard value.object?.count == 3, let until = value["until"]?.integer, let since = value["since"]?.integer else {
      return nil
    }
    if let id = value["jti"]?.string {
      self.init(.token(id), until: until, since: since)
    } else if let device = value["jkt"]?.string.flatMap({ Thumbprint($0) }) {
      self.init(.device(device), until: until, since: since)
    } else {
      return nil
    }
  }

  fileprivate var json: JSON {
    let subject: JSON.Member =
      switch subject {
      case .token(let id): .init("jti", .string(id))
      case .device(let device): .init("jkt", .string(device.description))
      }
    return .object([subject, .init("until", .integer(until)), .init("since", .integer(since))])
  }
}
