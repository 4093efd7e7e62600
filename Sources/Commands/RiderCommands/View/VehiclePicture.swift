import CommandParts
import Domain
import Glibc
import Ranging
import Terminal

/// The vehicle from above with its front upward, and the rider on the way to a step.
///
/// Each step has a scale beside it, logarithmic like radio levels. The rider stands on the scale of the step that they
/// face. While the rider faces no step, a question mark stands on both scales.
///
/// The farther a step is out, the wider it is drawn. One that slides changes with each picture, and an arrow at its end
/// says which way.
struct VehiclePicture {
  static let leastRows = 7
  private static let mostRows = 33
  private static let leastWay = 10
  private static let mostWay = 64
  /// Columns from the flank to the way, and of a step where nobody can ask the vehicle.
  private static let stepWidth = 2
  // In metres: the scale's ends, the zones' edges on it, and the distance below which the rider is drawn largest.
  private static let nearest = 0.2
  private static let farthest = 20.0
  private static let immediateEdge = 0.5
  private static let farEdge = 3.0
  private static let large = 1.0

  let rows: Int
  private let location: Location
  private let steps: DrawnSteps?
  private let glyphs: Glyphs
  /// Columns of the vehicle, of the way at each side of it, and of free space at the left.
  private let body: Int
  private let way: Int
  private let margin: Int
  private let columns: Int

  /// - Parameter steps: how the steps stand; nil where nobody can ask the vehicle.
  /// - Returns: nil if there is no room for it.
  init?(_ location: Location, steps: DrawnSteps? = nil, rows: Int, columns: Int, glyphs: Glyphs) {
    self.steps = steps
    self.rows = min(rows, Self.mostRows)
    // A vehicle of 2 m by 3.5 m, in characters that are twice as high as wide.
    body = max(14, self.rows * 8 / 7 / 2 * 2)
    way = min((columns - body) / 2 - Self.stepWidth, Self.mostWay)
    guard rows >= Self.leastRows, way >= Self.leastWay else { return nil }
    margin = (columns - body) / 2 - Self.stepWidth - way
    self.columns = columns
    self.location = location
    self.glyphs = glyphs
  }

  private var middle: Int { rows / 2 }
  /// Whether there is room for the largest rider.
  private var isTall: Bool { rows >= 15 }

  func lines(style: (String, Console.Style) -> String) -> [String] {
    var canvas = Canvas(rows: rows, columns: columns)
    drawBody(on: &canvas)
    for reading in location.readings {
      drawWay(to: reading, on: &canvas)
      drawStep(reading.step, on: &canvas)
      drawRider(reading, on: &canvas)
    }
    return canvas.lines(style: style)
  }

  // MARK: - The vehicle

  private var left: Int { margin + way + Self.stepWidth }
  private var right: Int { left + body - 1 }

  private func drawBody(on canvas: inout Canvas) {
    let box = glyphs.body
    for column in left...right {
      canvas.draw(box.horizontal, row: 0, column: column)
      canvas.draw(box.horizontal, row: rows - 1, column: column)
    }
    for row in 0..<rows {
      canvas.draw(box.vertical, row: row, column: left)
      canvas.draw(box.vertical, row: row, column: right)
    }
    canvas.draw(box.topLeft, row: 0, column: left)
    canvas.draw(box.topRight, row: 0, column: right)
    canvas.draw(box.bottomLeft, row: rows - 1, column: left)
    canvas.draw(box.bottomRight, row: rows - 1, column: right)
    canvas.draw(" front ", row: 0, column: left + (body - 7) / 2, .dim)
  }

  private func drawStep(_ step: Step, on canvas: inout Canvas) {
    let isFaced = step == location.facing
    let glyph = isFaced ? location.isLocated ? glyphs.locatedStep : glyphs.facedStep : glyphs.step
    let style: Console.Style = isFaced ? location.isLocated ? .good : .strong : .dim
    let half = isTall ? 2 : 1
    let (outward, inward): (Character, Character) = step.side == .left ? ("<", ">") : (">", "<")
    let drawn: (columns: Int, end: Character?) =
      steps.map { $0[step.id].drawn(at: $0.moment, outward: outward, inward: inward) } ?? (Self.stepWidth, nil)
    for row in (middle - half)...(middle + half) {
      for offset in 1...drawn.columns {
        let isEnd = offset == drawn.columns && row == middle
        canvas.draw(
          isEnd ? drawn.end ?? glyph : glyph, row: row, column: step.side == .left ? left - offset : right + offset,
          style)
      }
    }
    let room = body / 2 - 2
    let name = step.id.description.truncated(to: room, ellipsis: glyphs.ellipsis)
    canvas.draw(
      name, row: middle, column: step.side == .left ? left + 2 : right - 1 - name.count, isFaced ? .strong : nil)
  }

  // MARK: - The way

  /// The place on the way for a distance: 0 is at the step.
  private func place(_ metres: Double) -> Int {
    let share = log(metres / Self.nearest) / log(Self.farthest / Self.nearest)
    return Int((min(max(share, 0), 1) * Double(way - 1)).rounded())
  }

  private func column(_ place: Int, _ side: Side) -> Int {
    side == .left ? left - Self.stepWidth - 1 - place : right + Self.stepWidth + 1 + place
  }

  private func drawWay(to reading: Location.Reading, on canvas: inout Canvas) {
    let side = reading.step.side
    for place in 0..<way { canvas.draw(glyphs.way, row: middle, column: column(place, side), .dim) }
    for edge in [Self.immediateEdge, Self.farEdge] {
      canvas.draw(glyphs.edge, row: middle, column: column(place(edge), side), .dim)
    }
    if let distance = reading.distance {
      for place in place(distance.low)...place(distance.high) {
        canvas.draw(glyphs.interval, row: middle, column: column(place, side), self.style(of: reading))
      }
    }

    let immediate = place(Self.immediateEdge)
    let far = place(Self.farEdge)
    drawLabel("3 m", at: far, side, .dim, on: &canvas)
    if far - immediate > 5 { drawLabel("0.5 m", at: immediate, side, .dim, on: &canvas) }
    for (zone, from, to) in [
      (Zone.immediate, -1, immediate - 3), (.near, immediate + 3, far - 2), (.far, far + 2, way),
    ] where to - from > zone.rawValue.count + 1 {
      let style = reading.zone == zone ? self.style(of: reading) : .dim
      drawLabel(zone.rawValue, at: (from + to) / 2, side, style, on: &canvas)
    }
  }

  /// Draws below the way, around a place on it.
  private func drawLabel(
    _ text: String, at place: Int, _ side: Side, _ style: Console.Style?, on canvas: inout Canvas
  ) {
    canvas.draw(text, row: middle + (isTall ? 3 : 2), column: column(place, side) - text.count / 2, style)
  }

  // MARK: - The rider

  private func style(of reading: Location.Reading) -> Console.Style? {
    reading.step != location.facing ? nil : location.isLocated ? .good : .strong
  }

  private func drawRider(_ reading: Location.Reading, on canvas: inout Canvas) {
    guard let metres = reading.distance?.metres else { return }
    let mark: Character
    switch location.facing {
    case reading.step: mark = location.isLocated ? glyphs.decided : glyphs.leaning
    case nil: mark = "?"
    default: return
    }
    let size = metres > Self.farEdge ? 0 : metres > Self.large ? 1 : 2
    let figure = glyphs.riders[size + (isTall ? 1 : 0)]
    let half = (figure.first?.count ?? 1) / 2
    // Not on a step that is out.
    let reach =
      max(half, 1) + (steps.map { $0[reading.step.id] == .unknown ? 0 : StepState.reach - Self.stepWidth } ?? 0)
    let center = column(min(max(place(metres), reach), way - 1 - max(half, 1)), reading.step.side)
    let style = style(of: reading)
    let top = middle - figure.count / 2
    for (row, text) in figure.enumerated() {
      for (offset, character) in text.enumerated() where character != " " {
        canvas.draw(character == "*" ? mark : character, row: top + row, column: center - half + offset, style)
      }
    }
    canvas.draw(location.facing == nil ? "you?" : "you", row: top - 1, column: center - 1, style)
  }
}

/// How the steps of a vehicle stand, for its picture.
struct DrawnSteps {
  var states: [StepID: StepState] = [:]
  /// Counts the pictures of a motion.
  var moment = 0

  subscript(step: StepID) -> StepState { states[step] ?? .unknown }

  var areSliding: Bool { states.values.contains { if case .sliding = $0 { true } else { false } } }
}
