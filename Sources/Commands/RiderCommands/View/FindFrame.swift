import CommandParts
import Geography
import Terminal

import func Glibc.cos
import func Glibc.sin

/// An arrow to a vehicle, for a rider who walks there.
///
/// The rider's direction of travel points upward. If the rider stands still, north points upward, and the picture says
/// so. There is no arrow until the receiver has settled, because a wrong arrow would be worse.
struct FindFrame {
  private let report: FindReport
  private let keys: String
  private let size: Screen.Size
  private let glyphs: Glyphs
  private let style: (String, Console.Style) -> String

  init(
    _ report: FindReport, keys: String, size: Screen.Size, glyphs: Glyphs,
    style: @escaping (String, Console.Style) -> String
  ) {
    self.report = report
    self.keys = keys
    self.size = size
    self.glyphs = glyphs
    self.style = style
  }

  var lines: [String] {
    let width = max(1, size.columns - 1)
    func line(_ text: String, _ style: Console.Style) -> String { self.style(glyphs.text(text, in: width), style) }
    let result = line(report.result, report.way == nil ? .bad : .strong)
    guard size.rows >= 9, size.columns >= 16 else { return Array([result].prefix(size.rows)) }
    let origin = report.origin.map { [line("the place is \($0)", .dim)] } ?? []
    let last = report.way == nil || report.isNear ? "\(glyphs.arrow) \(report.advice)" : ""
    return picture(rows: size.rows - 3 - origin.count, columns: width) + [result] + origin + [
      line(last, .strong), line(keys, .dim),
    ]
  }

  private func picture(rows: Int, columns: Int) -> [String] {
    var canvas = DotCanvas(rows: rows, columns: columns, glyphs: glyphs)
    let middle = (x: Double(columns) / 2, y: Double(rows))
    let radius = min(middle.x, middle.y) - 3
    func place(_ degrees: Double, _ length: Double) -> (x: Double, y: Double) {
      let angle = degrees * .pi / 180
      return (middle.x + sin(angle) * length, middle.y - cos(angle) * length)
    }
    for step in stride(from: 0.0, to: 360, by: 3) {
      let point = place(step, radius)
      canvas.dot(x: point.x, y: point.y, .dim, isThin: true)
    }
    // The upward direction: the rider's course, or north.
    let course: Double? = report.way.flatMap { way in
      way.turn.flatMap { turn in way.direction.map { $0.bearing - turn } }
    }
    for (name, bearing) in [("N", 0.0), ("E", 90), ("S", 180), ("W", 270)] {
      let point = place(bearing - (course ?? 0), radius + 1.5)
      canvas.text(name, x: point.x, y: min(max(point.y, 0), Double(rows * 2) - 1), .dim)
    }
    if let way = report.way, let direction = way.direction, !report.isNear {
      let up = direction.bearing - (course ?? 0)
      let tip = place(up, radius - 1)
      canvas.line(from: place(up + 180, radius / 2), to: tip, .good)
      for side in [-1.0, 1] {
        // The arrow's head, drawn as several lines so that it is filled.
        for part in stride(from: 0.0, through: 1, by: 0.1) {
          canvas.line(from: tip, to: place(up + side * 14 * part, radius * 0.72), .good)
        }
      }
      canvas.text(course == nil ? "north is up" : "your way is up", x: 1, y: 0, .dim)
    } else {
      canvas.text(report.isNear ? "here" : "?", x: middle.x - (report.isNear ? 2 : 0), y: middle.y, .strong)
    }
    return canvas.lines(style: style)
  }
}
