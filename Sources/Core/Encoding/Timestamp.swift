/// Times as RFC 3339 writes them, in whole seconds. A value is seconds of Unix time.
public enum Timestamp {
  /// The last second of the year 9999: RFC 3339 has four digits for a year.
  public static let latest: Int64 = 253_402_300_799

  /// Writes a time in UTC: `2027-03-01T09:30:00Z`.
  public static func text(_ seconds: Int64) -> String {
    // Rounded down, so that a time before 1970 is on its own day.
    let day = (seconds >= 0 ? seconds : seconds - 86_399) / 86_400
    let time = seconds - day * 86_400
    let days = day + 719_468
    let (era, inEra) = (days / 146_097, days % 146_097)
    let yearOfEra = (inEra - inEra / 1460 + inEra / 36_524 - inEra / 146_096) / 365
    let inYear = inEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let part = (5 * inYear + 2) / 153
    let month = part < 10 ? part + 3 : part - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(year)-\(two(month))-\(two(inYear - (153 * part + 2) / 5 + 1))"
      + "T\(two(time / 3600)):\(two(time / 60 % 60)):\(two(time % 60))Z"
  }

  /// Reads a time. Drops a fraction of a second. An offset may replace the `Z`.
  ///
  /// - Returns: nil for any other form, for a day that does not exist, for a leap second, and for a time before 1970 or
  ///   after 9999.
  public static func read(_ text: some StringProtocol) -> Int64? {
    var rest = Array(text.utf8)[...]
    func number(_ digits: Int) -> Int64? {
      let part = rest.prefix(digits)
      guard part.count == digits, part.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
      rest = rest.dropFirst(digits)
      return part.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }
    func take(_ characters: String) -> Bool {
      guard let next = rest.first, characters.utf8.contains(next) else { return false }
      rest = rest.dropFirst()
      return true
    }
    guard let year = number(4), take("-"), let month = number(2), take("-"), let day = number(2), take("Tt"),
      let hour = number(2), take(":"), let minute = number(2), take(":"), let second = number(2)
    else { return nil }
    if take(".") {
      let digits = rest.prefix { (0x30...0x39).contains($0) }
      guard (1...9).contains(digits.count) else { return nil }
      rest = rest.dropFirst(digits.count)
    }
    var offset: Int64 = 0
    if !take("Zz") {
      let isWest = rest.first == 0x2D
      guard take("+-"), let hours = number(2), take(":"), let minutes = number(2), hours < 24, minutes < 60 else {
        return nil
      }
      offset = (hours * 60 + minutes) * (isWest ? -60 : 60)
    }
    guard rest.isEmpty, (1970...9999).contains(year), (1...12).contains(month), hour < 24, minute < 60, second < 60,
      (1...days(in: month, of: year)).contains(day)
    else { return nil }
    let seconds = Self.day(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset
    return (0...latest).contains(seconds) ? seconds : nil
  }

  private static func days(in month: Int64, of year: Int64) -> Int64 {
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    return [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][Int(month) - 1]
  }

  /// Days since 1970-01-01. A year begins in March here, so that the leap day is its last (H. Hinnant,
  /// days_from_civil).
  private static func day(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    let year = month <= 2 ? year - 1 : year
    let (era, inEra) = (year / 400, year % 400)
    let inYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + inEra * 365 + inEra / 4 - inEra / 100 + inYear - 719_468
  }
}
