import Testing

@testable import OperatorCommands

@Suite("labels of a plot")
struct LabelLayoutTests {
  private static let room = LabelLayout.Box(x: 0, y: 0, width: 400, height: 300)

  @Test("marks of one place stand side by side")
  func marks() {
    var layout = LabelLayout(room: Self.room)
    let marks = (0..<9).map { _ in layout.mark(x: 100, y: 100, radius: 6) }
    #expect(marks[0] == (100, 100))
    for (index, mark) in marks.enumerated() {
      for other in marks[..<index] { #expect(abs(mark.x - other.x) >= 12 || abs(mark.y - other.y) >= 12) }
      #expect(abs(mark.x - 100) < 60 && abs(mark.y - 100) < 60)
    }
  }

  @Test("no label covers another or a mark, and a line leads to one that is not close")
  func labels() {
    var layout = LabelLayout(room: Self.room)
    let marks = (0..<30).map { layout.mark(x: 150 + Double($0 % 6) * 14, y: 120 + Double($0 / 6) * 14, radius: 6) }
    var boxes: [(x: Double, y: Double)] = []
    for (index, mark) in marks.enumerated() {
      guard let label = layout.label("P\(index)", size: 10, beside: mark, radius: 7) else { continue }
      for other in boxes { #expect(abs(label.x - other.x) >= 13 || abs(label.y - other.y) >= 12) }
      for mark in marks { #expect(abs(label.x - mark.x) >= 12 || abs(label.y - 4 - mark.y) >= 12) }
      #expect((0...400).contains(label.x) && (10...300).contains(label.y))
      // The base line is close to the mark, or the line goes from the mark to the label.
      if let line = label.line {
        #expect(line.first! == mark)
      } else {
        #expect(abs(label.x - mark.x) < 30 && abs(label.y - mark.y) < 30)
      }
      boxes.append((label.x, label.y))
    }
    #expect(boxes.count == 30)
  }

  @Test("labels of marks that must stay where they are keep away from them and from one another")
  func kept() {
    var layout = LabelLayout(room: Self.room)
    let marks = (0..<8).map { (x: 200 + Double($0), y: 150.0) }
    for mark in marks { layout.keep(x: mark.x, y: mark.y, radius: 4) }
    var boxes: [(x: Double, y: Double)] = []
    for mark in marks {
      guard let label = layout.label("P", size: 10, beside: mark, radius: 4) else { continue }
      for other in boxes { #expect(abs(label.x - other.x) >= 6 || abs(label.y - other.y) >= 12) }
      for mark in marks { #expect(abs(label.x - mark.x) >= 4 || abs(label.y - 4 - mark.y) >= 4) }
      boxes.append((label.x, label.y))
    }
    #expect(boxes.count == 8)
  }

  @Test("a label without room is left out")
  func noRoom() {
    var layout = LabelLayout(room: LabelLayout.Box(x: 0, y: 0, width: 40, height: 40))
    let mark = layout.mark(x: 20, y: 20, radius: 6)
    #expect(layout.label("a label that is too long", size: 10, beside: mark, radius: 7) == nil)
  }
}
