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
