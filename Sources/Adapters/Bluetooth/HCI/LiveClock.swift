import Domain
import SystemIO

/// A live radio's clock: the wall clock as it stood at the start, carried on by the monotonic clock.
struct LiveClock {
  let start = UnixTime(microseconds: WallClock.microseconds)
  private let startInstant = ContinuousClock.now

  var now: UnixTime { time(.now) }

  func time(_ instant: ContinuousClock.Instant) -> UnixTime {
    let elapsed = startInstant.duration(to: instant).components
    return UnixTime(
      microseconds: start.microseconds + elapsed.seconds * 1_000_000 + elapsed.attoseconds / 1_000_000_000_000)
  }

  func instant(_ time: UnixTime) -> ContinuousClock.Instant {
    startInstant + .microseconds(time.microseconds &- start.microseconds)
  }
}
