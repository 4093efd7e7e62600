import CLinux
import Glibc

/// The wall clock, in the unit that captures and tokens use.
package enum WallClock {
  /// Microseconds since 1970-01-01T00:00:00Z.
  package static var microseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
  }

  /// Whole seconds since 1970-01-01T00:00:00Z, as JWT counts them (RFC 7519 2, NumericDate).
  package static var seconds: Int64 { microseconds / 1_000_000 }
}

extension WallClock {
  /// Whether a time service keeps this computer's clock, according to the kernel (adjtimex(2)).
  package static var isKept: Bool {
    var state = timex()
    return adjtimex(&state) >= 0 && state.status & STA_UNSYNC == 0
  }
}

/// A moment on the kernel's clock since the start, which nobody sets and which goes on while the machine sleeps
/// (CLOCK_BOOTTIME, clock_gettime(2)).
///
/// `ContinuousClock` reads the same clock. It belongs to Swift's concurrency, though, which no program here uses
/// otherwise: naming that clock links the whole of it, and libdispatch, whose start each program would pay for.
public struct Instant: Comparable, Sendable {
  private let sinceStart: Duration

  public static var now: Instant {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return Instant(sinceStart: .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec)))
  }

  /// The time from this moment to `other`: negative if `other` came before.
  public func duration(to other: Instant) -> Duration { other.sinceStart - sinceStart }

  public func advanced(by duration: Duration) -> Instant { Instant(sinceStart: sinceStart + duration) }

  public static func + (instant: Instant, duration: Duration) -> Instant { instant.advanced(by: duration) }

  public static func - (instant: Instant, duration: Duration) -> Instant { instant.advanced(by: .zero - duration) }

  public static func - (later: Instant, earlier: Instant) -> Duration { earlier.duration(to: later) }

  public static func < (earlier: Instant, later: Instant) -> Bool { earlier.sinceStart < later.sinceStart }
}

extension Duration {
  /// Whole milliseconds, rounded up; negative durations are 0.
  package var roundedUpToMilliseconds: Int64 {
    let (seconds, attoseconds) = components
    guard seconds >= 0, attoseconds >= 0 else { return 0 }
    return seconds &* 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
  }

  /// Seconds as a floating-point number.
  package var inSeconds: Double {
    Double(components.seconds) + Double(components.attoseconds) * 1e-18
  }
}

/// The wait before a new attempt: half a second at first, then doubling up to half a minute.
///
/// The jitter keeps clients that lost the same broker at the same moment from reconnecting in step.
package struct Backoff: Sendable {
  package static let first = Duration.milliseconds(500)
  package static let longest = Duration.seconds(30)

  private var failures = 0

  package init() {}

  /// The wait after a connection, or an attempt, has ended.
  ///
  /// - Parameters:
  ///   - lasted: how long the connection was up; zero if it never was. The wait becomes short again only after a
  ///     connection that outlived the longest wait: a broker that accepts and then drops must not be hammered.
  ///   - chance: a random number from 0 to 1. It shortens the wait by up to a half.
  package mutating func next(afterLasting lasted: Duration, chance: Double) -> Duration {
    if lasted > Self.longest { failures = 0 }
    let full = failures < 6 ? Self.first * (1 << failures) : Self.longest
    failures += 1
    return full * (1 - chance / 2)
  }
}
