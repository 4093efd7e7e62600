import Encoding
public import StepProtocol

/// A request from a rider's device to an operator: access for the device's key. It contains no secret, and no private
/// key leaves the device.
///
/// A JWS that the device signs. Its header carries the device's public key, as the header of a vehicle's code carries
/// the operator's. The signature shows that the sender holds the private key, but not who the sender is. The operator
/// must know that some other way. (PROTOCOL.md, section 9.2)
public struct DeviceRequest: Sendable, Equatable {
  /// The most that a QR code can hold, bytes.
  public static let maximumSize = VehicleCode.maximumSize

  /// The name that the rider proposes: 1 to 128 bytes. The operator decides.
  public let name: String
  /// A request for a certificate from the broker's authority: PKCS #10, DER. It is not parsed here.
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

  /// Reads a request, and verifies its signature with the key in its header.
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
