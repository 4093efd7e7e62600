/// How often something may happen: a number of uses at once, and then one in each interval.
///
/// All times are numbers in one unit that the caller chooses, on the caller's clock.
public struct Allowance: Sendable {
  private let interval: Double
  private let longest: Double
  /// The time for which nothing was used, up to `longest`. A use costs an interval.
  private var saved: Double
  private var last = -Double.infinity

  /// - Parameters:
  ///   - burst: how many uses are possible at once.
  ///   - interval: the time after which one more is possible.
  public init(burst: Double, interval: Double) {
    self.interval = interval
    longest = burst * interval
    saved = longest
  }

  /// Uses a part of the allowance, if there is as much.
  ///
  /// - Parameter now: a clock that was set back takes nothing away.
  /// - Returns: false if it is used up.
  public mutating func take(_ amount: Double = 1, at now: Double) -> Bool {
    saved = saved(at: now)
    last = now
    guard saved >= amount * interval else { return false }
    saved -= amount * interval
    return true
  }

  /// Whether the whole burst is possible, so that a new allowance is as good as this one.
  package func isWhole(at now: Double) -> Bool { saved(at: now) >= longest }

  private func saved(at now: Double) -> Double { min(longest, saved + max(0, now - last)) }
}

/// An allowance for each of many keys: a number of uses in any window of time.
///
/// All times are in milliseconds, on the caller's clock.
package struct Allowances<Key: Hashable & Sendable>: Sendable {
  private let count: Int
  private let window: Int64
  private let capacity: Int
  /// The times of each key's uses, the oldest first.
  private var uses: [Key: [Int64]] = [:]

  /// - Parameters:
  ///   - count: how many uses each key has in a window.
  ///   - capacity: how many keys are remembered. One more makes the key with the oldest use forgotten.
  package init(_ count: Int, in window: Int64, capacity: Int = 256) {
    (self.count, self.window, self.capacity) = (count, window, capacity)
  }

  package func isUsedUp(by key: Key, at now: Int64) -> Bool {
    uses[key].map { $0.count { now - $0 < window } >= count } ?? false
  }

  /// Notes a use, even if the allowance is used up.
  package mutating func note(_ key: Key, at now: Int64) {
    uses = uses.compactMapValues { times in
      let recent = times.filter { now - $0 < window }
      return recent.isEmpty ? nil : recent
    }
    if uses[key] == nil, uses.count >= capacity, let oldest = uses.min(by: { $0.value[0] < $1.value[0] }) {
      uses[oldest.key] = nil
    }
    uses[key, default: []].append(now)
  }
}
