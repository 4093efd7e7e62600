/// The likely intention behind a mistyped word.
public enum Spelling {
  /// The nearest of some words, if it is near: at most two edits, and fewer than half of the word's letters.
  public static func nearest(to word: String, among candidates: [String]) -> String? {
    let near = candidates.map { ($0, distance(word.lowercased(), $0)) }
      .filter { $0.1 <= 2 && $0.1 * 2 < max($0.0.count, 2) }
    return near.min { $0.1 < $1.1 }?.0
  }

  /// The number of letters to insert, delete, replace, or swap with their neighbour (optimal string alignment).
  static func distance(_ a: String, _ b: String) -> Int {
    // Keys are short. A long word is no slip of the finger, and would cost the product of the lengths.
    guard a.utf8.count <= 64, b.utf8.count <= 64 else { return .max / 2 }
    let a = Array(a)
    let b = Array(b)
    var rows = [Array(0...b.count)]
    for i in 0..<a.count {
      var row = [i + 1]
      for j in 0..<b.count {
        var cost = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (a[i] == b[j] ? 0 : 1))
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { cost = min(cost, rows[i - 1][j - 1] + 1) }
        row.append(cost)
      }
      rows.append(row)
    }
    return rows[a.count][b.count]
  }
}
