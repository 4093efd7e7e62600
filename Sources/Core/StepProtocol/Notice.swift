public import Domain
public import Encoding

/// What the operator tells one vehicle's controller: which keys are valid, and which tokens and devices are revoked.
///
/// A JWT that the broker retains (`TopicPrefix.notice`). A later notice replaces all earlier ones. An attacker who
/// withholds a notice withholds its revocations, and the controller cannot detect this. So tokens must be short-lived.
/// (PROTOCOL.md, section 9.1)
public struct Notice: Sendable, Equatable {
  /// The largest compact form, bytes. The vehicle's broker accepts no packet larger than a command.
  public static let maximumSize = Command.maximumSize
  /// The present key, the next one, and the previous one as long as its tokens last.
  public static let maximumKeys = 4

  /// What is revoked.
  public enum Subject: Hashable, Sendable {
    /// One token, by its `jti`.
    case token(String)
    /// Every token that is bound to a device's key.
    case device(Thumbprint)
  }

  /// A revocation, and how long notices must repeat it.
  public struct Revocation: Hashable, Sendable {
    /// What is revoked.
    public let subject: Subject
    /// When the last affected token expires, seconds of Unix time. Later notices need not repeat the revocation.
    public let until: Int64

    public init(_ subject: Subject, until: Int64) {
      self.subject = subject
      self.until = until
    }
  }

  public let vehicle: UUID
  /// Greater than the number of every earlier notice for the vehicle.
  public let sequence: Int64
  /// When it was signed, seconds of Unix time.
  public let issued: Int64
  /// The keys that may sign tokens and later notices, each once; the present one is first.
  public let keys: [VerificationKey]
  public let revoked: [Revocation]
  /// The key that events are encrypted to; nil if the operator wants no events.
  public let eventKey: EncryptionKey?
  /// The last event that the operator has received. The controller may forget this event and all earlier ones.
  public let acknowledged: EventPlace?

  /// - Parameter keys: 1 to `maximumKeys`, each once.
  public init(
    vehicle: UUID, sequence: Int64, issued: Int64, keys: [VerificationKey], revoked: [Revocation] = [],
    eventKey: EncryptionKey? = nil, acknowledged: EventPlace? = nil
  ) {
    precondition(
      (1...Notice.maximumKeys).contains(keys.count) && Set(keys).count == keys.count, "not the keys of a notice")
    self.vehicle = vehicle
    self.sequence = sequence
    self.issued = issued
    self.keys = keys
    self.revoked = revoked
    self.eventKey = eventKey
    self.acknowledged = acknowledged
  }

  /// Whether this notice revokes a token.
  ///
  /// `until` is ignored: a controller's clock may be wrong, and an expired token is refused anyway.
  public func revokes(_ token: Token) -> Bool {
    revoked.contains {
      switch $0.subject {
      case .token(let id): identical(id, token.id)
      case .device(let thumbprint): thumbprint == token.device.thumbprint
      }
    }
  }

  /// The compact form. It can be larger than readers accept (`maximumSize`).
  public func signed(by operatorKey: SigningKey) -> String {
    SignedObject.sign(claims, as: .notice, by: operatorKey)
  }

  /// Reads a payload from the notice topic.
  ///
  /// - Parameters:
  ///   - keys: the operator's keys that are valid at present.
  ///   - sequence: the number of the newest known notice.
  /// - Returns: nil if the notice is not newer than the known one, whether its signature is valid or not.
  /// - Throws: `unknownKey` when its header names none of the keys.
  public static func read(
    _ payload: [UInt8], verifiedBy keys: [VerificationKey], after sequence: Int64? = nil
  ) throws(ProtocolError) -> Notice? {
    guard payload.count <= maximumSize else { throw .malformed("larger than \(maximumSize) bytes") }
    let object = try SignedObject(utf8: payload, as: .notice)
    let notice = try Notice(claims: object.payload)
    if let sequence, notice.sequence <= sequence { return nil }
    try object.verify(by: keys)
    return notice
  }

  /// Reads a notice from a controller's journal. Its signature was checked when it arrived.
  public init(claims: JSON) throws(ProtocolError) {
    var members = try ObjectReader(claims, of: "the notice")
    vehicle = try members.uuid("vehicle")
    sequence = try members.count("seq")
    issued = try members.count("iat")
    keys = try members.take("keys", "1 to \(Notice.maximumKeys) Ed25519 JWKs, each once") { value in
      guard let items = value.array, (1...Notice.maximumKeys).contains(items.count) else { return nil }
      let keys = items.compactMap { $0.object?.count == 3 ? try? VerificationKey(jwk: $0) : nil }
      return keys.count == items.count && Set(keys).count == keys.count ? keys : nil
    }
    var revoked: [Revocation] = []
    for item in try members.take("revoked", "a list", { $0.array }) { revoked.append(try Revocation(item)) }
    self.revoked = revoked
    eventKey = try members.takeIfPresent("event_key", "an X25519 key") { value in
      value.string.flatMap { Base64URL.decode($0) }.flatMap { try? EncryptionKey($0) }
    }
    acknowledged = try members.objectIfPresent("acked").map(EventPlace.init)
    try members.end()
  }

  public var claims: JSON {
    var members: [JSON.Member] = [
      .init("vehicle", .string(vehicle.description)), .init("seq", .integer(sequence)), .init("iat", .integer(issued)),
      .init("keys", .array(keys.map(\.jwk))), .init("revoked", .array(revoked.map(\.json))),
    ]
    if let eventKey { members.append(.init("event_key", .string(Base64URL.encode(eventKey.bytes)))) }
    if let acknowledged { members.append(.init("acked", acknowledged.json)) }
    return .object(members)
  }
}

extension Notice.Revocation {
  fileprivate init(_ value: JSON) throws(ProtocolError) {
    var members = try ObjectReader(value, of: "a revocation")
    let id = try members.takeIfPresent("jti", "1 to 128 bytes of text") { value in
      value.string.flatMap { (1...128).contains($0.utf8.count) ? $0 : nil }
    }
    let device = try members.takeIfPresent("jkt", "the thumbprint of a key") { $0.string.flatMap { Thumbprint($0) } }
    let until = try members.count("until")
    try members.end()
    switch (id, device) {
    case (let id?, nil): self.init(.token(id), until: until)
    case (nil, let device?): self.init(.device(device), until: until)
    default: throw .malformed("a revocation has either jti or jkt")
    }
  }

  fileprivate var json: JSON {
    switch subject {
    case .token(let id): ["jti": .string(id), "until": .integer(until)]
    case .device(let thumbprint): ["jkt": .string(thumbprint.description), "until": .integer(until)]
    }
  }
}

extension Thumbprint {
  /// - Parameter text: base64url of 32 bytes.
  public init?(_ text: String) {
    guard Base64URL.decode(text)?.count == 32 else { return nil }
    self.init(base64URL: text)
  }
}
