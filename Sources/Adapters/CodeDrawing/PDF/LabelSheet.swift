package import Domain

/// Pages of labels to print, cut out and stick on: each a code with lines of text below it.
package struct LabelSheet: Sendable {
  package struct Label: Sendable {
    package let code: QRCode
    /// From the top, the first larger than the others.
    package let lines: [PDFText]

    package init(_ code: QRCode, lines: [PDFText]) {
      self.code = code
      self.lines = lines
    }
  }

  package enum Paper: String, CaseIterable, Sendable {
    case a4, letter

    /// Millimetres.
    fileprivate var size: (width: Double, height: Double) {
      switch self {
      case .a4: (210, 297)  // ISO 216
      case .letter: (215.9, 279.4)  // ANSI X3.151
      }
    }
  }

  package enum Failure: Domain.Failure, Equatable {
    /// Not even one label fits on the page.
    case tooLarge(size: Double, largest: Double)

    package var exitStatus: ExitStatus { .usage }

    package var description: String {
      switch self {
      case .tooLarge(let size, let largest):
        "a label with a code of \(decimal(size)) mm does not fit on the page; \(decimal(largest)) mm would"
      }
    }
  }

  // Millimetres. Most printers leave out 5 at the edges.
  private static let margin = 12.0
  private static let gap = 8.0
  private static let cutMark = 3.0
  private static let footer = 10.0

  private let paper: Paper
  private let size: Double
  /// In the order in which they are printed.
  private let labels: [Label]
  private let columns: Int
  private let rows: Int

  /// - Parameters:
  ///   - size: millimetres, of a code without its quiet zone.
  ///   - copies: of each label, side by side.
  package init(_ labels: [Label], size: Double, paper: Paper, copies: Int = 1) throws(Failure) {
    self.paper = paper
    self.size = size
    self.labels = labels.flatMap { Array(repeating: $0, count: copies) }
    let label = Self.extent(of: labels, size: size)
    let room = Self.room(on: paper)
    columns = Int((room.width + Self.gap) / (label.width + Self.gap))
    rows = Int((room.height + Self.gap) / (label.height + Self.gap))
    guard columns > 0, rows > 0 else {
      let largest = min(room.width / label.width, room.height / label.height) * size
      throw .tooLarge(size: size, largest: largest.rounded(.down))
    }
  }

  package var pdf: [UInt8] {
    var document = PDFDocument(width: paper.size.width, height: paper.size.height)
    for first in stride(from: 0, to: labels.count, by: columns * rows) {
      document.addPage(page(labels[first..<min(first + columns * rows, labels.count)]))
    }
    return document.bytes
  }

  // MARK: - Layout

  /// The size of the largest label, with the quiet zone of its code.
  private static func extent(of labels: [Label], size: Double) -> (width: Double, height: Double) {
    let modules = labels.map(\.code.side).min() ?? 21
    let width = size * (1 + 2 * Double(QRCode.quietZone) / Double(modules))
    let lines = labels.map(\.lines.count).max() ?? 0
    return (width, width + (0..<lines).reduce(0) { $0 + leading * fontSize(line: $1, size: size) })
  }

  private static func room(on paper: Paper) -> (width: Double, height: Double) {
    (paper.size.width - 2 * margin, paper.size.height - 2 * margin - footer)
  }

  /// From one line to the next, in sizes of the font.
  private static let leading = 1.25

  /// As large as the code allows: millimetres.
  private static func fontSize(line: Int, size: Double) -> Double {
    min(size * (line == 0 ? 0.1 : 0.075), line == 0 ? 8 : 6)
  }

  // MARK: - Drawing

  private func page(_ labels: ArraySlice<Label>) -> String {
    let extent = Self.extent(of: self.labels, size: size)
    var drawing = ""
    for (index, label) in labels.enumerated() {
      let (row, column) = index.quotientAndRemainder(dividingBy: columns)
      let left = Self.margin + Double(column) * (extent.width + Self.gap)
      let top = paper.size.height - Self.margin - Double(row) * (extent.height + Self.gap)
      drawing += draw(label, left: left, top: top, width: extent.width)
      drawing += cutMarks(left: left, right: left + extent.width, bottom: top - extent.height, top: top)
    }
    return drawing + ruler
  }

  private func draw(_ label: Label, left: Double, top: Double, width: Double) -> String {
    let module = size / Double(label.code.side)
    let edge = (width - size) / 2
    // The coordinates count modules. All of a path is filled at once, without seams.
    var drawing = "q \(module) 0 0 \(-module) \(decimal(left + edge)) \(decimal(top - edge)) cm\n"
    for run in label.code.runs { drawing += "\(run.columns.lowerBound) \(run.row) \(run.columns.count) 1 re " }
    drawing += "f Q\n"

    var baseline = top - width
    for (index, line) in label.lines.enumerated() {
      let largest = Self.fontSize(line: index, size: size)
      // A long line is set smaller, and shortened where it would be too small to read.
      let room = width / PDFDocument.characterWidth
      let fontSize = max(min(largest, room / Double(max(line.bytes.count, 1))), largest / 2)
      let text = line.truncated(to: Int(room / fontSize + 1e-9))
      let indent = (width - Double(text.bytes.count) * PDFDocument.characterWidth * fontSize) / 2
      baseline -= largest
      drawing +=
        "BT /F \(decimal(fontSize)) Tf \(decimal(left + indent)) \(decimal(baseline)) Td \(text.hexadecimal) Tj ET\n"
      baseline -= (Self.leading - 1) * largest
    }
    return drawing
  }

  /// At the corners, outside the label.
  private func cutMarks(left: Double, right: Double, bottom: Double, top: Double) -> String {
    var drawing = "0.1 w\n"
    for (x, outwards) in [(left, -1.0), (right, 1.0)] {
      for (y, upwards) in [(bottom, -1.0), (top, 1.0)] {
        drawing += line(from: (x + outwards, y), to: (x + outwards * Self.cutMark, y))
        drawing += line(from: (x, y + upwards), to: (x, y + upwards * Self.cutMark))
      }
    }
    return drawing
  }

  /// Shows people whether their printer has scaled the page.
  private var ruler: String {
    let (left, bottom) = (Self.margin, Self.margin - 4)
    let text = PDFText("100 mm: print at actual size")!
    return "0.2 w\n" + line(from: (left, bottom), to: (left + 100, bottom))
      + line(from: (left, bottom - 1), to: (left, bottom + 1))
      + line(from: (left + 100, bottom - 1), to: (left + 100, bottom + 1))
      + "BT /F 3 Tf \(decimal(left + 103)) \(decimal(bottom - 1)) Td \(text.hexadecimal) Tj ET\n"
  }

  private func line(from: (x: Double, y: Double), to: (x: Double, y: Double)) -> String {
    "\(decimal(from.x)) \(decimal(from.y)) m \(decimal(to.x)) \(decimal(to.y)) l S\n"
  }
}
