public import Encoding

import func Glibc.erfc

/// The delays of a feed's frames.
public struct DelayStatistics: Equatable, Sendable {
  public let count: Int
  /// Seconds.
  public let least: Double
  public let mean: Double
  public let deviation: Double
  public let median: Double
  public let p95: Double
  public let p99: Double
  public let most: Double
  /// The mean absolute difference between a frame's delay and the previous one's in the same section.
  public let jitter: Double
  /// How often a section had no frame for more than three times its usual interval, and the longest such wait, seconds.
  public let gaps: Int
  public let longestGap: Double
  /// How many frames are missing within their sections, judged by the stamps.
  public let dropped: Int
  /// Whether every stamp is a whole second: then each delay seems up to a second longer than it was.
  public let hasWholeSeconds: Bool
  /// The trend of the delay, and the p-value of a test for it; nil for fewer than 30 frames.
  public let slope: Slope?
  public let histogram: Histogram

  /// Seconds per second, and the likelihood (0 to 1) that chance alone gives as much.
  public struct Slope: Equatable, Sendable {
    public let value: Double
    public let p: Double
  }

  /// How many delays fall into each bar.
  public struct Histogram: Equatable, Sendable {
    /// Where the first bar begins, and the width of each bar, seconds.
    public let begin: Double
    public let width: Double
    public let counts: [Int]
  }

  /// - Parameters:
  ///   - frames: each frame's arrival and stamp, seconds on the same clock, in order of arrival.
  ///   - sections: each frame's section; empty if all frames are of one section.
  /// - Returns: nil for fewer than two frames.
  public init?(_ frames: [(arrival: Double, stamp: Double)], of sections: [String] = []) {
    guard frames.count >= 2 else { return nil }
    let delays = frames.map { $0.arrival - $0.stamp }
    let sorted = delays.sorted()
    let number = Double(delays.count)
    let mean = delays.reduce(0, +) / number
    let squares = delays.reduce(0) { $0 + ($1 - mean) * ($1 - mean) }
    self.count = delays.count
    (least, most, self.mean) = (sorted[0], sorted[sorted.count - 1], mean)
    deviation = (squares / (number - 1)).squareRoot()
    (median, p95, p99) = (sorted.quantile(0.5)!, sorted.quantile(0.95)!, sorted.quantile(0.99)!)
    var (changes, count, gaps, longestGap, dropped) = (0.0, 0, 0, 0.0, 0)
    let places = Dictionary(grouping: frames.indices) { $0 < sections.count ? sections[$0] : "" }
    for frames in places.values.map({ $0.map { frames[$0] } }) where frames.count >= 2 {
      let pairs = zip(frames.dropFirst(), frames)
      changes += pairs.reduce(0) { $0 + abs($1.0.arrival - $1.0.stamp - $1.1.arrival + $1.1.stamp) }
      count += frames.count - 1
      let waits = pairs.map { $0.arrival - $1.arrival }
      let usualWait = waits.sorted()[waits.count / 2]
      let long = waits.filter { usualWait > 0 && $0 > 3 * usualWait }
      gaps += long.count
      longestGap = max(longestGap, long.max() ?? 0)
      let steps = pairs.map { $0.stamp - $1.stamp }.filter { $0 > 0 }
      let usualStep = steps.isEmpty ? 0 : steps.sorted()[steps.count / 2]
      // An hour's step is a changed clock, not a loss. A late stamp makes one step long and the next one short.
      let missing = steps.filter { usualStep > 0 && $0 < 3600 }.map { Int(($0 / usualStep).rounded()) - 1 }
      dropped += max(0, missing.reduce(0, +))
    }
    jitter = count > 0 ? changes / Double(count) : 0
    (self.gaps, self.longestGap, self.dropped) = (gaps, longestGap, dropped)
    hasWholeSeconds = frames.allSatisfy { $0.stamp == $0.stamp.rounded() }
    slope = delays.count < 30 ? nil : Self.slope(of: delays, over: frames.map(\.arrival), mean, squares)
    histogram = Self.histogram(sorted)
  }

  /// A least-squares line, and a test of its slope. With 30 values, the normal distribution is as good as Student's.
  private static func slope(of delays: [Double], over times: [Double], _ mean: Double, _ squares: Double) -> Slope? {
    let number = Double(delays.count)
    let middle = times.reduce(0, +) / number
    let spread = times.reduce(0) { $0 + ($1 - middle) * ($1 - middle) }
    guard spread > 0 else { return nil }
    let slope = zip(times, delays).reduce(0) { $0 + ($1.0 - middle) * ($1.1 - mean) } / spread
    let rest = max(0, squares - slope * slope * spread)
    let error = (rest / (number - 2) / spread).squareRoot()
    return Slope(value: slope, p: error > 0 ? erfc(abs(slope) / error / 2.0.squareRoot()) : slope == 0 ? 1 : 0)
  }

  private static func histogram(_ sorted: [Double]) -> Histogram {
    let (least, most) = (sorted[0], sorted[sorted.count - 1])
    // At most 20 bars, each 1, 2 or 5 times a power of ten wide.
    var width = 0.001
    for factor in [2, 2.5, 2].cycled(9) where (most - least) / width > 19 { width *= factor }
    let begin = (least / width).rounded(.down) * width
    var counts = [Int](repeating: 0, count: min(Int((most - begin) / width), 31) + 1)
    for delay in sorted { counts[min(Int((delay - begin) / width), counts.count - 1)] += 1 }
    return Histogram(begin: begin, width: width, counts: counts)
  }

  /// How far an object moves in this time, metres.
  ///
  /// - Parameter speed: in km/h.
  public static func distance(at speed: Double, within delay: Double) -> Double { speed / 3.6 * delay }

  public var json: JSON {
    func milliseconds(_ seconds: Double) -> JSON { .rounded(seconds * 1000, places: 3) }
    return [
      "count": .integer(Int64(count)), "min_ms": milliseconds(least), "mean_ms": milliseconds(mean),
      "deviation_ms": milliseconds(deviation), "p50_ms": milliseconds(median), "p95_ms": milliseconds(p95),
      "p99_ms": milliseconds(p99), "max_ms": milliseconds(most), "jitter_ms": milliseconds(jitter),
      "gaps": .integer(Int64(gaps)), "longest_gap_ms": milliseconds(longestGap), "dropped": .integer(Int64(dropped)),
      "whole_seconds": .bool(hasWholeSeconds),
      "slope_ms_per_s": slope.map { milliseconds($0.value) } ?? .null, "slope_p": .rounded(slope?.p, places: 6),
      "histogram": [
        "begin_ms": milliseconds(histogram.begin), "width_ms": milliseconds(histogram.width),
        "counts": .array(histogram.counts.map { .integer(Int64($0)) }),
      ],
    ]
  }
}
