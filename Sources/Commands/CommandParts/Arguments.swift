import ArgumentParser
package import Domain
package import Geography
import Glibc

/// Step ids separated by commas, without repetition.
package struct StepList: ExpressibleByArgument {
  package let ids: [StepID]

  package init?(argument: String) {
    let parts = argument.split(separator: ",", omittingEmptySubsequences: false).map { StepID(String($0)) }
    ids = parts.compactMap { $0 }
    guard ids.count == parts.count, Set(ids).count == ids.count else { return nil }
  }
}

/// A duration as people type it: a whole number and one of `s`, `m`, `h`, `d`.
package struct Lifetime: ExpressibleByArgument {
  package let seconds: Int64

  /// A century. No certificate lasts that long.
  private static let longest: Int64 = 36_500 * 86400

  package init(seconds: Int64) { self.seconds = seconds }

  package init?(argument: String) {
    let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86400]
    guard let unit = argument.last.flatMap({ units[$0] }), argument.dropLast().allSatisfy(\.isNumber),
      let count = Int64(argument.dropLast()), (1...Self.longest / unit).contains(count)
    else { return nil }
    seconds = count * unit
  }

  package var defaultValueDescription: String {
    let unit: (letter: Character, seconds: Int64) =
      [("d", 86_400), ("h", 3600), ("m", 60)].first { seconds % $0.1 == 0 } ?? ("s", 1)
    return "\(seconds / unit.seconds)\(unit.letter)"
  }
}

/// A moment as people type it: a date and a time of day, or only a time of day.
package struct LocalTime: ExpressibleByArgument {
  private let time: tm
  private let hasDate: Bool

  package init?(argument: String) {
    // With a space it is as this program prints it.
    let parts = argument.split(omittingEmptySubsequences: false) { $0 == "T" || $0 == " " }
    guard parts.count <= 2, let last = parts.last, let clock = Self.numbers(last, [2, 2], ":"), clock[0] < 24,
      clock[1] < 60
    else { return nil }
    var time = tm()
    (time.tm_hour, time.tm_min) = (clock[0], clock[1])
    hasDate = parts.count == 2
    if hasDate {
      guard let day = Self.numbers(parts[0], [4, 2, 2], "-"), day[0] >= 1970 else { return nil }
      (time.tm_year, time.tm_mon, time.tm_mday) = (day[0] - 1900, day[1] - 1, day[2])
      // mktime(3) turns an impossible date into another date.
      var normal = time
      guard timegm(&normal) >= 0, normal.tm_mday == time.tm_mday, normal.tm_mon == time.tm_mon else { return nil }
    }
    self.time = time
  }

  private static func numbers(_ text: Substring, _ widths: [Int], _ separator: Character) -> [Int32]? {
    let parts = text.split(separator: separator, omittingEmptySubsequences: false)
    let numbers = parts.compactMap { $0.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int32($0) : nil }
    return parts.map(\.utf8.count) == widths && numbers.count == widths.count ? numbers : nil
  }

  /// Unix time. A time of day means its next occurrence.
  package func seconds(after now: Int64) -> Int64 {
    func made(_ time: tm, daysLater: Int32) -> Int64 {
      var time = time
      time.tm_mday += daysLater
      // The time zone's rules decide whether daylight saving time applies.
      time.tm_isdst = -1
      return Int64(mktime(&time))
    }
    if hasDate { return made(time, daysLater: 0) }
    var clock = time_t(now)
    var today = tm()
    localtime_r(&clock, &today)
    (today.tm_hour, today.tm_min, today.tm_sec) = (time.tm_hour, time.tm_min, 0)
    let sameDay = made(today, daysLater: 0)
    return sameDay >= now ? sameDay : made(today, daysLater: 1)
  }
}

extension RiderName: ExpressibleByArgument {
  package init?(argument: String) { self.init(argument) }
}

/// A place as people type it.
package struct Place: ExpressibleByArgument {
  package let coordinate: Coordinate

  package init?(argument: String) {
    let parts = argument.split(separator: ",", omittingEmptySubsequences: false)
    guard parts.count == 2, let latitude = Double(parts[0]), let longitude = Double(parts[1]),
      let coordinate = Coordinate(latitude: latitude, longitude: longitude)
    else { return nil }
    self.coordinate = coordinate
  }
}
