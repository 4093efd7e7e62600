import Domain
import Encoding
import StepProtocol
import SystemIO
import Terminal

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
