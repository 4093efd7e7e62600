import Domain
import Encoding
import StepProtocol
import SystemIO
import Terminal

extension RefusalCode {
  /// What it means for the rider.
  var sentence: String {
    switch self {
    case .malformed: "it does not understand the command; is stepctl as new as the vehicle?"
    case .wrongVehicle: "the token is for another vehicle"
    case .wrongStep: "the token, or the beacon, tag or code, is not for this step"
    case .tokenNotYetValid: "the token is not valid yet"
    case .tokenExpired: "the token has expired; ask the operator for a new one"
    case .retained: "the command was retained by the broker"
    case .replayed: "the command was used before"
    case .expired: "the challenge or the deadline has passed"
    case .proofNotAccepted: "this vehicle does not accept this proof; use a dynamic tag or a rotating beacon"
    case .staleProof: "the proof is too old, or was used before"
    case .notNear: "you are too far from the step"
    case .busy: "the step is moving"
    case .obstructed: "something is in the way"
    case .unavailable: "the controller cannot move the step; its log says why"
    }
  }
}

extension CommandFailure {
  init(_ code: RefusalCode) {
    self.init(
      .refused, "the vehicle refused (\(code.rawValue)): \(code.sentence)",
      hint: code.retryCanHelp ? "trying again can help" : nil,
      details: [.init("refusal", .string(code.rawValue)), .init("retry", .bool(code.retryCanHelp))])
  }
}

extension Position {
  /// The word for a state: `open`, `closed`.
  var state: String {
    switch self {
    case .open: "open"
    case .close: "closed"
    case .unknown: "somewhere between open and closed"
    }
  }
}
