package import Domain
import Encoding
import Glibc
package import StepProtocol

/// The local time of day to the millisecond: `13:04:05.067`.
package func timeOfDay(_ time: UnixTime) -> String {
  var seconds = time_t(time.microseconds.floorDivided(by: 1_000_000))
  var parts = tm()
  localtime_r(&seconds, &parts)
  let milliseconds = (time.microseconds - Int64(seconds) * 1_000_000) / 1000
  return "\(padded(parts.tm_hour)):\(padded(parts.tm_min)):\(padded(parts.tm_sec)).\(padded(Int32(milliseconds), 3))"
}

/// A local date and time to the second: `2026-11-21 17:30:09`. All time zones have whole minutes today.
package func dateTimeAndSecond(_ seconds: Int64) -> String {
  "\(dateAndTime(seconds)):\(padded(Int32(((seconds % 60) + 60) % 60)))"
}

/// A local date and time: `2026-11-21 17:30`.
package func dateAndTime(_ seconds: Int64) -> String {
  var seconds = time_t(seconds)
  var parts = tm()
  localtime_r(&seconds, &parts)
  return """
    \(parts.tm_year + 1900)-\(padded(parts.tm_mon + 1))-\(padded(parts.tm_mday)) \
    \(padded(parts.tm_hour)):\(padded(parts.tm_min))
    """
}

/// A duration in the largest unit that is precise enough: `45 s`, `12 min`, `8 h`, `30 days`.
package func span(_ seconds: Int64) -> String {
  switch seconds {
  case ..<120: "\(seconds) s"
  case ..<7200: "\((seconds + 30) / 60) min"
  case ..<172_800: "\((seconds + 1800) / 3600) h"
  default: "\((seconds + 43_200) / 86_400) days"
  }
}

/// `1 frame`, `2 frames`.
package func counted(_ count: Int, _ word: String) -> String { "\(count) \(word)\(count == 1 ? "" : "s")" }

/// A number with two decimals.
package func hundredths(_ value: Double) -> String {
  let count = Int64((abs(value) * 100).rounded())
  return "\(value < 0 && count > 0 ? "-" : "")\(count / 100).\(count % 100 < 10 ? "0" : "")\(count % 100)"
}

/// A number with one decimal, which is enough for metres and seconds.
package func tenths(_ value: Double) -> String {
  let tenths = Int64((value * 10).rounded())
  return "\(tenths < 0 ? "-" : "")\(abs(tenths) / 10).\(abs(tenths) % 10)"
}

extension Zone {
  /// The word beside a distance. An unclear zone does not mean that the step is unknown: the rider may still be located
  /// at it.
  package var column: String { self == .unknown ? "-" : rawValue }
}

/// A token as shown to its rider.
package struct TokenReport {
  private let token: Token

  /// Seconds since 1970.
  private let now: Int64

  package init(_ token: Token, at now: Int64) {
    self.token = token
    self.now = now
  }

  /// `alice: left, right, until 2026-11-21 17:30 (7 h)`
  package var line: String {
    let steps = token.steps.map(\.description).joined(separator: ", ")
    return "\(printable(token.subject)): \(steps), \(token.validity.words(at: now))"
  }

  /// Measured with this device's clock.
  package var isValid: Bool { token.validity.state(at: now) == .now }
}

extension Validity {
  /// `until 2026-11-21 17:30 (7 h)`
  package func words(at now: Int64) -> String {
    switch state(at: now) {
    case .notYet: "from \(dateAndTime(begin)) until \(dateAndTime(end))"
    case .now: "until \(dateAndTime(end)) (\(span(end - now)))"
    case .over: "expired \(dateAndTime(end))"
    }
  }
}

private func padded(_ number: Int32, _ width: Int = 2) -> String {
  let digits = String(number)
  return String(repeating: "0", count: max(0, width - digits.count)) + digits
}

extension Int64 {
  fileprivate func floorDivided(by divisor: Int64) -> Int64 {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? quotient - 1 : quotient
  }
}
