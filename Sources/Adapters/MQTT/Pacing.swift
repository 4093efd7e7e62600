import SystemIO

/// How long to wait before a broker is tried again.
///
/// One that is away is back at some moment, and is then to be met within two seconds; a TLS handshake every second is
/// nothing to it. One that refuses will go on refusing for a while.
struct Pacing {
  static let first = Duration.milliseconds(200)
  static let longest = Duration.milliseconds(1_500)

  private var previous = Pacing.first
  private var refusals = Backoff()

  /// The wait after a connection, or an attempt at one, that ended.
  ///
  /// - Parameters:
  ///   - lasted: how long it was established; zero where it never was.
  ///   - chance: a random number from 0 to 1.
  mutating func next(after error: MQTTError, lasting lasted: Duration, chance: Double) -> Duration {
    if error.isRefusal {
      previous = Self.longest
      return refusals.next(afterLasting: lasted, chance: chance)
    }
    refusals = Backoff()
    if lasted > Backoff.longest { previous = Self.first }
    // Decorrelated jitter: what lost the broker at the same moment does not come back in step.
    let next = min(Self.longest, Self.first + (previous * 3 - Self.first) * chance)
    previous = next
    return next
  }
}

extension MQTTError {
  /// Whether trying again soon comes to the same: the other side, or a file here, has to be mended first.
  fileprivate var isRefusal: Bool {
    switch self {
    case .unusableFile, .untrustedBroker, .refusedByAlert, .subscriptionRefused, .oversized, .protocolViolated: true
    case .refused(_, let code): code != .serverUnavailable
    case .cannotResolve, .cannotConnect, .timedOut, .tlsFailed, .lost, .system: false
    }
  }
}
