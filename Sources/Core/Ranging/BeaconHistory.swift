import func Glibc.hypot
import func Glibc.log10
import func Glibc.pow

/// The last frames of one beacon: when each was heard, at what level, and from which sender.
///
/// A ring of fixed size: a frame takes little time and allocates nothing.
struct BeaconHistory: Sendable {
  private var times = [Double](repeating: 0, count: RangingModel.capacity)
  private var levels = [Double](repeating: 0, count: RangingModel.capacity)
  private var senders = [DeviceAddress?](repeating: nil, count: RangingModel.capacity)
  private var next = 0
  private var count = 0
  /// The last frame's minor.
  private(set) var minor: UInt16?
  /// The measured power that the last frame's level is relative to, dBm.
  private(set) var measuredPower: Int8?
  /// The minor before this one, and when it was last heard.
  private var former: (minor: UInt16, time: Double)?
  private var lastContest = -Double.infinity

  /// - Parameters:
  ///   - sender: nil if it is unknown.
  ///   - time: seconds, not before the last frame's.
  mutating func append(rssi: Int8, measuredPower: Int8, minor: UInt16, from sender: DeviceAddress?, at time: Double) {
    if let last = self.minor, last != minor {
      if let former, former.minor == minor, time - former.time < RangingModel.window { lastContest = time }
      former = (last, times[index(0)])
    }
    times[next] = time
    levels[next] = Double(rssi) - Double(measuredPower)
    senders[next] = sender
    next = (next + 1) % RangingModel.capacity
    count = min(count + 1, RangingModel.capacity)
    self.minor = minor
    self.measuredPower = measuredPower
  }

  /// Seconds since the last frame; infinite when there was none.
  func age(at now: Double) -> Double { count == 0 ? .infinity : now - times[index(0)] }

  /// Whether two beacons send alternately, by their minors or by their addresses.
  func isContested(at now: Double, in scratch: inout [Double]) -> Bool {
    // An earlier minor comes back. A rotating minor does not.
    now - lastContest < RangingModel.window || isFromTwoPlaces(at: now, in: &scratch)
  }

  /// Whether a sender's frames have another level than the frames between them, which come from other addresses.
  ///
  /// A beacon that changes its address has the same level before and after. If the rider walks, the level changes too,
  /// so only frames of the same time are compared: an address that does not come back shows nothing.
  private func isFromTwoPlaces(at now: Double, in scratch: inout [Double]) -> Bool {
    let frames = frames(within: RangingModel.window, of: now)
    for newest in 0..<frames {
      let sender = senders[index(newest)]
      guard !(0..<newest).contains(where: { senders[index($0)] == sender }),
        let oldest = (newest..<frames).last(where: { senders[index($0)] == sender })
      else { continue }
      let between = newest..<oldest + 1
      let own = middleLevel(of: between, in: &scratch) { $0 == sender }
      let others = middleLevel(of: between, in: &scratch) { $0 != sender }
      guard others.frames > 0 else { continue }
      let error = hypot(RangingModel.error80(frames: own.frames), RangingModel.error80(frames: others.frames))
      if abs(own.level - others.level) - error >= RangingModel.senderDifference { return true }
    }
    return false
  }

  /// The number of those frames that come from some senders, and the interquartile mean of their levels, which is not
  /// a number if there are none. Frames are indexed from the newest.
  private func middleLevel(
    of frames: Range<Int>, in scratch: inout [Double], from isMeant: (DeviceAddress?) -> Bool
  ) -> (frames: Int, level: Double) {
    scratch.removeAll(keepingCapacity: true)
    for back in frames where isMeant(senders[index(back)]) { scratch.append(levels[index(back)]) }
    scratch.sort()
    return (scratch.count, interquartileMean(scratch))
  }

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
