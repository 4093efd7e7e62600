/// A rate limit: `burst` times at once, then once every `interval` seconds.
///
/// Stores one number for each key: the time at which its allowance will be full again (the generic cell rate
/// algorithm).
package struct Limit: Sendable {
  private let burst: Int64
  private let interval: Int64
  private let capacity: Int
  private var whole: [String: Int64] = [:]

  package init(burst: Int64, interval: Int64, capacity: Int = 20_000) {
    self.burst = burst
    self.interval = interval
    self.capacity = capacity
  }

  /// - Returns: nil if it is allowed now, otherwise the seconds to wait.
  package mutating func take(_ key: String, at now: Int64) -> Int64? {
    // A larger value was written before the clock was set back, and is ignored.
    let known = whole[key].flatMap { $0 <= now + burst * interval ? $0 : nil } ?? now
    let begin = max(known, now)
    let wait = begin + interval - burst * interval - now
    guard wait <= 0 else { return wait }
    if whole.count >= capacity, whole[key] == nil { makeRoom(at: now) }
    whole[key] = begin + interval
    return nil
  }

  /// Gives back one unit after a correct attempt.
  package mutating func giveBack(_ key: String) {
    if let time = whole[key] { whole[key] = time - interval }
  }

  /// Gives back all units.
  package mutating func forget(_ key: String) { whole[key] = nil }

  /// Removes keys with a full allowance. If there are none, removes the half with the shortest waits.
  private mutating func makeRoom(at now: Int64) {
    whole = whole.filter { $0.value > now }
    guard whole.count >= capacity else { return }
    let median = whole.values.sorted()[whole.count / 2]
    whole = whole.filter { $0.value > median }
  }
}

/// The first 48 bits of an IPv6 network from `Web.network(of:)`; nil for an IPv4 address.
func site(of network: String) -> String? {
  guard network.hasSuffix("::/64") else { return nil }
  return network.dropLast(5).split(separator: ":", omittingEmptySubsequences: false).prefix(3).joined(separator: ":")
}
