import CommandParts
import Traffic

/// The delay of a feed as a picture: how often each delay occurred, and the delay over time.
struct DelayPlot {
  private let delay: DelayStatistics
  /// Seconds since the first frame, and the delay, seconds.
  private let points: [(time: Double, delay: Double)]
  private let title: String

  private static let size = (width: 900.0, height: 620.0)
  private static let margin = (left: 70.0, right: 20.0)
  /// The largest number of points drawn, so that a day's recording stays readable.
  private static let mostPoints = 5000

  /// - Parameter frames: each frame's arrival and stamp, on one clock.
  init(_ delay: DelayStatistics, _ frames: [(arrival: Double, stamp: Double)], title: String) {
    self.delay = delay
    self.title = title
    let begin = frames.first?.arrival ?? 0
    let all = frames.map { (time: $0.arrival - begin, delay: $0.arrival - $0.stamp) }
    // The latest frame of each part, because the largest delay matters.
    let part = max(1, (all.count + Self.mostPoints - 1) / Self.mostPoints)
    points = stride(from: 0, to: all.count, by: part).map { index in
      all[index..<min(index + part, all.count)].max { $0.delay < $1.delay }!
    }
  }

  var svg: String {
    var plot = Plot(title, subtitle: summary, size: Self.size)
    drawHistogram(in: &plot, top: 70, bottom: 280)
    drawCourse(in: &plot, top: 340, bottom: 570)
    return plot.svg
  }

  private var summary: String {
    let slope =
      delay.slope.map { "; slope \(Plot.short($0.value * 1000)) ms/s, p = \(Plot.short($0.p, 3))" } ?? ""
    return """
      \(delay.count) frames: min \(milliseconds(delay.least)), mean \(milliseconds(delay.mean)), \
      p99 \(milliseconds(delay.p99)), max \(milliseconds(delay.most)); \(delay.dropped) dropped, \
      \(delay.gaps) gaps\(slope)
      """
  }

  private func drawHistogram(in plot: inout Plot, top: Double, bottom: Double) {
    let bars = delay.histogram
    let most = Double(bars.counts.max() ?? 1)
    let end = bars.begin + bars.width * Double(bars.counts.count)
    let across = Plot.Scale(bars.begin...end, from: Self.margin.left, to: Self.size.width - Self.margin.right)
    let upward = Plot.Scale(0...most, from: bottom, to: top)
    plot.axes(across, upward, x: "delay, ms", y: "frames", factor: (1000, 1))
    for (index, count) in bars.counts.enumerated() where count > 0 {
      let (from, to) = (
        across[bars.begin + bars.width * Double(index)], across[bars.begin + bars.width * Double(index + 1)]
      )
      let height = bottom - upward[Double(count)]
      plot.box(
        x: from + 0.5, y: bottom - height, width: max(to - from - 1, 0.5), height: height, fill: Plot.blue)
    }
  }

  private func drawCourse(in plot: inout Plot, top: Double, bottom: Double) {
    let end = max(points.last?.time ?? 1, 0.001)
    let room = max(delay.most - delay.least, 0.001) * 0.05
    let across = Plot.Scale(0...end, from: Self.margin.left, to: Self.size.width - Self.margin.right)
    let upward = Plot.Scale((delay.least - room)...(delay.most + room), from: bottom, to: top)
    plot.axes(across, upward, x: "time, s", y: "delay, ms", factor: (1, 1000))
    let dots = points.map { "M\(Plot.short(across[$0.time])) \(Plot.short(upward[$0.delay]))h0" }.joined()
    plot.path(dots, Plot.blue, " stroke-width=\"2.5\" stroke-linecap=\"round\"")
    guard let slope = delay.slope else { return }
    // The least-squares line goes through both means.
    let middle = points.reduce(0) { $0 + $1.time } / Double(points.count)
    plot.line(
      [0, end].map { time in (across[time], upward[delay.mean + slope.value * (time - middle)]) }, Plot.red)
  }

  private func milliseconds(_ seconds: Double) -> String { "\(tenths(seconds * 1000)) ms" }
}
