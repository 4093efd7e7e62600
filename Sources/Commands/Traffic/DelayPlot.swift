import Encoding
import Traffic

/// The delay of a feed as a picture (SVG 1.1): how often each delay occurred, and the delay over time.
struct DelayPlot {
  private let delay: DelayStatistics
  /// Seconds since the first frame, and the delay, seconds.
  private let points: [(time: Double, delay: Double)]
  private let title: String

  private static let size = (width: 900.0, height: 620.0)
  private static let margin = (left: 70.0, right: 20.0)
  /// Points that are drawn at most, so that a day's recording can be looked at.
  private static let mostPoints = 5000

  /// - Parameter frames: when each came, and its stamp, on one clock.
  init(_ delay: DelayStatistics, _ frames: [(arrival: Double, stamp: Double)], title: String) {
    self.delay = delay
    self.title = title
    let begin = frames.first?.arrival ?? 0
    let all = frames.map { (time: $0.arrival - begin, delay: $0.arrival - $0.stamp) }
    // Of each part the latest: what counts is how late it can be.
    let part = max(1, (all.count + Self.mostPoints - 1) / Self.mostPoints)
    points = stride(from: 0, to: all.count, by: part).map { index in
      all[index..<min(index + part, all.count)].max { $0.delay < $1.delay }!
    }
  }

  var svg: String {
    let size = Self.size
    return """
      <svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="\(Int(size.width))" height="\(Int(size.height))" \
      viewBox="0 0 \(Int(size.width)) \(Int(size.height))" font-family="sans-serif" font-size="12">
      <title>\(escaped(title))</title>
      <rect width="100%" height="100%" fill="white"/>
      \(text(escaped(title), x: 20, y: 24, anchor: "start", size: 15))
      \(text(summary, x: 20, y: 44, anchor: "start"))
      \(histogram(top: 70, bottom: 280))
      \(course(top: 340, bottom: 570))
      </svg>

      """
  }

  private var summary: String {
    let slope = delay.slope.map { "; slope \(short($0.value * 1000)) ms/s, p = \(short($0.p, 3))" } ?? ""
    return """
      \(delay.count) frames: min \(milliseconds(delay.least)), mean \(milliseconds(delay.mean)), \
      p99 \(milliseconds(delay.p99)), max \(milliseconds(delay.most)); \(delay.dropped) dropped, \
      \(delay.gaps) gaps\(slope)
      """
  }

  private func histogram(top: Double, bottom: Double) -> String {
    let bars = delay.histogram
    let most = Double(bars.counts.max() ?? 1)
    let end = bars.begin + bars.width * Double(bars.counts.count)
    let across = Scale(bars.begin...end, from: Self.margin.left, to: Self.size.width - Self.margin.right)
    let upward = Scale(0...most, from: bottom, to: top)
    var parts = [axes(across, upward, top: top, bottom: bottom, x: "delay, ms", y: "frames", factor: (1000, 1))]
    for (index, count) in bars.counts.enumerated() where count > 0 {
      let (from, to) = (
        across[bars.begin + bars.width * Double(index)], across[bars.begin + bars.width * Double(index + 1)]
      )
      let height = bottom - upward[Double(count)]
      parts.append(
        """
        <rect x="\(short(from + 0.5))" y="\(short(bottom - height))" width="\(short(max(to - from - 1, 0.5)))" \
        height="\(short(height))" fill="#4477aa"/>
        """)
    }
    return parts.joined(separator: "\n")
  }

  private func course(top: Double, bottom: Double) -> String {
    let end = max(points.last?.time ?? 1, 0.001)
    let room = max(delay.most - delay.least, 0.001) * 0.05
    let across = Scale(0...end, from: Self.margin.left, to: Self.size.width - Self.margin.right)
    let upward = Scale((delay.least - room)...(delay.most + room), from: bottom, to: top)
    var parts = [axes(across, upward, top: top, bottom: bottom, x: "time, s", y: "delay, ms", factor: (1, 1000))]
    let dots = points.map { "M\(short(across[$0.time])) \(short(upward[$0.delay]))h0" }.joined()
    parts.append("<path d=\"\(dots)\" stroke=\"#4477aa\" stroke-width=\"2.5\" stroke-linecap=\"round\" fill=\"none\"/>")
    if let slope = delay.slope {
      // The line of least squares goes through both means.
      let middle = points.reduce(0) { $0 + $1.time } / Double(points.count)
      let ends = [0, end].map { time in
        "\(short(across[time])),\(short(upward[delay.mean + slope.value * (time - middle)]))"
      }
      parts.append(
        "<polyline points=\"\(ends.joined(separator: " "))\" stroke=\"#cc3311\" stroke-width=\"1.5\" fill=\"none\"/>")
    }
    return parts.joined(separator: "\n")
  }

  // MARK: - Axes

  private struct Scale {
    let values: ClosedRange<Double>
    let begin: Double
    let end: Double

    init(_ values: ClosedRange<Double>, from begin: Double, to end: Double) {
      (self.values, self.begin, self.end) = (values, begin, end)
    }

    subscript(value: Double) -> Double {
      begin + (value - values.lowerBound) / max(values.upperBound - values.lowerBound, 1e-12) * (end - begin)
    }

    /// Round numbers, at most eight.
    func marks(_ factor: Double) -> [Double] {
      let (low, high) = (values.lowerBound * factor, values.upperBound * factor)
      var step = 1e-6
      for next in [2, 2.5, 2].cycled(13) where (high - low) / step > 8 { step *= next }
      return stride(from: (low / step).rounded(.up) * step, through: high, by: step).map { $0 / factor }
    }
  }

  private func axes(
    _ across: Scale, _ upward: Scale, top: Double, bottom: Double, x: String, y: String, factor: (x: Double, y: Double)
  ) -> String {
    var parts = [
      """
      <path d="M\(short(across.begin)) \(short(top))V\(short(bottom))H\(short(across.end))" stroke="black" fill="none"/>
      """,
      text(x, x: (across.begin + across.end) / 2, y: bottom + 36),
      """
      <text x="18" y="\(short((top + bottom) / 2))" text-anchor="middle" \
      transform="rotate(-90 18 \(short((top + bottom) / 2)))">\(y)</text>
      """,
    ]
    for mark in across.marks(factor.x) {
      parts.append("<path d=\"M\(short(across[mark])) \(short(bottom))v5\" stroke=\"black\"/>")
      parts.append(text(short(mark * factor.x, 6), x: across[mark], y: bottom + 19))
    }
    for mark in upward.marks(factor.y) {
      parts.append(
        "<path d=\"M\(short(across.begin)) \(short(upward[mark]))H\(short(across.end))\" stroke=\"#dddddd\"/>")
      parts.append(text(short(mark * factor.y, 6), x: across.begin - 6, y: upward[mark] + 4, anchor: "end"))
    }
    return parts.joined(separator: "\n")
  }

  private func text(
    _ text: String, x: Double, y: Double, anchor: String = "middle", size: Int = 12
  ) -> String {
    "<text x=\"\(short(x))\" y=\"\(short(y))\" text-anchor=\"\(anchor)\" font-size=\"\(size)\">\(text)</text>"
  }

  private func milliseconds(_ seconds: Double) -> String { "\(tenths(seconds * 1000)) ms" }

  private func short(_ value: Double, _ places: Int = 2) -> String {
    let text = JSON.rounded(value, places: places).text
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }

  private func escaped(_ text: String) -> String {
    printable(text).replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
  }
}

extension [Double] {
  fileprivate func cycled(_ times: Int) -> [Double] { (0..<times).flatMap { _ in self } }
}
