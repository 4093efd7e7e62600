import CommandParts
import Domain
import Ranging
import Terminal

/// The table of `scan`: the beacons around a technician, a line each.
///
/// Color never carries information alone. If there is little room, the least important columns are left out, and the
/// last beacons.
struct ScanFrame {
  private let rows: [ScanTable.Row]
  private let table: ScanTable
  private let time: Double
  private let radio: String
  private let size: Screen.Size
  private let glyphs: Glyphs
  private let style: (String, Console.Style) -> String

  /// The lowest level of the scale, dBm.
  private static let lowest = -100
  private static let decibelsPerStep = 8
  private static let leastHistory = 8
  private static let mostHistory = 60

  /// - Parameters:
  ///   - time: seconds on the radio's clock since it was opened.
  ///   - radio: the user's name for the radio.
  ///   - style: adds the attributes of a style to a text, if they are wanted.
  init(
    _ table: ScanTable, rows: [ScanTable.Row], at time: Double, radio: String, size: Screen.Size, glyphs: Glyphs,
    style: @escaping (String, Console.Style) -> String
  ) {
    self.table = table
    self.rows = rows
    self.time = time
    self.radio = radio
    self.size = size
    self.glyphs = glyphs
    self.style = style
  }

  private struct Column {
    /// The column with the highest rank is left out first.
    let rank: Int
    let title: String
    let width: Int
    var isNumber = false
    let text: (ScanTable.Row) -> String
  }

  /// One column stays free at each side.
  private var width: Int { max(1, size.columns - 2) }

  /// At most as many lines as there are rows, each shorter than a row.
  var lines: [String] {
    let columns = columns
    let room = size.rows - 4
    if room < 1 { return [title] }
    let shown = rows.count > room ? rows.prefix(room - 1) : rows[...]
    var lines = [title, ""]
    lines.append(indented(style(line(columns) { $0.title }, .dim)))
    lines += shown.map { row in
      let text = line(columns) { $0.text(row) }
      return indented(row.isHeard ? text : style(text, .dim))
    }
    if rows.isEmpty {
      lines.append(indented(style(text(emptiness), .dim)))
    } else if shown.count < rows.count {
      lines.append(indented(style(text("\(glyphs.ellipsis) and \(rows.count - shown.count) more"), .dim)))
    }
    return lines
  }

  private var title: String {
    let elapsed = "\(tenths(time)) s"
    let room = width - elapsed.count - 2
    guard room > 0 else { return indented(text(elapsed)) }
    let heard = rows.count { $0.isHeard }
    let rate = rows.reduce(0) { $0 + $1.history.rate(at: time) }
    let title = "\(heard) beacon\(heard == 1 ? "" : "s")  \(Int(rate.rounded())) frames/s  \(radio)"
    return indented(style(text(title, in: room).aligned(to: room), .strong) + "  " + style(elapsed, .dim))
  }

  private var emptiness: String {
    table.others == 0 ? "nothing is heard" : "\(table.others) advertisements, none from a beacon"
  }

  // MARK: - Columns

  /// The columns that fit. Remaining room goes to a whole UUID, if it fits, and to the history.
  private var columns: [Column] {
    var columns = [
      Column(rank: 0, title: "beacon", width: 8 + glyphs.ellipsis.columns) {
        "\($0.beacon.uuid.description.prefix(8))\(glyphs.ellipsis)"
      },
      Column(rank: 0, title: "major", width: 5, isNumber: true) { "\($0.beacon.major)" },
      Column(rank: 3, title: "minor", width: 5, isNumber: true) { "\($0.beacon.minor)" },
      Column(rank: 1, title: "zone", width: 9) { $0.zone.column },
      Column(rank: 0, title: "RSSI", width: 8, isNumber: true) { $0.rssi.map { "\($0) dBm" } ?? "-" },
      Column(rank: 5, title: "", width: Self.leastHistory) { _ in "" },
      Column(rank: 4, title: "a second", width: 8, isNumber: true) { tenths($0.history.rate(at: time)) },
      Column(rank: 2, title: "heard", width: 10, isNumber: true) { "\(tenths($0.age)) s ago" },
    ]
    func total(_ columns: [Column]) -> Int { columns.reduce(-2) { $0 + $1.width + 2 } }
    let rank = (0...5).last { rank in total(columns.filter { $0.rank <= rank }) <= width } ?? 0
    columns.removeAll { $0.rank > rank }
    let whole = 36 - columns[0].width
    if total(columns) + whole <= width {
      columns[0] = Column(rank: 0, title: "beacon", width: 36) { $0.beacon.uuid.description }
    }
    if let index = columns.firstIndex(where: { $0.rank == 5 }) {
      let seconds = min(Self.leastHistory + width - total(columns), Self.mostHistory)
      columns[index] = Column(rank: 5, title: "last \(seconds) s", width: seconds) { row in
        String(row.history.levels(seconds, at: time).map(glyph))
      }
    }
    return columns
  }

  private func line(_ columns: [Column], _ cell: (Column) -> String) -> String {
    text(columns.map { cell($0).aligned(to: $0.width, right: $0.isNumber) }.joined(separator: "  "))
  }

  private func glyph(of level: Int?) -> Character {
    guard let level else { return " " }
    let step = (level - Self.lowest) / Self.decibelsPerStep
    return glyphs.levels[min(max(step, 0), glyphs.levels.count - 1)]
  }

  // MARK: - Text

  private func text(_ text: String, in room: Int? = nil) -> String { glyphs.text(text, in: room ?? width) }

  private func indented(_ line: String) -> String { size.columns < 3 ? line : " " + line }
}
