import Crypto
import StrictJSON

/// A compact JWS (RFC 7515) with EdDSA over Ed25519 (RFC 8037), one explicit type (RFC 8725 3.11), and nothing else.
///
/// There is no choice of algorithm to attack: a header with any other member or value is not one of ours.
struct SignedObject {
  /// The type of an object, as its header's `typ`.
  enum Kind: String {
    case command = "step-command+jwt"
    case token = "step-token+jwt"
    case status = "step-status+jwt"

    /// Whether the header names the key; a command's is named by the token inside.
    var hasKeyID: Bool { self != .command }
  }

  /// What was signed: the claims.
  let payload: JSON
  /// The `kid` of the header, in those kinds that have one.
  private let keyID: String?

  private let signingInput: [UInt8]
  private let signature: [UInt8]

  /// Reads without checking the signature: the key is often named inside.
  init(parsing text: some StringProtocol, as kind: Kind) throws(ProtocolError) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Base64URL.decode(parts[0]), let payload = Base64URL.decode(parts[1]),
      let signature = Base64URL.decode(parts[2]), signature.count == 64
    else { throw .malformed("not a compact JWS") }

    var members = try Members(parse(header, "the JWS header"), of: "the JWS header")
    try members.constant("alg", "EdDSA")
    try members.constant("typ", kind.rawValue)
    keyID = kind.hasKeyID ? try members.string("kid") : nil
    try members.end()

    self.payload = try parse(payload, "the JWS payload")
    self.signature = signature
    signingInput = Array(parts[0].utf8) + [0x2E] + Array(parts[1].utf8)
  }

  /// Throws unless the header names that key, where it names one, and the signature is the key's.
  func verify(by key: VerificationKey) throws(ProtocolError) {
    if let keyID, !identical(keyID, key.thumbprint.description) { throw .unknownKey }
    guard key.key.isValidSignature(signature, for: signingInput) else { throw .badSignature }
  }

  static func sign(_ payload: JSON, as kind: Kind, by key: SigningKey) -> String {
    var header: [JSON.Member] = [JSON.Member("alg", "EdDSA"), JSON.Member("typ", .string(kind.rawValue))]
    if kind.hasKeyID { header.append(JSON.Member("kid", .string(key.verificationKey.thumbprint.description))) }
    let input = Base64URL.encode(JSON.object(header).bytes) + "." + Base64URL.encode(payload.bytes)
    return input + "." + Base64URL.encode(key.signature(for: Array(input.utf8)))
  }
}

/// JSON, with the protocol's error; names of parts are ours, so nothing of the input is repeated.
func parse(_ bytes: some Sequence<UInt8>, _ what: String) throws(ProtocolError) -> JSON {
  do throws(JSON.SyntaxError) { return try JSON(parsing: bytes) } catch { throw .malformed("\(what) is \(error)") }
}
