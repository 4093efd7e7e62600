/// How long to wait before the next attempt to connect: from half a second, doubling, to half a minute.
///
/// The jitter keeps clients that lost the same broker at the same moment from coming back in step.
struct Backoff {
  static let first = Duration.milliseconds(500)
  static let longest = Duration.seconds(30)

  private var failures = 0

  /// The wait after a connection, or an attempt at one, that ended.
  ///
  /// - Parameters:
  ///   - lasted: from CONNACK to the end; zero where it did not come so far. Only a connection that outlived the
  ///     longest wait starts the series anew: a broker that accepts and then drops is not to be hammered.
  ///   - chance: a random number from 0 to 1; the wait is shortened by up to a half with it.
  mutating func next(afterLasting lasted: Duration, chance: Double) -> Duration {
    if lasted > Self.longest { failures = 0 }
    let full = failures < 6 ? Self.first * (1 << failures) : Self.longest
    failures += 1
    return full * (1 - chance / 2)
  }
}
