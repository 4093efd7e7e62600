import StepProtocol

/// Counts the wrong minors that each device sends, because somebody with enough time could guess 16 bits.
///
/// A device has three wrong minors in a minute. After that its beacon proofs are refused until the minute is over. Each
/// device has its own count, so that nobody can lock out another.
struct GuessLimit: Sendable {
  static let allowed = 3
  /// Milliseconds.
  static let window: Int64 = 60_000
  /// How many devices are remembered. Only holders of a valid token get here.
  static let capacity = 256

  private struct Count: Sendable {
    /// When the first wrong minor came, on the controller's clock.
    let began: Int64
    var wrong: Int
  }

  private var counts: [VerificationKey: Count] = [:]

  func isExhausted(_ device: VerificationKey, at clock: Int64) -> Bool {
    guard let count = counts[device], clock - count.began < GuessLimit.window else { return false }
    return count.wrong >= GuessLimit.allowed
  }

  mutating func noteWrong(by device: VerificationKey, at clock: Int64) {
    counts = counts.filter { clock - $0.value.began < GuessLimit.window }
    if counts[device] == nil, counts.count >= GuessLimit.capacity,
      let oldest = counts.min(by: { $0.value.began < $1.value.began })
    {
      counts[oldest.key] = nil
    }
    counts[device, default: Count(began: clock, wrong: 0)].wrong += 1
  }
}
