/// How long to wait before something is tried again: from half a second, doubling, to half a minute.
///
/// The jitter keeps clients that lost the same broker at the same moment from coming back in step.
package struct Backoff: Sendable {
  package static let first = Duration.milliseconds(500)
  package static let longest = Duration.seconds(30)

  private var failures = 0

  package init() {}

  /// The wait after a connection, or an attempt at one, that ended.
  ///
  /// - Parameters:
  ///   - lasted: how long it was established; zero where it did not come so far. Only a connection that outlived the
  ///     longest wait starts the series anew: a broker that accepts and then drops is not to be hammered.
  ///   - chance: a random number from 0 to 1; the wait is shortened by up to a half with it.
  package mutating func next(afterLasting lasted: Duration, chance: Double) -> Duration {
    if lasted > Self.longest { failures = 0 }
    let full = failures < 6 ? Self.first * (1 << failures) : Self.longest
    failures += 1
    return full * (1 - chance / 2)
  }
}
