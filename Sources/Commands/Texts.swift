import Domain
import Glibc

/// The local time of day to the millisecond: `13:04:05.067`.
func timeOfDay(_ time: UnixTime) -> String {
  var seconds = time_t(time.microseconds.floorDivided(by: 1_000_000))
  var parts = tm()
  localtime_r(&seconds, &parts)
  let milliseconds = (time.microseconds - Int64(seconds) * 1_000_000) / 1000
  return "\(padded(parts.tm_hour)):\(padded(parts.tm_min)):\(padded(parts.tm_sec)).\(padded(Int32(milliseconds), 3))"
}

/// A local date and time for people: `2026-11-21 17:30`.
func dateAndTime(_ seconds: Int64) -> String {
  var seconds = time_t(seconds)
  var parts = tm()
  localtime_r(&seconds, &parts)
  return """
    \(parts.tm_year + 1900)-\(padded(parts.tm_mon + 1))-\(padded(parts.tm_mday)) \
    \(padded(parts.tm_hour)):\(padded(parts.tm_min))
    """
}

/// A length of time in the largest unit that says enough: `45 s`, `12 min`, `8 h`, `30 days`.
func span(_ seconds: Int64) -> String {
  switch seconds {
  case ..<120: "\(seconds) s"
  case ..<7200: "\((seconds + 30) / 60) min"
  case ..<172_800: "\((seconds + 1800) / 3600) h"
  default: "\((seconds + 43_200) / 86_400) days"
  }
}

/// With one decimal: metres and seconds need no more.
func tenths(_ value: Double) -> String {
  let tenths = Int64((value * 10).rounded())
  return "\(tenths < 0 ? "-" : "")\(abs(tenths) / 10).\(abs(tenths) % 10)"
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
