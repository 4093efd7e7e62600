import Glibc

/// Times in the server's form: RFC 3339, in UTC. Values are seconds of Unix time.
package enum Timestamp {
  /// `2026-11-23T08:00:00Z`
  package static func text(_ seconds: Int64) -> String {
    var time = time_t(seconds)
    var parts = tm()
    gmtime_r(&time, &parts)
    func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return """
      \(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))\
      T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))Z
      """
  }

  /// Nil for any other form, and for a day that does not exist. Drops a fraction of a second.
  package static func read(_ text: String) -> Int64? {
    let bytes = Array(text.utf8)
    guard bytes.count >= 20, bytes.count <= 30, bytes.last == UInt8(ascii: "Z") else { return nil }
    for (index, separator) in [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":")] {
      guard bytes[index] == Character(separator).asciiValue else { return nil }
    }
    func number(_ range: Range<Int>) -> Int32? {
      guard bytes[range].allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
      return bytes[range].reduce(0) { $0 * 10 + Int32($1 - 0x30) }
    }
    let fraction = bytes[19..<bytes.count - 1]
    guard
      fraction.isEmpty
        || fraction.first == UInt8(ascii: ".") && fraction.count > 1
          && fraction.dropFirst().allSatisfy({ (0x30...0x39).contains($0) }),
      let year = number(0..<4), year >= 1970, let month = number(5..<7), let day = number(8..<10),
      let hour = number(11..<13), hour < 24, let minute = number(14..<16), minute < 60, let second = number(17..<19),
      second < 60
    else { return nil }
    var parts = tm()
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, month - 1, day)
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (hour, minute, second)
    var normal = parts
    let seconds = timegm(&normal)
    guard normal.tm_mday == day, normal.tm_mon == month - 1 else { return nil }
    return Int64(seconds)
  }

  /// The `Date` of an answer (RFC 9110 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
  static func date(_ text: String) -> Int64? {
    let parts = text.split(separator: " ", omittingEmptySubsequences: false)
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    guard parts.count == 6, parts[5] == "GMT", let month = months.firstIndex(of: String(parts[2])) else { return nil }
    return read("\(parts[3])-\(month < 9 ? "0" : "")\(month + 1)-\(parts[1])T\(parts[4])Z")
  }
}
