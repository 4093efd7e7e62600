import Cryptography
import Encoding
package import StepProtocol

/// Proves to the server that a request comes from this device: DPoP (RFC 9449), signed with the device's key. Without
/// it, a stolen token is worthless.
package enum DeviceProof {
  /// - Parameters:
  ///   - url: the requested URL; its query is ignored (RFC 9449 4.2, htu).
  ///   - accessToken: the token that the proof accompanies; nil when requesting tokens.
  ///   - now: Unix time, by the server's clock.
  package static func text(
    _ method: String, _ url: String, accessToken: String?, now: Int64, by device: SigningKey
  ) -> String {
    let header: JSON = ["typ": "dpop+jwt", "alg": "EdDSA", "jwk": device.verificationKey.jwk]
    var claims: [JSON.Member] = [
      .init("jti", .string(Base64URL.encode(randomBytes(16)))), .init("htm", .string(method)),
      .init("htu", .string(String(url.prefix { $0 != "?" && $0 != "#" }))), .init("iat", .integer(now)),
    ]
    if let accessToken {
      claims.append(.init("ath", .string(Base64URL.encode(SHA256.digest(of: Array(accessToken.utf8))))))
    }
    let input = "\(Base64URL.encode(header.bytes)).\(Base64URL.encode(JSON.object(claims).bytes))"
    return "\(input).\(Base64URL.encode(device.signature(for: Array(input.utf8))))"
  }
}
