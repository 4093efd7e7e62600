import func Glibc.log10

/// The log-distance law: level(d) = level(1 m) − 10·n·log₁₀(d / 1 m), fitted by least squares.
///
/// Each position is one point. All packets from a place share its shadow, so many packets are no more evidence than a
/// few.
package struct DistanceLaw: Sendable {
  package let positions: Int
  /// n. In free space it is 2.
  package let exponent: Double
  package let exponentError: Double
  /// The level at 1 m, decibels above the measured power. It is 0 if the measured power is correct.
  package let level: Double
  package let levelError: Double
  /// The standard deviation of the positions about the law, decibels: n − 2 degrees of freedom.
  package let sigma: Double

  /// The mean of log₁₀ of the distances, and the sum of the squares about it.
  private let middle: Double
  private let spread: Double

  /// Any line fits two points.
  static let leastPositions = 3

  /// - Parameter points: metres, and decibels above the measured power.
  /// - Returns: nil for fewer than three points, or if all are at the same distance.
  package init?(_ points: [(metres: Double, level: Double)]) {
    guard points.count >= Self.leastPositions else { return nil }
    let number = Double(points.count)
    let logs = points.map { log10($0.metres) }
    let middle = logs.reduce(0, +) / number
    let mean = points.reduce(0) { $0 + $1.level } / number
    let spread = logs.reduce(0) { $0 + ($1 - middle) * ($1 - middle) }
    guard spread > 1e-9 else { return nil }
    let slope = zip(logs, points).reduce(0) { $0 + ($1.0 - middle) * ($1.1.level - mean) } / spread
    let squares = zip(logs, points).reduce(0) { sum, point in
      let rest = point.1.level - mean - slope * (point.0 - middle)
      return sum + rest * rest
    }
    let sigma = (squares / (number - 2)).squareRoot()
    positions = points.count
    exponent = -slope / 10
    exponentError = sigma / spread.squareRoot() / 10
    level = mean - slope * middle
    levelError = sigma * (1 / number + middle * middle / spread).squareRoot()
    (self.sigma, self.middle, self.spread) = (sigma, middle, spread)
  }

  package func level(at metres: Double) -> Double { level - 10 * exponent * log10(metres) }

  /// The standard error of the law itself at a distance, decibels. It is large far from all positions.
  package func error(at metres: Double) -> Double {
    let away = log10(metres) - middle
    return sigma * (1 / Double(positions) + away * away / spread).squareRoot()
  }
}
