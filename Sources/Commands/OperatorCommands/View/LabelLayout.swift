import Glibc
import Terminal

/// Finds room for marks and labels in a plot, so that none covers another. All values are in the plot's units.
struct LabelLayout {
  /// An upright rectangle.
  struct Box {
    var (x, y, width, height): (Double, Double, Double, Double)

    fileprivate func overlaps(_ other: Box) -> Bool {
      x < other.x + other.width && other.x < x + width && y < other.y + other.height && other.y < y + height
    }

    fileprivate func contains(_ other: Box) -> Bool {
      x <= other.x && y <= other.y && other.x + other.width <= x + width && other.y + other.height <= y + height
    }
  }

  private let room: Box
  private var marks: [Box] = []
  private var labels: [Box] = []
  /// Small boxes along the lines that lead to labels.
  private var lines: [Box] = []

  init(room: Box) { self.room = room }

  /// The place of a mark: its own, or the nearest one where no other mark is.
  mutating func mark(x: Double, y: Double, radius: Double) -> (x: Double, y: Double) {
    let size = 2 * radius
    let own = Box(x: x - radius, y: y - radius, width: size, height: size)
    if !isFree(own), let other = boxes(size, size, around: (x, y), from: radius).first(where: { isFree($0) }) {
      marks.append(other)
      return (other.x + radius, other.y + radius)
    }
    marks.append(own)
    return (x, y)
  }

  /// Takes the room of a mark that stays at its own place, whatever is there.
  mutating func keep(x: Double, y: Double, radius: Double) {
    marks.append(Box(x: x - radius, y: y - radius, width: 2 * radius, height: 2 * radius))
  }

  /// The place of a label beside a mark. All marks must have their places before.
  ///
  /// - Parameters:
  ///   - size: the font's.
  ///   - radius: the mark's.
  /// - Returns: the middle of the text's base line, or nil if there is no room nearby. `line` leads from the mark to a
  ///   label that is not close to it.
  mutating func label(
    _ text: String, size: Double, beside mark: (x: Double, y: Double), radius: Double
  ) -> (x: Double, y: Double, line: [(x: Double, y: Double)]?)? {
    // A wide font's letters are so wide on average.
    let (width, height) = (Double(text.columns) * size * 0.65, size * 1.2)
    let boxes = boxes(width, height, around: mark, from: radius + 2).filter { isFree($0) }
    for crossing in Crossing.allCases {
      for box in boxes {
        let end = (x: min(max(mark.x, box.x), box.x + width), y: min(max(mark.y, box.y), box.y + height))
        let isClose = hypot(end.x - mark.x, end.y - mark.y) <= radius + 4
        if !isClose {
          let line = Self.line(from: mark, to: end, after: radius)
          guard line.allSatisfy({ isFree($0, crossing) }) else { continue }
          lines += line
        }
        labels.append(box)
        return (box.x + width / 2, box.y + size, isClose ? nil : [mark, end])
      }
    }
    return nil
  }

  private func isFree(_ box: Box) -> Bool {
    room.contains(box) && !touchesLabel(box) && !marks.contains(where: box.overlaps)
      && !lines.contains(where: box.overlaps)
  }

  private func touchesLabel(_ box: Box) -> Bool { labels.contains(where: box.overlaps) }

  /// What the line to a label may cross.
  private enum Crossing: CaseIterable {
    case nothing, marks, everything
  }

  private func isFree(_ box: Box, _ crossing: Crossing) -> Bool {
    switch crossing {
    case .nothing: isFree(box)
    case .marks: !touchesLabel(box)
    case .everything: true
    }
  }

  /// Small boxes along a line that begins at a mark, from beyond the corners of the mark's box.
  private static func line(
    from begin: (x: Double, y: Double), to end: (x: Double, y: Double), after radius: Double
  ) -> [Box] {
    let length = hypot(end.x - begin.x, end.y - begin.y)
    return stride(from: radius * 1.5 + 1, through: length, by: 2).map { place in
      let part = place / length
      return Box(
        x: begin.x + (end.x - begin.x) * part - 1, y: begin.y + (end.y - begin.y) * part - 1, width: 2, height: 2)
    }
  }

  /// Boxes around a point, the nearest first.
  private func boxes(
    _ width: Double, _ height: Double, around middle: (x: Double, y: Double), from radius: Double
  ) -> [Box] {
    stride(from: radius, to: radius + 150, by: 4).flatMap { radius in
      // Right, left, above, below, and then between.
      [0.0, 8, 12, 4, 14, 2, 10, 6, 15, 1, 9, 7, 13, 3, 11, 5].map { sixteenth in
        let angle = sixteenth * .pi / 8
        return Box(
          x: middle.x + cos(angle) * (radius + width / 2) - width / 2,
          y: middle.y + sin(angle) * (radius + height / 2) - height / 2,
          width: width, height: height)
      }
    }
  }
}
