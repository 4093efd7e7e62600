package import Terminal

/// A field to draw shapes on. With Unicode, a character shows two by four dots (the block Braille Patterns, U+2800),
/// which are about square. Otherwise it shows one dot: `#` for areas and `.` for lines.
///
/// Places are given in columns: x to the right and y down, so that a row is two columns high.
package struct DotCanvas {
  private struct Cell {
    /// Which of its dots are set.
    var dots: UInt8 = 0
    /// Whether all dots belong to lines.
    var isThin = true
    /// The character that replaces the dots.
    var character: Character?
    var style: Console.Style?
  }

  package let rows: Int
  package let columns: Int
  private let glyphs: Glyphs
  private var cells: [Cell]

  package init(rows: Int, columns: Int, glyphs: Glyphs) {
    self.rows = rows
    self.columns = columns
    self.glyphs = glyphs
    cells = Array(repeating: Cell(), count: rows * columns)
  }

  /// How many dots a character has, across and down.
  private var grain: (x: Int, y: Int) { glyphs.isUnicode ? (2, 4) : (1, 1) }

  /// The places of the dots between two corners.
  package func dots(x: ClosedRange<Double>, y: ClosedRange<Double>) -> [(x: Double, y: Double)] {
    func span(_ range: ClosedRange<Double>, _ size: Double, _ count: Int) -> Range<Int> {
      let (low, high) = ((range.lowerBound / size - 0.5).rounded(.up), (range.upperBound / size - 0.5).rounded(.down))
      let first = Int(min(max(low, 0), Double(count)))
      return first..<max(first, Int(min(max(high + 1, 0), Double(count))))
    }
    let size = (x: 1 / Double(grain.x), y: 2 / Double(grain.y))
    let across = span(x, size.x, columns * grain.x)
    return span(y, size.y, rows * grain.y).flatMap { row in
      across.map { ((Double($0) + 0.5) * size.x, (Double(row) + 0.5) * size.y) }
    }
  }

  /// - Parameter isThin: whether the dot belongs to a line.
  package mutating func dot(x: Double, y: Double, _ style: Console.Style? = nil, isThin: Bool = false) {
    let (column, row) = ((x * Double(grain.x)).rounded(.down), (y * Double(grain.y) / 2).rounded(.down))
    guard column >= 0, row >= 0, column < Double(columns * grain.x), row < Double(rows * grain.y) else { return }
    let (dot, line) = (Int(column), Int(row))
    let place = line / grain.y * columns + dot / grain.x
    // Unicode 16, 21.4: the dots of the first column are bits 0, 1, 2 and 6, those of the second 3, 4, 5 and 7.
    let bits: [[UInt8]] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]]
    cells[place].dots |= bits[dot % grain.x][line % grain.y]
    if !isThin { cells[place].isThin = false }
    cells[place].style = style ?? cells[place].style
  }

  package mutating func line(from: (x: Double, y: Double), to: (x: Double, y: Double), _ style: Console.Style? = nil) {
    let way = max(abs(to.x - from.x) * Double(grain.x), abs(to.y - from.y) * Double(grain.y) / 2).rounded(.up)
    // Drawing a shape far outside would take too long.
    guard way.isFinite, way < 100_000 else { return }
    for step in 0...max(Int(way), 1) {
      let part = Double(step) / max(way, 1)
      dot(x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part, style, isThin: true)
    }
  }

  /// Draws characters over the dots.
  package mutating func text(_ text: some StringProtocol, x: Double, y: Double, _ style: Console.Style? = nil) {
    guard (0..<Double(rows * 2)).contains(y), abs(x) < 100_000 else { return }
    for (offset, character) in text.enumerated() {
      let column = Int(x.rounded(.down)) + offset
      guard (0..<columns).contains(column) else { continue }
      let place = Int(y / 2) * columns + column
      cells[place].character = character
      cells[place].style = style
    }
  }

  package func lines(style: (String, Console.Style) -> String) -> [String] {
    (0..<rows).map { row in
      let cells = cells[(row * columns)..<((row + 1) * columns)]
      var line = ""
      var rest = cells[..<((cells.lastIndex { $0.dots != 0 || $0.character != nil } ?? cells.startIndex - 1) + 1)]
      while let first = rest.first {
        let run = rest.prefix { $0.style == first.style }
        let text = String(run.map(character))
        line += first.style.map { style(text, $0) } ?? text
        rest = rest.dropFirst(run.count)
      }
      return line
    }
  }

  private func character(_ cell: Cell) -> Character {
    if let character = cell.character { return character }
    if cell.dots == 0 { return " " }
    // The 256 Braille patterns begin at U+2800, and all of them are valid characters.
    return glyphs.isUnicode ? Character(UnicodeScalar(0x2800 + UInt32(cell.dots))!) : cell.isThin ? "." : "#"
  }
}
