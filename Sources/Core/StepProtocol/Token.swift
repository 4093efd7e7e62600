import Cryptography
public import Domain
import Encoding

/// A signed permission: who may move which steps of which vehicle, during which time, with which device.
///
/// A JWT (RFC 7519) whose confirmation is the rider's device key (RFC 7800). It can be verified offline.
public struct Token: Sendable, Equatable {
  /// The operator who signed it: the thumbprint of the operator's key.
  public let issuer: String
  /// The rider's name at the operator: 1 to 128 bytes.
  public let subject: String
  public let vehicle: UUID
  /// The steps that the rider may move, each once.
  public let steps: [StepID]
  /// Seconds of Unix time, inclusive.
  public let notBefore: Int64
  /// Seconds of Unix time, exclusive.
  public let expires: Int64
  /// The token's own id, random.
  public let id: String
  /// The key that must sign the rider's commands.
  public let device: VerificationKey
  /// When it was signed, seconds of Unix time (`iat` in `ext`); nil if missing. A rider's program uses it to find the
  /// newer of two tokens.
  public let issued: Int64?

  /// - Parameter id: random if none is given.
  public init(
    issuer: String, subject: String, vehicle: UUID, steps: [StepID], notBefore: Int64, expires: Int64,
    id: String? = nil, device: VerificationKey, issued: Int64? = nil
  ) {
    self.issuer = issuer
    self.subject = subject
    self.vehicle = vehicle
    self.steps = steps
    self.notBefore = notBefore
    self.expires = expires
    self.id = id ?? Base64URL.encode(randomBytes(16))
    self.device = device
    self.issued = issued
  }

  /// The compact form, signed by the operator.
  public func signed(by operatorKey: SigningKey) -> String {
    var claims: [JSON.Member] = [
      .init("iss", .string(issuer)), .init("sub", .string(subject)), .init("aud", .string(vehicle.description)),
      .init("steps", .array(steps.map { .string($0.description) })), .init("nbf", .integer(notBefore)),
      .init("exp", .integer(expires)), .init("jti", .string(id)), .init("cnf", ["jwk": device.jwk]),
    ]
    if let issued { claims.append(.init("ext", ["iat": .integer(issued)])) }
    return SignedObject.sign(.object(claims), as: .token, by: operatorKey)
  }

  /// Reads a token and verifies the operator's signature. The caller must check its times and its vehicle.
  public init(verifying text: some StringProtocol, by operatorKey: VerificationKey) throws(ProtocolError) {
    try self.init(verifying: text, by: [operatorKey])
  }

  /// Reads a token when several keys of the operator are valid: the header names the one that signed it.
  public init(verifying text: some StringProtocol, by operatorKeys: [VerificationKey]) throws(ProtocolError) {
    let object = try SignedObject(parsing: text, as: .token)
    try object.verify(by: operatorKeys)
    try self.init(claims: object.payload)
  }

  /// Reads a token without verifying its signature. Use it only for the rider who holds the token and just passes it
  /// on.
  public init(unverified text: some StringProtocol) throws(ProtocolError) {
    try self.init(claims: SignedObject(parsing: text, as: .token).payload)
  }

  private init(claims: JSON) throws(ProtocolError) {
    var members = try ObjectReader(claims, of: "the token")
    issuer = try members.take("iss", "1 to 128 bytes of text", Token.name)
    subject = try members.take("sub", "1 to 128 bytes of text", Token.name)
    vehicle = try members.uuid("aud")
    steps = try members.take("steps", "a list of step ids, each once") { value in
      guard let texts = value.array, (1...8).contains(texts.count) else { return nil }
      let ids = texts.compactMap { $0.string.flatMap { StepID($0) } }
      return ids.count == texts.count && Set(ids).count == ids.count ? ids : nil
    }
    notBefore = try members.count("nbf")
    expires = try members.count("exp")
    id = try members.take("jti", "1 to 128 bytes of text", Token.name)
    device = try members.take("cnf", "a confirmation with an Ed25519 JWK") { value in
      guard value.object?.count == 1, let jwk = value["jwk"], jwk.object?.count == 3 else { return nil }
      return try? VerificationKey(jwk: jwk)
    }
    try members.end()
    issued = claims["ext"]?["iat"]?.integer
    guard notBefore < expires else { throw .malformed("exp is not after nbf") }
  }

  private static func name(_ value: JSON) -> String? {
    value.string.flatMap { (1...128).contains($0.utf8.count) ? $0 : nil }
  }
}
