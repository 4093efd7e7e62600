package import Encoding

/// A compact JWS (RFC 7515) that uses only `Ed25519` (RFC 9864, RFC 8037) and one explicit type (RFC 8725 3.11).
///
/// The header offers no choice of algorithm that could be attacked: one with any other member or value is refused.
package struct SignedObject {
  /// The type of an object, as its header's `typ`.
  package enum Kind: String {
    case command = "step-command+jwt"
    case token = "step-token+jwt"
    case status = "step-status+jwt"
    case vehicle = "step-vehicle+jwt"
    case notice = "step-notice+jwt"
    case event = "step-event+jwt"
    case keys = "step-keys+jwt"
    case request = "step-request+jwt"

    /// How a reader learns which key signed the object.
    package enum KeyHint {
      /// The header names the key (`kid`).
      case name
      /// The header contains the key (`jwk`), because the reader may not know it yet.
      case key
      /// The claims name it.
      case none
    }

    package var keyHint: KeyHint {
      switch self {
      case .token, .status, .notice, .event: .name
      case .vehicle, .request, .keys: .key
      case .command: .none
      }
    }
  }

  /// What was signed: the claims.
  package let payload: JSON
  /// The header's `kid`, in kinds that have one.
  private let keyID: String?
  /// The header's `jwk`, in kinds that have one.
  package let embeddedKey: VerificationKey?

  private let signingInput: [UInt8]
  private let signature: [UInt8]

  /// Reads without verifying the signature: the content often names the key.
  package init(parsing text: some StringProtocol, as kind: Kind) throws(ProtocolError) {
    try self.init(utf8: Array(text.utf8), as: kind)
  }

  package init(utf8 text: [UInt8], as kind: Kind) throws(ProtocolError) {
    let parts = compactParts(of: text)
    guard parts.count == 3, let header = Base64URL.decode(utf8: parts[0]),
      let payload = Base64URL.decode(utf8: parts[1]), let signature = Base64URL.decode(utf8: parts[2]),
      signature.count == 64
    else { throw .malformed("not a compact JWS") }

    var members = try ObjectReader(parse(header, "the JWS header"), of: "the JWS header", isExtensible: false)
    try members.constant("alg", "Ed25519")
    try members.constant("typ", kind.rawValue)
    keyID = kind.keyHint == .name ? try members.string("kid") : nil
    embeddedKey =
      kind.keyHint == .key
      ? try members.take("jwk", "an Ed25519 JWK") { value in
        value.object?.count == 3 ? try? VerificationKey(jwk: value) : nil
      } : nil
    try members.end()

    self.payload = try parse(payload, "the JWS payload")
    self.signature = signature
    signingInput = Array(text[..<parts[1].endIndex])
  }

  /// Throws unless the signature is by this key, and the header's `kid`, if any, names it.
  package func verify(by key: VerificationKey) throws(ProtocolError) {
    if let keyID, !identical(keyID, key.thumbprint.description) { throw .unknownKey }
    guard key.isValid(signature, for: signingInput) else { throw .badSignature }
  }

  /// Throws unless the header names one of the keys, and the signature is by that key.
  package func verify(by keys: [VerificationKey]) throws(ProtocolError) {
    guard let keyID, let key = keys.first(where: { identical(keyID, $0.thumbprint.description) }) else {
      throw .unknownKey
    }
    try verify(by: key)
  }

  /// Appends spaces, which JSON allows, so that the size of the encrypted text reveals nothing.
  private static func padded(_ payload: [UInt8], _ kind: Kind) -> [UInt8] {
    let sizes: [Int] =
      switch kind {
      case .command: Command.paddedSizes
      case .event: VehicleEvent.paddedSizes
      case .token, .status, .vehicle, .notice, .request, .keys: []
      }
    guard let size = sizes.first(where: { $0 >= payload.count }) else { return payload }
    return payload + [UInt8](repeating: 0x20, count: size - payload.count)
  }

  package static func sign(_ payload: JSON, as kind: Kind, by key: SigningKey) -> String {
    var header: [JSON.Member] = [JSON.Member("alg", "Ed25519"), JSON.Member("typ", .string(kind.rawValue))]
    switch kind.keyHint {
    case .name: header.append(JSON.Member("kid", .string(key.verificationKey.thumbprint.description)))
    case .key: header.append(JSON.Member("jwk", key.verificationKey.jwk))
    case .none: break
    }
    let input = Base64URL.encode(JSON.object(header).bytes) + "." + Base64URL.encode(padded(payload.bytes, kind))
    return input + "." + Base64URL.encode(key.signature(for: Array(input.utf8)))
  }
}

/// The parts of a compact form (RFC 7515 3.1), which full stops separate.
package func compactParts(of text: [UInt8]) -> [ArraySlice<UInt8>] {
  text.split(separator: 0x2E, omittingEmptySubsequences: false)
}

/// Parses JSON and throws the protocol's error. `what` is our own text, so the error repeats nothing of the input.
package func parse(_ bytes: some Sequence<UInt8>, _ what: String) throws(ProtocolError) -> JSON {
  do throws(JSON.SyntaxError) { return try JSON(parsing: bytes) } catch { throw .malformed("\(what) is \(error)") }
}
