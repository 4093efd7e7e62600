/// A half-open interval: the end is not part of it. Unix time, seconds.
package struct Interval: Hashable, Sendable {
  package let begin: Int64
  package let end: Int64

  package init(_ begin: Int64, _ end: Int64) { (self.begin, self.end) = (begin, end) }

  package var length: Int64 { end - begin }

  package func overlaps(_ other: Interval) -> Bool { begin < other.end && other.begin < end }
}

/// The rules for bookings. Times are Unix time, lengths are seconds.
package enum BookingRules {
  package static let minimumLength: Int64 = 60
  package static let maximumLength: Int64 = 31 * 86_400
  /// How far ahead a booking may begin.
  package static let horizon: Int64 = 400 * 86_400
  /// How old "now" may be when the request arrives.
  package static let patience: Int64 = 300
  /// How long access lasts beyond the booking's end.
  package static let grace: Int64 = 900
  /// The longest access, counted from when it is issued: it cannot be revoked at a vehicle without a network.
  package static let maximumAccess: Int64 = 86_400

  /// The interval of a new booking: the requested one. If that began a moment ago, it begins now.
  package static func interval(_ asked: Interval, now: Int64) throws(BookingProblem) -> Interval {
    guard asked.end >= asked.begin else { throw .backwards }
    guard asked.begin >= now - patience, asked.end > now else { throw .past }
    let interval = Interval(max(asked.begin, now), asked.end)
    try checkLength(interval)
    guard interval.begin <= now + horizon else { throw .tooFar }
    return interval
  }

  static func checkLength(_ interval: Interval) throws(BookingProblem) {
    guard interval.length >= minimumLength else { throw .tooShort }
    guard interval.length <= maximumLength else { throw .tooLong }
  }

  /// The next free intervals of the same length.
  ///
  /// - Parameters:
  ///   - taken: in any order. Intervals that ended before `asked` begins may be missing.
  ///   - count: how many intervals to find.
  package static func next(_ asked: Interval, among taken: [Interval], count: Int = 3) -> [Interval] {
    var free: [Interval] = []
    var begin = asked.begin
    let taken = taken.sorted { $0.begin < $1.begin }
    while free.count < count {
      let candidate = Interval(begin, begin + asked.length)
      if let obstacle = taken.first(where: candidate.overlaps) {
        begin = obstacle.end
      } else {
        free.append(candidate)
        begin = candidate.end
      }
    }
    return free
  }
}

/// Why a booking cannot be changed or used as requested.
package enum BookingProblem: Error, Equatable {
  case backwards, past, tooShort, tooLong, tooFar
  /// The booking has ended, or was cancelled.
  case over
  /// The booking is in use: it can be ended, but not cancelled.
  case active
  /// The booking can be cancelled, but not ended.
  case notBegun
  /// Access is available from this time on, Unix time.
  case tooEarly(from: Int64)

  /// The code for programs.
  package var code: String {
    switch self {
    case .backwards: "backwards"
    case .past: "past"
    case .tooShort: "too_short"
    case .tooLong: "too_long"
    case .tooFar: "too_far"
    case .over: "over"
    case .active: "active"
    case .notBegun: "not_begun"
    case .tooEarly: "too_early"
    }
  }

  /// The text for people.
  package var description: String {
    switch self {
    case .backwards: "the booking would end before it begins"
    case .past: "the booking would begin in the past"
    case .tooShort: "a booking lasts for at least a minute"
    case .tooLong: "a booking lasts for at most 31 days"
    case .tooFar: "a booking begins within 400 days"
    case .over: "the booking is over"
    case .active: "the booking is in use: end it instead"
    case .notBegun: "the booking is not in use: cancel it instead"
    case .tooEarly: "access can be had from 24 hours before the booking begins"
    }
  }
}
