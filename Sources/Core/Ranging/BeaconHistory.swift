import func Glibc.log10
import func Glibc.pow

/// The last frames of one beacon: when each was heard, and at what level.
///
/// A ring of fixed size: a frame takes little time and allocates nothing.
struct BeaconHistory: Sendable {
  private var times = [Double](repeating: 0, count: RangingModel.capacity)
  private var levels = [Double](repeating: 0, count: RangingModel.capacity)
  private var next = 0
  private var count = 0
  /// The last frame's minor.
  private(set) var minor: UInt16?
  /// The measured power that the last frame's level is relative to, dBm.
  private(set) var measuredPower: Int8?
  /// The minor before this one, and when it was last heard.
  private var former: (minor: UInt16, time: Double)?
  private var lastContest = -Double.infinity

  /// - Parameter time: seconds, not before the last frame's.
  mutating func append(rssi: Int8, measuredPower: Int8, minor: UInt16, at time: Double) {
    if let last = self.minor, last != minor {
      if let former, former.minor == minor, time - former.time < RangingModel.window { lastContest = time }
      former = (last, times[index(0)])
    }
    times[next] = time
    levels[next] = Double(rssi) - Double(measuredPower)
    next = (next + 1) % RangingModel.capacity
    count = min(count + 1, RangingModel.capacity)
    self.minor = minor
    self.measuredPower = measuredPower
  }

  /// Seconds since the last frame; infinite when there was none.
  func age(at now: Double) -> Double { count == 0 ? .infinity : now - times[index(0)] }

  /// Whether two beacons send alternately: then an earlier minor comes back. A rotating minor does not.
  func isContested(at now: Double) -> Bool { now - lastContest < RangingModel.window }

  /// How many frames arrived within the last `window` seconds.
  func frames(within window: Double, of now: Double) -> Int {
    var number = 0
    while number < count, times[index(number)] > now - window { number += 1 }
    return number
  }

  /// The levels of the newest frames, in ascending order.
  func sortedLevels(newest number: Int, in scratch: inout [Double]) {
    scratch.removeAll(keepingCapacity: true)
    for back in 0..<number { scratch.append(levels[index(back)]) }
    scratch.sort()
  }

  /// The mean level of some frames, indexed from the newest. The range must not be empty.
  func meanLevel(of frames: Range<Int>) -> Double {
    var sum = 0.0
    for back in frames { sum += levels[index(back)] }
    return sum / Double(frames.count)
  }

  /// How many of the newest frames have at least this level.
  func frames(newest number: Int, atLeast level: Double) -> Int {
    var strong = 0
    for back in 0..<number where levels[index(back)] >= level { strong += 1 }
    return strong
  }

  private func index(_ back: Int) -> Int { (next - 1 - back + 2 * RangingModel.capacity) % RangingModel.capacity }
}

/// The mean of the middle half of sorted levels. Outliers at either end do not count.
package func interquartileMean(_ levels: [Double]) -> Double {
  let cut = levels.count / 4
  var sum = 0.0
  for index in cut..<(levels.count - cut) { sum += levels[index] }
  return sum / Double(levels.count - 2 * cut)
}

/// The mean received power of sorted levels, in decibels.
///
/// Fading only weakens, so the strong frames tell most. The strongest is limited to the second strongest, so that a
/// single burst of interference decides nothing.
func meanPower(_ levels: [Double]) -> Double {
  let top = levels[max(0, levels.count - 2)]
  var sum = 0.0
  for level in levels { sum += pow(10, min(level, top) / 10) }
  return 10 * log10(sum / Double(levels.count))
}
