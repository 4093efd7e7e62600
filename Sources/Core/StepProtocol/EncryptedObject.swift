import Crypto
import Encoding

import struct FoundationEssentials.Data

/// A compact JWE with HPKE integrated encryption (draft-ietf-jose-hpke-encrypt, `HPKE-4`): RFC 9180 base mode with
/// DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and ChaCha20-Poly1305.
///
/// `BASE64URL(header) . BASE64URL(enc) . . BASE64URL(ciphertext) .`: no initialization vector, and the tag is a part
/// of the ciphertext. The ASCII of the first part is the additional data; `info` is empty.
enum EncryptedObject {
  private static let suite = HPKE.Ciphersuite.Curve25519_SHA256_ChachaPoly
  private static let type = "step-command+jwe"

  static func seal(_ content: [UInt8], to key: EncryptionKey) -> String {
    let header = Base64URL.encode(
      JSON.bytes([
        "alg": "HPKE-4", "typ": .string(type), "cty": "JWT", "kid": .string(key.thumbprint.description),
      ]))
    // A checked key and a fresh ephemeral one: nothing is left that can fail but memory.
    var sender = try! HPKE.Sender(recipientKey: key.key, ciphersuite: suite, info: .init())
    let ciphertext = try! sender.seal(content, authenticating: Array(header.utf8))
    return "\(header).\(Base64URL.encode(sender.encapsulatedKey))..\(Base64URL.encode(ciphertext))."
  }

  static func open(_ text: some StringProtocol, with key: DecryptionKey) throws(ProtocolError) -> [UInt8] {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 5, parts[2].isEmpty, parts[4].isEmpty, let header = Base64URL.decode(parts[0]),
      let encapsulated = Base64URL.decode(parts[1]), encapsulated.count == 32,
      let ciphertext = Base64URL.decode(parts[3])
    else { throw .malformed("not a compact JWE with integrated encryption") }

    var members = try ObjectReader(parse(header, "the JWE header"), of: "the JWE header", isExtensible: false)
    try members.constant("alg", "HPKE-4")
    try members.constant("typ", type)
    try members.constant("cty", "JWT")
    guard identical(try members.string("kid"), key.thumbprint.description) else { throw .unknownKey }
    try members.end()

    return try open(ciphertext, encapsulated, info: [], additional: Array(parts[0].utf8), with: key)
  }

  /// RFC 9180 5.1.1 and 5.2, with the check of the agreed secret that 7.1.4 demands.
  static func open(
    _ ciphertext: [UInt8], _ encapsulated: [UInt8], info: [UInt8], additional: [UInt8], with key: DecryptionKey
  ) throws(ProtocolError) -> [UInt8] {
    guard let point = try? Curve25519.KeyAgreement.PublicKey(rawRepresentation: encapsulated),
      isContributory(key.key, point),
      var recipient = try? HPKE.Recipient(
        privateKey: key.key, ciphersuite: suite, info: .init(info), encapsulatedKey: .init(encapsulated)),
      let content = try? recipient.open(ciphertext, authenticating: additional)
    else { throw .undecipherable }
    return Array(content)
  }
}

extension JSON {
  /// A literal written where its bytes are needed.
  fileprivate static func bytes(_ value: JSON) -> [UInt8] { value.bytes }
}
