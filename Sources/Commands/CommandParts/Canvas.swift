package import Terminal

/// A grid of characters to draw on, one column each. Anything outside the grid is not drawn.
package struct Canvas {
  private struct Cell {
    var character: Character = " "
    var style: Console.Style?
  }

  private let columns: Int
  private var rows: [[Cell]]

  package init(rows: Int, columns: Int) {
    self.columns = columns
    self.rows = Array(repeating: Array(repeating: Cell(), count: columns), count: rows)
  }

  package mutating func draw(_ text: some StringProtocol, row: Int, column: Int, _ style: Console.Style? = nil) {
    for (offset, character) in text.enumerated() { draw(character, row: row, column: column + offset, style) }
  }

  package mutating func draw(_ character: Character, row: Int, column: Int, _ style: Console.Style? = nil) {
    guard rows.indices.contains(row), (0..<columns).contains(column) else { return }
    rows[row][column] = Cell(character: character, style: style)
  }

  /// The rows as text, without spaces at their ends.
  package func lines(style: (String, Console.Style) -> String) -> [String] {
    rows.map { row in
      var line = ""
      var rest = row[..<((row.lastIndex { $0.character != " " } ?? -1) + 1)]
      while let first = rest.first {
        let run = rest.prefix { $0.style == first.style }
        let text = String(run.map(\.character))
        line += first.style.map { style(text, $0) } ?? text
        rest = rest.dropFirst(run.count)
      }
      return line
    }
  }
}
