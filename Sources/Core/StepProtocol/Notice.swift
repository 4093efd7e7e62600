public import Domain
public import Encoding

/// What the operator tells one vehicle's controller: which keys count, and which tokens and devices no longer do.
///
/// A JWT that the broker keeps (`TopicPrefix.notice`). A later notice replaces all earlier ones. Whoever can withhold a
/// notice withholds a revocation, and the controller cannot tell: so tokens have to be short.
/// (PROTOCOL.md, section 9.1)
public struct Notice: Sendable, Equatable {
  /// Of the compact form, bytes. The vehicle's broker takes no larger packet than a command's.
  public static let maximumSize = Command.maximumSize
  /// The present key, the next one, and the one before while its tokens last.
  public static let maximumKeys = 4

  /// What no longer counts.
  public enum Subject: Hashable, Sendable {
    /// One token, by its `jti`.
    case token(String)
    /// Every token that is bound to a device's key.
    case device(Thumbprint)
  }

  /// A revocation, and for how long notices have to repeat it.
  public struct Revocation: Hashable, Sendable {
    /// What no longer counts.
    public let subject: Subject
    /// When the last token that it concerns ends, seconds of Unix time. Notices after that need not repeat it.
    public let until: Int64

    public init(_ subject: Subject, until: Int64) {
      self.subject = subject
      self.until = until
    }
  }

  public let vehicle: UUID
  /// Greater than that of every earlier notice for the vehicle.
  public let sequence: Int64
  /// When it was signed, seconds of Unix time.
  public let issued: Int64
  /// The keys that tokens and later notices may be signed by, each once; the present one is the first.
  public let keys: [VerificationKey]
  public let revoked: [Revocation]
  /// What events are encrypted to; nil where the operator wants none.
  public let eventKey: EncryptionKey?
  /// The last event that the operator has received. The controller may forget it and all before it.
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

  /// Whether a token must be refused.
  ///
  /// `until` is not looked at: a controller's clock may be wrong, and a token that has ended is refused in any case.
  public func revokes(_ token: Token) -> Bool {
    revoked.contains {
      switch $0.subject {
      case .token(let id): identical(id, token.id)
      case .device(let thumbprint): thumbprint == token.device.thumbprint
      }
    }
  }

  /// The compact form. It can be longer than what a reader takes (`maximumSize`).
  public func signed(by operatorKey: SigningKey) -> String {
    SignedObject.sign(claims, as: .notice, by: operatorKey)
  }

  /// Reads what came on the topic.
  ///
  /// - Parameters:
  ///   - keys: those that count at present.
  ///   - sequence: of the newest notice that is known.
  /// - Returns: nil for one that is not newer than the known one, whoever has signed it.
  /// - Throws: `unknownKey` when none of the keys is named in its header.
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
