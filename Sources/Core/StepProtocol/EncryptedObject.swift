package import Cryptography
import Encoding

/// A compact JWE with HPKE integrated encryption (draft-ietf-jose-hpke-encrypt, `HPKE-4`): RFC 9180 base mode with
/// DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and ChaCha20-Poly1305.
///
/// `BASE64URL(header) . BASE64URL(enc) . . BASE64URL(ciphertext) .`: there is no initialization vector, and the
/// authentication tag is part of the ciphertext. The first part's ASCII is the additional data; `info` is empty.
package enum EncryptedObject {
  /// The type of an object, as its header's `typ`.
  package enum Kind: String {
    case command = "step-command+jwe"
    case event = "step-event+jwe"
  }

  /// - Returns: the compact form, and the exporter of secrets that this side shares with the recipient only.
  package static func seal(
    _ content: [UInt8], to key: EncryptionKey, as kind: Kind = .command
  ) -> (text: String, exporter: HPKE.Exporter) {
    let header = header(for: key.thumbprint, as: kind)
    // The key is not of low order: `EncryptionKey` checked that.
    let sealed = HPKE.seal(content, to: key.key, additional: Array(header.utf8))!
    let (encapsulated, ciphertext) = (Base64URL.encode(sealed.encapsulatedKey), Base64URL.encode(sealed.ciphertext))
    return ("\(header).\(encapsulated)..\(ciphertext).", sealed.exporter)
  }

  /// The header as this library writes it.
  package static func header(for key: Thumbprint, as kind: Kind = .command) -> String {
    Base64URL.encode(
      JSON.bytes(["alg": "HPKE-4", "typ": .string(kind.rawValue), "cty": "JWT", "kid": .string(key.description)]))
  }

  /// What differs between two objects of a kind for one key: the encapsulated key (32 bytes) and the ciphertext.
  ///
  /// - Returns: nil for anything that has another form, or a header that this library does not write.
  package static func brief(_ text: [UInt8], for key: Thumbprint, as kind: Kind = .command) -> [UInt8]? {
    let parts = compactParts(of: text)
    guard parts.count == 5, parts[2].isEmpty, parts[4].isEmpty,
      Array(parts[0]) == Array(header(for: key, as: kind).utf8),
      let encapsulated = Base64URL.decode(utf8: parts[1]), encapsulated.count == encapsulatedSize,
      let ciphertext = Base64URL.decode(utf8: parts[3])
    else { return nil }
    return encapsulated + ciphertext
  }

  /// The compact form again.
  ///
  /// - Returns: nil if there are too few bytes.
  package static func text(
    ofBrief brief: some Collection<UInt8>, for key: Thumbprint, as kind: Kind = .command
  ) -> [UInt8]? {
    guard brief.count > encapsulatedSize else { return nil }
    let encapsulated = Base64URL.encode(Array(brief.prefix(encapsulatedSize)))
    let ciphertext = Base64URL.encode(Array(brief.dropFirst(encapsulatedSize)))
    return Array("\(header(for: key, as: kind)).\(encapsulated)..\(ciphertext).".utf8)
  }

  private static let encapsulatedSize = 32

  package static func open(_ text: some StringProtocol, with key: DecryptionKey) throws(ProtocolError) -> [UInt8] {
    try open(utf8: Array(text.utf8), with: key, usualHeader: []).content
  }

  /// - Parameter usualHeader: a header known to be valid. If the text has this header, it is not parsed again.
  /// - Returns: the content, and the exporter of secrets that this side shares with the sender only.
  package static func open(
    utf8 text: [UInt8], as kind: Kind = .command, with key: DecryptionKey, usualHeader: [UInt8]
  ) throws(ProtocolError) -> (content: [UInt8], exporter: HPKE.Exporter) {
    let parts = compactParts(of: text)
    // The cheapest checks come first: most messages of a flood are refused before they are decoded.
    guard parts.count == 5, parts[2].isEmpty, parts[4].isEmpty, parts[1].count == 43 else {
      throw .malformed("not a compact JWE with integrated encryption")
    }
    if Array(parts[0]) != usualHeader { try check(header: parts[0], as: kind, for: key) }
    guard let encapsulated = Base64URL.decode(utf8: parts[1]), encapsulated.count == 32,
      let ciphertext = Base64URL.decode(utf8: parts[3])
    else { throw .malformed("not a compact JWE with integrated encryption") }
    guard
      let opened = HPKE.open(
        ciphertext, encapsulatedKey: encapsulated, with: key.key, additional: Array(parts[0]))
    else { throw .undecipherable }
    return (opened.message, opened.exporter)
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
}

extension JSON {
  /// Lets a literal be written where bytes are needed.
  fileprivate static func bytes(_ value: JSON) -> [UInt8] { value.bytes }
}
