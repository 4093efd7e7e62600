import SystemIO

/// How long to wait before a broker is tried again.
///
/// An unreachable broker returns at some moment, and must then be found within two seconds; a TLS handshake every
/// second is no burden for it. A broker that refuses will probably refuse for a while.
struct Pacing {
  static let first = Duration.milliseconds(200)
  static let longest = Duration.milliseconds(1_500)

  private var previous = Pacing.first
  private var refusals = Backoff()

  /// The wait after the end of a connection or of an attempt.
  ///
  /// - Parameters:
  ///   - lasted: how long it was established; zero if it never was.
  ///   - chance: a random number from 0 to 1.
  mutating func next(after error: MQTTError, lasting lasted: Duration, chance: Double) -> Duration {
    if error.isRefusal {
      previous = Self.longest
      return refusals.next(afterLasting: lasted, chance: chance)
    }
    refusals = Backoff()
    if lasted > Backoff.longest { previous = Self.first }
    // Decorrelated jitter: clients that lost the broker at the same moment do not come back in step.
    let next = min(Self.longest, Self.first + (previous * 3 - Self.first) * chance)
    previous = next
    return next
  }
}

extension MQTTError {
  /// Whether another attempt soon must fail again: first the other side, or a file here, must be corrected.
  fileprivate var isRefusal: Bool {
    switch self {
    case .unusableFile, .untrustedBroker, .refusedByAlert, .subscriptionRefused, .oversized, .protocolViolated: true
    case .refused(_, let code): code != .serverUnavailable
    case .cannotResolve, .cannotConnect, .timedOut, .tlsFailed, .lost, .system: false
    }
  }
}
