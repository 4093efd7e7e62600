import Encoding
public import StepProtocol

/// The public keys of a vehicle that made its own private keys. They go to its operator, and contain no secret.
///
/// A JWS that the vehicle's controller signs. Its header carries the key that will sign statements. The signature shows
/// that the sender holds the private key, but not which vehicle it is. (PROTOCOL.md, section 9.4)
public struct VehicleKeys: Sendable, Equatable {
  /// The most that a QR code can hold, bytes.
  public static let maximumSize = VehicleCode.maximumSize

  /// The key that commands are encrypted to.
  public let encryption: EncryptionKey
  /// The key that verifies statements and events.
  public let signing: VerificationKey
  /// A request for the controller's certificate for the broker: PKCS #10, DER. It is not parsed here.
  public let certificateRequest: [UInt8]
  /// Seconds of Unix time.
  public let issued: Int64

  /// - Parameter signing: the controller's own key.
  /// - Returns: the text.
  public static func signed(
    encryption: EncryptionKey, certificateRequest: [UInt8], issued: Int64, by signing: SigningKey
  ) -> String {
    let claims: JSON = [
      "encryption_key": .string(Base64URL.encode(encryption.bytes)),
      "csr": .string(Base64URL.encode(certificateRequest)), "iat": .integer(issued),
    ]
    return SignedObject.sign(claims, as: .keys, by: signing)
  }

  /// Reads a text, and verifies its signature with the key in its header.
  public init(verifying text: some StringProtocol) throws(ProtocolError) {
    guard text.utf8.count <= Self.maximumSize else { throw .malformed("larger than \(Self.maximumSize) bytes") }
    let object = try SignedObject(parsing: text, as: .keys)
    guard let key = object.embeddedKey else { throw .malformed("jwk is missing") }
    try object.verify(by: key)
    var members = try ObjectReader(object.payload, of: "the keys")
    encryption = try members.take("encryption_key", "an X25519 key") { value in
      value.string.flatMap { Base64URL.decode($0) }.flatMap { try? EncryptionKey($0) }
    }
    certificateRequest = try members.take("csr", "base64url of a certificate request") { value in
      value.string.flatMap { Base64URL.decode($0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
    issued = try members.count("iat")
    try members.end()
    signing = key
  }
}
