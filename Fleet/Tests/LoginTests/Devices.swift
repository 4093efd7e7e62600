import Crypto
import Encoding

@testable import Login

/// A device with a key, which signs proofs as they should be, or as an attacker would have them.
struct Device {
  let key = Curve25519.Signing.PrivateKey()

  var jwk: JSON {
    ["kty": "OKP", "crv": "Ed25519", "x": .string(Base64URL.encode(key.publicKey.rawRepresentation))]
  }

  func claims(
    _ method: String = "POST", _ address: String = "https://fleet.example/oauth/token", id: String = "one",
    at now: Int64,
    accessToken: String? = nil
  ) -> JSON {
    var members: [JSON.Member] = [
      .init("jti", .string(id)), .init("htm", .string(method)), .init("htu", .string(address)),
      .init("iat", .integer(now)),
    ]
    if let accessToken { members.append(.init("ath", .string(digest(of: accessToken)))) }
    return .object(members)
  }

  func proof(_ claims: JSON, header: JSON? = nil) -> String {
    let header = header ?? ["typ": "dpop+jwt", "alg": "EdDSA", "jwk": jwk]
    let input = Base64URL.encode(header.bytes) + "." + Base64URL.encode(claims.bytes)
    return input + "." + Base64URL.encode(try! key.signature(for: Array(input.utf8)))
  }
}

extension JSON {
  /// With another value for a member, or without it.
  func with(_ name: String, _ value: JSON?) -> JSON {
    .object(object!.filter { $0.name != name } + (value.map { [JSON.Member(name, $0)] } ?? []))
  }
}
