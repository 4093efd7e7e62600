/// The rules for bookings. Times are Unix time, lengths are seconds.
package enum BookingRules {
  package static let minimumLength: Int64 = 60
  package static let maximumLength: Int64 = 31 * 86_400
  /// How far ahead a booking may begin.
  package static let horizon: Int64 = 400 * 86_400
  /// How old "now" may be when the request arrives.
  package static let patience: Int64 = 300
  /// The maximum number of an account's bookings that are not over, unless the operator sets another.
  package static let maximumBookings: Int64 = 20
  /// How long access lasts beyond the booking's end.
  package static let grace: Int64 = 900
  /// The longest access, counted from when it is issued: it cannot be revoked at a vehicle without a network.
  package static let maximumAccess: Int64 = 86_400

  /// The interval of a new booking: the requested one. If that began a moment ago, it begins now.
  package static func interval(_ asked: Interval, now: Int64) throws(FleetRefusal) -> Interval {
    guard asked.end >= asked.begin else { throw .backwards }
    guard asked.begin >= now - patience, asked.end > now else { throw .past }
    let interval = Interval(max(asked.begin, now), asked.end)
    try checkLength(interval)
    guard interval.begin <= now + horizon else { throw .tooFar }
    return interval
  }

  static func checkLength(_ interval: Interval) throws(FleetRefusal) {
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
