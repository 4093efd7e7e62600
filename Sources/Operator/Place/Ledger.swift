import Certificates
public import Domain
import Encoding
public import StepProtocol

/// What an operator has issued and revoked: the tokens, the revocations, and the number of the last notice. A value;
/// `OperatorPlace` keeps it in a file. A server keeps its tokens in its database; its operator's ledger has what was
/// given by hand, and what notices by hand must revoke.
public struct Ledger: Sendable, Equatable {
  /// A token that was issued.
  public struct Entry: Sendable, Equatable {
    public let id: String
    public let rider: String
    public let vehicle: UUID
    public let steps: [StepID]
    /// Seconds of Unix time, like the other times.
    public let notBefore: Int64
    public let expires: Int64
    public let device: Thumbprint
    /// The operator's key that signed the token.
    public let key: Thumbprint
    /// The rider's certificate for the broker; nil if it was not recorded.
    public let certificate: IssuedNumber?

    package var validity: Validity { Validity(from: notBefore, until: expires) }

    /// Whether it counts now or later.
    package func lasts(at now: Int64) -> Bool { validity.state(at: now) != .over }

    public init(
      id: String, rider: String, vehicle: UUID, steps: [StepID], notBefore: Int64, expires: Int64,
      device: Thumbprint, key: Thumbprint, certificate: IssuedNumber?
    ) {
      (self.id, self.rider, self.vehicle, self.steps) = (id, rider, vehicle, steps)
      (self.notBefore, self.expires) = (notBefore, expires)
      (self.device, self.key, self.certificate) = (device, key, certificate)
    }

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
  public struct IssuedNumber: Hashable, Sendable {
    let number: SerialNumber
    /// The end of its validity.
    public let end: Int64

    init(number: SerialNumber, end: Int64) { (self.number, self.end) = (number, end) }

    /// - Parameter serial: hexadecimal; nil is returned unless it has 1 to 20 bytes.
    public init?(serial: String, end: Int64) {
      guard let bytes = hexadecimal(serial), (1...20).contains(bytes.count) else { return nil }
      self.init(number: SerialNumber(bytes: bytes), end: end)
    }

    public var serial: String { hexadecimal(number.bytes) }
  }

  /// A certificate that the broker no longer accepts.
  public struct RevokedCertificate: Hashable, Sendable {
    let certificate: IssuedNumber
    let since: Int64

    public init(_ certificate: IssuedNumber, since: Int64) {
      (self.certificate, self.since) = (certificate, since)
    }
  }

  /// A revocation.
  public struct Withdrawal: Hashable, Sendable {
    public let subject: Notice.Subject
    /// When the last affected token ends.
    public let until: Int64
    /// When it was revoked.
    public let since: Int64

    public init(_ subject: Notice.Subject, until: Int64, since: Int64) {
      (self.subject, self.until, self.since) = (subject, until, since)
    }
  }

  /// The number of the last notice.
  package private(set) var sequence: Int64 = 0
  /// In the order of issue.
  public private(set) var tokens: [Entry] = []
  public private(set) var withdrawals: [Withdrawal] = []
  /// Certificates of devices that no longer have a token.
  public private(set) var revokedCertificates: [RevokedCertificate] = []

  package init() {}

  /// A server's part: without the number of a notice.
  public init(tokens: [Entry], withdrawals: [Withdrawal], revokedCertificates: [RevokedCertificate]) {
    (self.tokens, self.withdrawals, self.revokedCertificates) = (tokens, withdrawals, revokedCertificates)
  }

  mutating func note(_ entry: Entry) {
    tokens.removeAll { $0.id == entry.id }
    tokens.append(entry)
  }

  /// Whether nothing but the number of the last notice differs.
  public func hasSameEntries(as other: Ledger) -> Bool {
    tokens == other.tokens && withdrawals == other.withdrawals && revokedCertificates == other.revokedCertificates
  }

  /// Puts what a server knows in the place of what it has read. What came since then stays, and the number of the last
  /// notice.
  mutating func replace(_ read: Ledger, by known: Ledger) {
    let ids = Set((read.tokens + known.tokens).map(\.id))
    let subjects = Set((read.withdrawals + known.withdrawals).map(\.subject))
    let certificates = Set((read.revokedCertificates + known.revokedCertificates).map(\.certificate))
    tokens = known.tokens + tokens.filter { !ids.contains($0.id) }
    withdrawals = known.withdrawals + withdrawals.filter { !subjects.contains($0.subject) }
    revokedCertificates =
      known.revokedCertificates + revokedCertificates.filter { !certificates.contains($0.certificate) }
  }

  func isRevoked(_ number: SerialNumber) -> Bool {
    revokedCertificates.contains { $0.certificate.number == number }
  }

  /// Whether a token was revoked before its end. What was revoked earlier, and has ended, concerns no later token for
  /// the same device.
  package func isRevoked(_ entry: Entry) -> Bool {
    withdrawals.contains { $0.until >= entry.expires && $0.subject.concerns(entry) }
  }

  /// The tokens that have not ended and are not revoked.
  package func current(at now: Int64) -> [Entry] {
    tokens.filter { $0.lasts(at: now) && !isRevoked($0) }
  }

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
    tokens.filter { $0.lasts(at: now) && isRevoked($0) && subject.concerns($0) }
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
        revokedCertificates.append(RevokedCertificate(certificate, since: now))
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
    return Notice(
      vehicle: vehicle, sequence: sequence, issued: now, keys: keys, revoked: revocations(for: vehicle, at: now),
      eventKey: eventKey, acknowledged: acknowledged)
  }

  /// What a notice for a vehicle has to revoke.
  func revocations(for vehicle: UUID, at now: Int64) -> [Notice.Revocation] {
    withdrawals.filter { withdrawal in
      withdrawal.until > now && tokens.contains { $0.vehicle == vehicle && withdrawal.subject.concerns($0) }
    }.map { .init($0.subject, until: $0.until) }
  }

  /// Lets the next notice have a number above this one.
  mutating func raise(to number: Int64) { sequence = max(sequence, number) }
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
    guard value.object?.count == 2, let serial = value["serial"]?.string, let end = value["end"]?.integer
    else { return nil }
    self.init(serial: serial, end: end)
  }

  fileprivate var json: JSON { ["serial": .string(serial), "end": .integer(end)] }
}

extension Ledger.RevokedCertificate {
  fileprivate init?(_ value: JSON) {
    guard value.object?.count == 2, let certificate = value["certificate"].flatMap(Ledger.IssuedNumber.init),
      let since = value["since"]?.integer
    else { return nil }
    self.init(certificate, since: since)
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
