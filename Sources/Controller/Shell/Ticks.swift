import StepController

/// When the ticks of a motion are due.
struct Ticks {
  typealias Instant = ContinuousClock.Instant

  private var last: Instant

  init(at time: Instant = .now) { last = time }

  /// In step with the last tick. After one that came late, or after a rest, a whole tick from now: what was missed is
  /// not made up for, since two ticks in a row would be one frame of the servo.
  mutating func next(at now: Instant = .now) -> Instant {
    let length = Duration.milliseconds(MotionProfile.tick)
    last = last + length > now ? last + length : now + length
    return last
  }
}
