import Glibc

/// The last frames of one beacon: when, and how many decibels above the level that it has at 1 m.
///
/// A ring of fixed size, so that hearing a frame allocates nothing.
struct HeardLevels: Sendable {
  private var times: [Double]
  private var levels: [Double]
  private var next = 0
  private(set) var count = 0
  /// When the last frame was heard, seconds; minus infinity before the first.
  private(set) var newest = -Double.infinity
  private(set) var minor: UInt16?
  /// As the last frame gave it, dBm.
  private(set) var measuredPower: Int8?

  init(capacity: Int) {
    times = Array(repeating: 0, count: capacity)
    levels = times
  }

  mutating func append(level: Double, minor: UInt16, power: Int8, at time: Double) {
    times[next] = time
    levels[next] = level
    next = (next + 1) % times.count
    count = min(count + 1, times.count)
    newest = time
    self.minor = minor
    measuredPower = power
  }

  mutating func removeAll() {
    (next, count, newest, minor) = (0, 0, -.infinity, nil)
  }

  /// How many frames came after a time.
  func count(since start: Double) -> Int {
    var number = 0
    while number < count, times[index(back: number)] > start { number += 1 }
    return number
  }

  /// Collects the levels after `start`, and as many older ones (after `limit`) as it takes to have `enough`.
  ///
  /// - Returns: how many.
  func gather(
    since start: Double, atLeast enough: Int, since limit: Double, into levels: inout [Double]
  ) -> Int {
    levels.removeAll(keepingCapacity: true)
    for back in 0..<count {
      let index = index(back: back)
      guard times[index] > start || (levels.count < enough && times[index] > limit) else { break }
      levels.append(self.levels[index])
    }
    return levels.count
  }

  /// The mean received power after a time, in decibels; a single burst of interference counts little.
  ///
  /// - Parameter clip: by how many decibels a frame may exceed the median.
  func power(since start: Double, clip: Double, _ scratch: inout [Double]) -> Double {
    guard gather(since: start, atLeast: 0, since: start, into: &scratch) > 0 else { return -.infinity }
    scratch.sort()
    let middle = scratch.count / 2
    let median = scratch.count % 2 == 1 ? scratch[middle] : (scratch[middle - 1] + scratch[middle]) / 2
    var sum = 0.0
    for level in scratch { sum += pow(10, min(level, median + clip) / 10) }
    return 10 * log10(sum / Double(scratch.count))
  }

  private func index(back: Int) -> Int { (next - 1 - back + 2 * times.count) % times.count }
}

/// The mean of the middle half: a few outliers at either end have no say.
func interquartileMean(_ levels: inout [Double]) -> Double {
  levels.sort()
  let cut = levels.count / 4
  let middle = levels[cut..<(levels.count - cut)]
  return middle.reduce(0, +) / Double(middle.count)
}
