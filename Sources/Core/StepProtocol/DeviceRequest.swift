import Encoding

/// A request of a rider's device to an operator: access for the device's key. It contains no secret, and no private key
/// leaves the device.
///
/// A JWS that the device signs. Its header has the device's public key, as a vehicle's code has its operator's. It
/// shows that the sender holds the private key, and not who the sender is. The operator has to know whose request it
/// is. (PROTOCOL.md, section 9.2)
public struct DeviceRequest: Sendable, Equatable {
  /// The most that a QR code holds, bytes.
  public static let maximumSize = VehicleCode.maximumSize

  /// What the rider would like to be called: 1 to 128 bytes. The operator decides.
  public let name: String
  /// A request for a certificate of the broker's authority: PKCS #10, DER. Only its size is checked here.
  public let certificateRequest: [UInt8]
  /// Seconds of Unix time.
  public let issued: Int64
  /// The device's key, which tokens are bound to.
  public let device: VerificationKey

  /// - Parameter device: the device's own key.
  /// - Returns: the request's text.
  public static func signed(
    name: String, certificateRequest: [UInt8], issued: Int64, by device: SigningKey
  ) -> String {
    let claims: JSON = [
      "name": .string(name), "csr": .string(Base64URL.encode(certificateRequest)), "iat": .integer(issued),
    ]
    return SignedObject.sign(claims, as: .request, by: device)
  }

  /// Reads a request, and checks that the holder of its key has signed it.
  public init(verifying text: some StringProtocol) throws(ProtocolError) {
    guard text.utf8.count <= Self.maximumSize else { throw .malformed("larger than \(Self.maximumSize) bytes") }
    let object = try SignedObject(parsing: text, as: .request)
    guard let key = object.embeddedKey else { throw .malformed("jwk is missing") }
    try object.verify(by: key)
    var members = try ObjectReader(object.payload, of: "the request")
    name = try members.take("name", "1 to 128 bytes of text") { value in
      value.string.flatMap { (1...128).contains($0.utf8.count) ? $0 : nil }
    }
    certificateRequest = try members.take("csr", "base64url of a certificate request") { value in
      value.string.flatMap { Base64URL.decode($0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
    issued = try members.count("iat")
    try members.end()
    device = key
  }
}
