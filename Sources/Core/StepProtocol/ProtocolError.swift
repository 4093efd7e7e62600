/// Why bytes are not the message that they claim to be. No case reveals anything about a secret.
public enum ProtocolError: Error, Equatable, CustomStringConvertible {
  /// Not in the form that the protocol defines. The text names the part.
  case malformed(String)
  /// For another key than ours.
  case unknownKey
  /// Not encrypted to us, or changed on the way. One error covers both, so that a sender cannot learn which it was.
  case undecipherable
  /// Not signed by the expected key.
  case badSignature
  /// Signed later than now, by more than clocks may differ.
  case issuedInFuture

  public var description: String {
    switch self {
    case .malformed(let part): "not well formed: \(part)"
    case .unknownKey: "made for another key"
    case .undecipherable: "cannot be decrypted"
    case .badSignature: "the signature does not match"
    case .issuedInFuture: "signed more than a day ahead of this computer's clock; is the clock right?"
    }
  }
}
