/// The controller's two clocks at one moment.
package struct ControllerTime: Sendable, Equatable {
  /// Milliseconds since the controller's start, from a clock that is never set: for challenges and deadlines.
  package let clock: Int64
  /// Seconds of Unix time: for tokens and rotating minors alone, because a vehicle's wall clock can be wrong or be set.
  package let wall: Int64

  package init(clock: Int64, wall: Int64) {
    self.clock = clock
    self.wall = wall
  }
}
