import StepProtocol

/// Counts the motions of each device, so that nobody can wear out a servo or keep others from using a step.
struct MotionLimit: Sendable {
  static let allowed = 10
  /// Milliseconds.
  static let window: Int64 = 60_000

  /// When each device's motions began, on the controller's clock. Only a holder of a valid token gets here, and every
  /// entry takes a motion, so there are never many.
  private var begun: [VerificationKey: [Int64]] = [:]

  func isExhausted(_ device: VerificationKey, at clock: Int64) -> Bool {
    (begun[device] ?? []).count { clock - $0 < MotionLimit.window } >= MotionLimit.allowed
  }

  mutating func note(_ device: VerificationKey, at clock: Int64) {
    begun = begun.compactMapValues { times in
      let recent = times.filter { clock - $0 < MotionLimit.window }
      return recent.isEmpty ? nil : recent
    }
    begun[device, default: []].append(clock)
  }
}
