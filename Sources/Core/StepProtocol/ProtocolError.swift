/// Why bytes are not the message that they claim to be. None of these says anything about a secret.
public enum ProtocolError: Error, Equatable, CustomStringConvertible {
  /// Not in the form that the protocol defines: which part.
  case malformed(String)
  /// For another key than ours.
  case unknownKey
  /// Not encrypted to us, or changed on the way; there is only one such error, so that nobody can ask which.
  case undecipherable
  /// The signature is not by the key that it should be by.
  case badSignature
  /// Signed later than now, by more than clocks differ.
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
