import StepController
import SystemIO

/// When the ticks of a motion are due.
struct Ticks {
  private var last: Instant

  init(at time: Instant = .now) { last = time }

  /// The next tick, in step with the last one. After a late tick or a rest it is a whole tick from now. Missed ticks
  /// are not made up for, because two ticks in a row would fall into one frame of the servo.
  mutating func next(at now: Instant = .now) -> Instant {
    let length = Duration.milliseconds(MotionProfile.tick)
    last = last + length > now ? last + length : now + length
    return last
  }
}
