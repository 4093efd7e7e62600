import Encoding
import Evaluation
import Glibc

/// A plot as a picture (SVG 1.1), for a browser or a paper. Equal values give equal bytes, and the picture loads
/// nothing from elsewhere.
package struct Plot {
  /// Colors that color-blind people can distinguish (Paul Tol's bright scheme).
  package static let (blue, red, green, yellow, grey) = ("#4477aa", "#cc3311", "#228833", "#ccbb44", "#888888")

  private let title: String
  package let size: (width: Double, height: Double)
  private var parts: [String] = []

  /// - Parameter subtitle: a line below the title.
  package init(_ title: String, subtitle: String, size: (width: Double, height: Double)) {
    self.title = title
    self.size = size
    text(title, x: 20, y: 24, anchor: "start", size: 15)
    text(subtitle, x: 20, y: 44, anchor: "start")
  }

  package var svg: String {
    """
    <svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="\(Int(size.width))" height="\(Int(size.height))" \
    viewBox="0 0 \(Int(size.width)) \(Int(size.height))" font-family="sans-serif" font-size="12">
    <title>\(Self.escaped(title))</title>
    <rect width="100%" height="100%" fill="white"/>
    \(parts.joined(separator: "\n"))
    </svg>

    """
  }

  // MARK: - Axes

  /// Maps a value to its place on the page.
  package struct Scale {
    package let values: ClosedRange<Double>
    package let begin: Double
    package let end: Double
    /// Gives equal ratios equal lengths; all values must be positive.
    package let isLogarithmic: Bool

    package init(_ values: ClosedRange<Double>, from begin: Double, to end: Double, isLogarithmic: Bool = false) {
      (self.values, self.begin, self.end, self.isLogarithmic) = (values, begin, end, isLogarithmic)
    }

    package subscript(value: Double) -> Double {
      let (low, high) = (place(values.lowerBound), place(values.upperBound))
      return begin + (place(value) - low) / max(high - low, 1e-12) * (end - begin)
    }

    private func place(_ value: Double) -> Double { isLogarithmic ? log10(value) : value }

    /// Round numbers, at most eight; on a logarithmic scale 1, 2 and 5 times a power of ten.
    package func marks(_ factor: Double) -> [Double] {
      if isLogarithmic {
        let powers = Int(log10(values.lowerBound).rounded(.down))...Int(log10(values.upperBound).rounded(.up))
        // Literal powers of ten, because 10 to the power of -1 differs from 0.1 in the last bit.
        return powers.flatMap { power in
          [1.0, 2, 5].map { power < 0 ? $0 / pow(10, Double(-power)) : $0 * pow(10, Double(power)) }
        }
        .filter(values.contains)
      }
      let (low, high) = (values.lowerBound * factor, values.upperBound * factor)
      var step = 1e-6
      for next in [2, 2.5, 2].cycled(13) where (high - low) / step > 8 { step *= next }
      return stride(from: (low / step).rounded(.up) * step, through: high, by: step).map { $0 / factor }
    }
  }

  /// - Parameter factor: multiplies a value for display.
  package mutating func axes(
    _ across: Scale, _ upward: Scale, x: String, y: String, factor: (x: Double, y: Double) = (1, 1)
  ) {
    let (bottom, top) = (upward.begin, upward.end)
    path("M\(Self.short(across.begin)) \(Self.short(top))V\(Self.short(bottom))H\(Self.short(across.end))", "black")
    text(x, x: (across.begin + across.end) / 2, y: bottom + 36)
    sideText(y, x: 18, y: (top + bottom) / 2)
    for mark in across.marks(factor.x) {
      add("<path d=\"M\(Self.short(across[mark])) \(Self.short(bottom))v5\" stroke=\"black\"/>")
      text(Self.short(mark * factor.x, 6), x: across[mark], y: bottom + 19)
    }
    for mark in upward.marks(factor.y) {
      add(
        "<path d=\"M\(Self.short(across.begin)) \(Self.short(upward[mark]))H\(Self.short(across.end))\" stroke=\"#dddddd\"/>"
      )
      text(Self.short(mark * factor.y, 6), x: across.begin - 6, y: upward[mark] + 4, anchor: "end")
    }
  }

  // MARK: - Marks

  package mutating func text(
    _ text: String, x: Double, y: Double, anchor: String = "middle", size: Int = 12, color: String? = nil
  ) {
    let fill = color.map { " fill=\"\($0)\"" } ?? ""
    add(
      """
      <text x="\(Self.short(x))" y="\(Self.short(y))" text-anchor="\(anchor)" font-size="\(size)"\(fill)>\
      \(Self.escaped(text))</text>
      """)
  }

  /// Text that runs upward.
  package mutating func sideText(_ text: String, x: Double, y: Double) {
    let (x, y) = (Self.short(x), Self.short(y))
    add(
      """
      <text x="\(x)" y="\(y)" text-anchor="middle" transform="rotate(-90 \(x) \(y))">\(Self.escaped(text))</text>
      """)
  }

  package mutating func path(_ path: String, _ color: String, _ attributes: String = "") {
    add("<path d=\"\(path)\" stroke=\"\(color)\"\(attributes) fill=\"none\"/>")
  }

  package mutating func box(x: Double, y: Double, width: Double, height: Double, fill: String, opacity: Double? = nil) {
    let opacity = opacity.map { " fill-opacity=\"\(Self.short($0, 3))\"" } ?? ""
    add(
      """
      <rect x="\(Self.short(x))" y="\(Self.short(y))" width="\(Self.short(width))" height="\(Self.short(height))" \
      fill="\(fill)"\(opacity)/>
      """)
  }

  /// - Parameter isFilled: false draws a ring.
  package mutating func dot(
    x: Double, y: Double, color: String, isFilled: Bool, radius: Double = 4, opacity: Double = 1
  ) {
    let opacity = opacity < 1 ? " opacity=\"\(Self.short(opacity, 3))\"" : ""
    add(
      """
      <circle cx="\(Self.short(x))" cy="\(Self.short(y))" r="\(Self.short(radius))" stroke="\(color)" \
      stroke-width="1.5" fill="\(isFilled ? color : "white")"\(opacity)/>
      """)
  }

  /// A line through the points, in page coordinates.
  package mutating func line(
    _ points: [(x: Double, y: Double)], _ color: String, width: Double = 1.5, dashes: String? = nil
  ) {
    let points = points.map { "\(Self.short($0.x)),\(Self.short($0.y))" }.joined(separator: " ")
    let dashes = dashes.map { " stroke-dasharray=\"\($0)\"" } ?? ""
    add(
      """
      <polyline points="\(points)" stroke="\(color)" stroke-width="\(Self.short(width))"\(dashes) fill="none"/>
      """)
  }

  /// A closed shape, with its corners in page coordinates.
  package mutating func shape(_ corners: [(x: Double, y: Double)], fill: String, stroke: String) {
    let points = corners.map { "\(Self.short($0.x)),\(Self.short($0.y))" }.joined(separator: " ")
    add("<polygon points=\"\(points)\" stroke=\"\(stroke)\" stroke-width=\"1.5\" fill=\"\(fill)\"/>")
  }

  package mutating func add(_ part: String) { parts.append(part) }

  /// A number with few decimals.
  package static func short(_ value: Double, _ places: Int = 2) -> String {
    let text = JSON.rounded(value, places: places).text
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }

  private static func escaped(_ text: String) -> String {
    printable(text).substituting("&", by: "&amp;").substituting("<", by: "&lt;").substituting(">", by: "&gt;")
  }
}
