/// A share of decisions or attempts, with an interval that contains the true share in 19 of 20 samples of this size.
package struct Share: Sendable {
  package let part: Int
  package let whole: Int
  /// How many of the whole are independent. The decisions of one capture share their frames and their place, so
  /// together they count as one.
  package let independent: Int

  /// - Returns: nil if the whole is empty.
  package init?(_ part: Int, of whole: Int, independent: Int) {
    guard whole > 0, independent > 0 else { return nil }
    (self.part, self.whole, self.independent) = (part, whole, independent)
  }

  /// From 0 to 1.
  package var value: Double { Double(part) / Double(whole) }

  /// Wilson's score interval at 95 % (Wilson 1927; Brown, Cai and DasGupta 2001, eq. 4).
  package var interval: ClosedRange<Double> {
    let (p, n, z) = (value, Double(independent), 1.959963984540054)
    let centre = p + z * z / (2 * n)
    let half = z * (p * (1 - p) / n + z * z / (4 * n * n)).squareRoot()
    let scale = 1 + z * z / n
    return max(0, (centre - half) / scale)...min(1, (centre + half) / scale)
  }
}

extension [Double] {
  /// These values again and again, such as 1, 2, 5 for the widths of a scale.
  package func cycled(_ times: Int) -> [Double] { (0..<times).flatMap { _ in self } }

  /// A quantile of ascending values, interpolated between the two nearest ranks (Hyndman and Fan 1996, type 7); nil if
  /// there are none.
  package func quantile(_ part: Double) -> Double? {
    guard let last else { return nil }
    let place = part * Double(count - 1)
    let index = Int(place)
    return index + 1 < count ? self[index] + (self[index + 1] - self[index]) * (place - Double(index)) : last
  }
}

/// Truth against decision: a row for each truth, a column for each word, and a last column for no decision.
package struct ConfusionMatrix: Sendable {
  /// The names of the rows, and of all columns but the last.
  package let words: [String]
  /// The name of the last column, for no decision.
  package let undecided: String
  /// How many decisions, by row and column.
  package private(set) var counts: [[Int]]
  /// For each row, its number of captures, and how many of them have a decision other than `undecided`.
  private var captures: [(all: Int, deciding: Int)]

  package init(_ words: [String], undecided: String) {
    self.words = words
    self.undecided = undecided
    counts = words.map { _ in [Int](repeating: 0, count: words.count + 1) }
    captures = words.map { _ in (0, 0) }
  }

  /// Adds the decisions of one capture, by column.
  mutating func add(_ decisions: [Int], to row: Int) {
    for (column, count) in decisions.enumerated() { counts[row][column] += count }
    captures[row].all += 1
    if decisions.dropLast().contains(where: { $0 > 0 }) { captures[row].deciding += 1 }
  }

  private func decided(_ row: Int) -> Int { counts[row].dropLast().reduce(0, +) }

  /// The share of correct decisions among those with a word; nil for all rows together.
  package func correct(_ row: Int? = nil) -> Share? {
    let rows = row.map { [$0] } ?? Array(words.indices)
    return Share(
      rows.reduce(0) { $0 + counts[$1][$1] }, of: rows.reduce(0) { $0 + decided($1) },
      independent: rows.reduce(0) { $0 + captures[$1].deciding })
  }

  /// The share of all decisions that have a word.
  package func coverage(_ row: Int? = nil) -> Share? {
    let rows = row.map { [$0] } ?? Array(words.indices)
    return Share(
      rows.reduce(0) { $0 + decided($1) }, of: rows.reduce(0) { $0 + counts[$1].reduce(0, +) },
      independent: rows.reduce(0) { $0 + captures[$1].all })
  }

  /// The mean of the rows' correct shares, so that a truth with few captures counts as much as one with many.
  package var balanced: Double? {
    let shares = words.indices.compactMap { correct($0)?.value }
    return shares.isEmpty ? nil : shares.reduce(0, +) / Double(shares.count)
  }

  package var isEmpty: Bool { captures.allSatisfy { $0.all == 0 } }
}
