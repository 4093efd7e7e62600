import StepController

/// When the ticks of a motion are due.
struct Ticks {
  private var last = ContinuousClock.now

  /// In step with the last tick, unless that came late: two in a row would be one frame of the servo.
  mutating func next() -> ContinuousClock.Instant {
    let (now, length) = (ContinuousClock.now, Duration.milliseconds(MotionProfile.tick))
    last = last + length > now ? last + length : now + length
    return last
  }
}
