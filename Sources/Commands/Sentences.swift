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
    case .proofNotAccepted: "it does not accept this proof; use a dynamic tag or a rotating beacon"
    case .staleProof: "the proof is too old, or is not a new one"
    case .notNear: "you are too far from the step"
    case .busy: "the step is moving"
    case .obstructed: "something is in the way"
    case .unavailable: "the controller cannot move the step; its log says why"
    case .other: "for a reason that this stepctl does not know; is it as new as the vehicle?"
    }
  }
}

extension CommandFailure {
  init(_ refusal: Refusal) {
    self.init(
      .refused, "the vehicle refused (\(refusal.code.rawValue)): \(refusal.code.sentence)",
      hint: refusal.retryCanHelp ? "trying again can help" : nil,
      details: [.init("refusal", .string(refusal.code.rawValue)), .init("retry", .bool(refusal.retryCanHelp))])
  }
}

extension Position {
  /// As a word for a state: open, closed.
  var state: String {
    switch self {
    case .open: "open"
    case .close: "closed"
    case .unknown: "somewhere between open and closed"
    }
  }
}

extension Zone {
  /// As it stands beside a distance. That two zones cannot be told apart does not make the step unknown: one may well be
  /// located at it.
  var column: String { self == .unknown ? "-" : rawValue }
}

/// A token as its rider reads it.
struct TokenReport {
  private let token: Token

  /// Seconds since 1970.
  private let now: Int64

  init(_ token: Token, at now: Int64) {
    self.token = token
    self.now = now
  }

  /// `alice: left, right, until 2026-11-21 17:30 (7 h)`
  var line: String {
    let steps = token.steps.map(\.description).joined(separator: ", ")
    return "\(printable(token.subject)): \(steps), \(time)"
  }

  private var time: String {
    if now < token.notBefore { return "not before \(dateAndTime(token.notBefore))" }
    if now >= token.expires { return "expired \(dateAndTime(token.expires))" }
    return "until \(dateAndTime(token.expires)) (\(span(token.expires - now)))"
  }
}
