import Crypto
import Encoding

import struct FoundationEssentials.Data

/// A compact JWE with HPKE integrated encryption (draft-ietf-jose-hpke-encrypt, `HPKE-4`): RFC 9180 base mode with
/// DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and ChaCha20-Poly1305.
///
/// `BASE64URL(header) . BASE64URL(enc) . . BASE64URL(ciphertext) .`: no initialization vector, and the tag is a part
/// of the ciphertext. The ASCII of the first part is the additional data; `info` is empty.
enum EncryptedObject {
  /// The type of an object, as its header's `typ`.
  enum Kind: String {
    case command = "step-command+jwe"
    case event = "step-event+jwe"
  }

  private static let suite = HPKE.Ciphersuite.Curve25519_SHA256_ChachaPoly

  /// - Returns: the compact form, and the sender's context, which exports secrets that only the recipient has too.
  static func seal(
    _ content: [UInt8], to key: EncryptionKey, as kind: Kind = .command
  ) -> (text: String, context: HPKE.Sender) {
    let header = header(for: key.thumbprint, as: kind)
    // A checked key and a fresh ephemeral one: nothing is left that can fail but memory.
    var sender = try! HPKE.Sender(recipientKey: key.key, ciphersuite: suite, info: .init())
    let ciphertext = try! sender.seal(content, authenticating: Array(header.utf8))
    return ("\(header).\(Base64URL.encode(sender.encapsulatedKey))..\(Base64URL.encode(ciphertext)).", sender)
  }

  /// The header as this library writes it.
  static func header(for key: Thumbprint, as kind: Kind = .command) -> String {
    Base64URL.encode(
      JSON.bytes(["alg": "HPKE-4", "typ": .string(kind.rawValue), "cty": "JWT", "kid": .string(key.description)]))
  }

  static func open(_ text: some StringProtocol, with key: DecryptionKey) throws(ProtocolError) -> [UInt8] {
    try open(utf8: Array(text.utf8), with: key, usualHeader: []).content
  }

  /// - Parameter usualHeader: one that is right, so that it need not be read.
  /// - Returns: what was sealed, and the context, which exports secrets that only the sender has too.
  static func open(
    utf8 text: [UInt8], as kind: Kind = .command, with key: DecryptionKey, usualHeader: [UInt8]
  ) throws(ProtocolError) -> (content: [UInt8], context: HPKE.Recipient) {
    let parts = compactParts(of: text)
    // What costs least comes first: most of a flood ends before it is decoded.
    guard parts.count == 5, parts[2].isEmpty, parts[4].isEmpty, parts[1].count == 43 else {
      throw .malformed("not a compact JWE with integrated encryption")
    }
    if Array(parts[0]) != usualHeader { try check(header: parts[0], as: kind, for: key) }
    guard let encapsulated = Base64URL.decode(utf8: parts[1]), encapsulated.count == 32,
      let ciphertext = Base64URL.decode(utf8: parts[3])
    else { throw .malformed("not a compact JWE with integrated encryption") }
    return try open(ciphertext, encapsulated, info: [], additional: Array(parts[0]), with: key)
  }

  private static func check(header: ArraySlice<UInt8>, as kind: Kind, for key: DecryptionKey) throws(ProtocolError) {
    guard let header = Base64URL.decode(utf8: header) else {
      throw .malformed("not a compact JWE with integrated encryption")
    }
    var members = try ObjectReader(parse(header, "the JWE header"), of: "the JWE header", isExtensible: false)
    try members.constant("alg", "HPKE-4")
    try members.constant("typ", kind.rawValue)
    try members.constant("cty", "JWT")
    guard identical(try members.string("kid"), key.thumbprint.description) else { throw .unknownKey }
    try members.end()
  }

  /// RFC 9180 5.1.1 and 5.2, with the check of the agreed secret that 7.1.4 demands.
  static func open(
    _ ciphertext: [UInt8], _ encapsulated: [UInt8], info: [UInt8], additional: [UInt8], with key: DecryptionKey
  ) throws(ProtocolError) -> (content: [UInt8], context: HPKE.Recipient) {
    // The points that 7.1.4 is about, by name: to agree on a secret and look at it would double what opening costs.
    guard !isLowOrder(encapsulated),
      var recipient = try? HPKE.Recipient(
        privateKey: key.key, ciphersuite: suite, info: .init(info), encapsulatedKey: .init(encapsulated)),
      let content = try? recipient.open(ciphertext, authenticating: additional)
    else { throw .undecipherable }
    return (Array(content), recipient)
  }
}

extension JSON {
  /// A literal written where its bytes are needed.
  fileprivate static func bytes(_ value: JSON) -> [UInt8] { value.bytes }
}

/// The seven X25519 public keys whose order divides 8, on the curve and on its twist, in every form that X25519 reads:
/// 0, 1, the two of order 8, p - 1, p and p + 1, each with or without the top bit (RFC 7748 5 ignores it).
private let lowOrder: Set<[UInt8]> = {
  func point(_ first: UInt8, _ middle: UInt8, _ last: UInt8) -> [UInt8] {
    [first] + [UInt8](repeating: middle, count: 30) + [last]
  }
  return [
    point(0, 0, 0), point(1, 0, 0), point(0xEC, 0xFF, 0x7F), point(0xED, 0xFF, 0x7F), point(0xEE, 0xFF, 0x7F),
    [
      0xE0, 0xEB, 0x7A, 0x7C, 0x3B, 0x41, 0xB8, 0xAE, 0x16, 0x56, 0xE3, 0xFA, 0xF1, 0x9F, 0xC4, 0x6A, 0xDA, 0x09, 0x8D,
      0xEB, 0x9C, 0x32, 0xB1, 0xFD, 0x86, 0x62, 0x05, 0x16, 0x5F, 0x49, 0xB8, 0x00,
    ],
    [
      0x5F, 0x9C, 0x95, 0xBC, 0xA3, 0x50, 0x8C, 0x24, 0xB1, 0xD0, 0xB1, 0x55, 0x9C, 0x83, 0xEF, 0x5B, 0x04, 0x44, 0x5C,
      0xC4, 0x58, 0x1C, 0x8E, 0x86, 0xD8, 0x22, 0x4E, 0xDD, 0xD0, 0x9F, 0x11, 0x57,
    ],
  ]
}()

/// Whether every secret agreed with the holder of this X25519 key is zero.
func isLowOrder(_ key: [UInt8]) -> Bool { lowOrder.contains(key.dropLast() + [key[31] & 0x7F]) }
