/// What is to move a vehicle's steps.
package enum ServoKind: String, Sendable, CaseIterable {
  /// No hardware: motions are written to a log.
  case simulated
  /// Servos on the kernel's PWM channels, in the order of the steps.
  case pwm
}
