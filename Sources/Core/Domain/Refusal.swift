/// Why the controller did not obey. The raw value is what stands in a statement.
public enum RefusalCode: String, Sendable, CaseIterable {
  /// Decrypted and signed by a known rider, but not a command as the protocol defines it.
  case malformed
  /// For another vehicle.
  case wrongVehicle = "wrong_vehicle"
  /// For another step than the topic's, one that the token does not allow, or one the rider does not face.
  case wrongStep = "wrong_step"
  /// The token's time has not begun.
  case tokenNotYetValid = "token_not_yet_valid"
  /// The token's time is over.
  case tokenExpired = "token_expired"
  /// A retained message: it says nothing about when it was meant.
  case retained
  /// The challenge or the command was used before.
  case replayed
  /// The challenge is unknown or too old, the epoch is not this one, or the deadline has passed.
  case expired
  /// A way of proving presence that the controller's policy does not accept.
  case proofNotAccepted = "proof_not_accepted"
  /// Heard or read too long ago.
  case staleProof = "stale_proof"
  /// At this side, but not within the zone that the policy asks for.
  case notNear = "not_near"
  /// The step is moving.
  case busy
  /// Something is in the way.
  case obstructed
  /// The journal cannot be written or the servo cannot be driven.
  case unavailable

  /// Whether the same rider can succeed by trying once more, with a new challenge and a new proof.
  public var retryCanHelp: Bool {
    switch self {
    case .expired, .staleProof, .notNear, .busy, .obstructed, .unavailable: true
    case .malformed, .wrongVehicle, .wrongStep, .tokenNotYetValid, .tokenExpired, .retained, .replayed,
      .proofNotAccepted:
      false
    }
  }
}

/// Why a motion did not end where it should have.
public enum Fault: String, Sendable, CaseIterable {
  /// The controller stopped (power, crash) while the step moved; where it stands is not known.
  case interrupted
  /// Something is in the way.
  case obstructed
  /// The motion took longer than it may.
  case timeout
  /// The servo's driver failed.
  case driver
}
