import CodeDrawing
import Domain

/// Pages of labels to print, and to cut out or peel off: each is a code between lines of text.
struct LabelSheet: Sendable {
  struct Label: Sendable {
    let code: QRCode
    /// Its word is printed at the top, readable from some metres away; nil for none.
    let side: Side?
    /// The names of the vehicle and the step, above the code.
    let title: PDFText
    /// What to do, below the code.
    let instruction: PDFText

    init(_ code: QRCode, side: Side?, title: PDFText, instruction: PDFText) {
      self.code = code
      self.side = side
      self.title = title
      self.instruction = instruction
    }
  }

  enum Paper: String, CaseIterable, Sendable {
    case a4, letter

    /// Millimetres.
    fileprivate var size: (width: Double, height: Double) {
      switch self {
      case .a4: (210, 297)  // ISO 216
      case .letter: (215.9, 279.4)  // ANSI X3.151
      }
    }
  }

  enum Failure: Domain.Failure, Equatable {
    /// Not even one label fits on the page.
    case tooLarge(size: Double, largest: Double)

    var exitStatus: ExitStatus { .usage }

    var description: String {
      switch self {
      case .tooLarge(let size, let largest):
        "a label with a code of \(decimal(size)) mm does not fit on the page; \(decimal(largest)) mm would"
      }
    }
  }

  // Millimetres. Most printers cannot print the outer 5.
  private static let margin = 12.0
  private static let gap = 8.0
  private static let cutMark = 3.0
  private static let footer = 10.0

  private let paper: Paper
  private let size: Double
  /// In the printing order.
  private let labels: [Label]
  private let columns: Int
  private let rows: Int

  /// - Parameters:
  ///   - size: millimetres, of a code without its quiet zone; nil for the largest size at which one label fits on a
  ///     page.
  ///   - copies: of each label, side by side.
  init(_ labels: [Label], size: Double?, paper: Paper, copies: Int = 1) throws(Failure) {
    let room = Self.room(on: paper)
    let size =
      size
      ?? stride(from: room.width, to: 10, by: -0.5).first { size in
        let label = Self.extent(of: labels, size: size)
        return label.width <= room.width && label.height <= room.height
      } ?? 10
    self.paper = paper
    self.size = size
    self.labels = labels.flatMap { Array(repeating: $0, count: copies) }
    let label = Self.extent(of: labels, size: size)
    columns = Int((room.width + Self.gap) / (label.width + Self.gap))
    rows = Int((room.height + Self.gap) / (label.height + Self.gap))
    guard columns > 0, rows > 0 else {
      let largest = min(room.width / label.width, room.height / label.height) * size
      throw .tooLarge(size: size, largest: largest.rounded(.down))
    }
  }

  var pdf: [UInt8] {
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
    let heading = labels.contains { $0.side != nil } ? Line.side.height(size) : 0
    return (width, heading + Line.title.height(size) + width + Line.instruction.height(size))
  }

  private static func room(on paper: Paper) -> (width: Double, height: Double) {
    (paper.size.width - 2 * margin, paper.size.height - 2 * margin - footer)
  }

  private enum Line {
    case side, title, instruction

    /// The font size in millimetres, as large as the code allows.
    func fontSize(_ size: Double) -> Double {
      switch self {
      case .side: size * 0.3
      case .title: min(size * 0.1, 12)
      case .instruction: min(size * 0.075, 8)
      }
    }

    /// Letters stand on the baseline; capitals are about 0.7 of the font size high, and descenders take 0.25.
    static let descent = 0.25

    /// The height with the space around it, millimetres. The word for the side has only capitals.
    func height(_ size: Double) -> Double { fontSize(size) * (self == .side ? 0.8 : 1 + Self.descent) }
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
    var drawing = ""
    var top = top
    if let side = label.side {
      let fontSize = Line.side.fontSize(size)
      let indent = (width - side.wordWidth * fontSize) / 2
      drawing += text(PDFText(ascii: side.word), "H", fontSize, left + indent, top - 0.73 * fontSize)
      top -= Line.side.height(size)
    }
    drawing += centred(label.title, .title, left: left, top: top, width: width)
    top -= Line.title.height(size)

    let module = size / Double(label.code.side)
    let edge = (width - size) / 2
    // Coordinates are in modules. The whole path is filled at once, without seams.
    drawing += "q \(module) 0 0 \(-module) \(decimal(left + edge)) \(decimal(top - edge)) cm\n"
    for run in label.code.runs { drawing += "\(run.columns.lowerBound) \(run.row) \(run.columns.count) 1 re " }
    return drawing + "f Q\n" + centred(label.instruction, .instruction, left: left, top: top - width, width: width)
  }

  /// A long line gets a smaller font, and is shortened where it would be too small to read.
  private func centred(_ text: PDFText, _ line: Line, left: Double, top: Double, width: Double) -> String {
    let largest = line.fontSize(size)
    let room = width / PDFDocument.characterWidth
    let fontSize = max(min(largest, room / Double(max(text.bytes.count, 1))), largest / 2)
    let text = text.truncated(to: Int(room / fontSize + 1e-9))
    let indent = (width - Double(text.bytes.count) * PDFDocument.characterWidth * fontSize) / 2
    return self.text(text, "F", fontSize, left + indent, top - largest)
  }

  private func text(_ text: PDFText, _ font: String, _ size: Double, _ left: Double, _ baseline: Double) -> String {
    "BT /\(font) \(decimal(size)) Tf \(decimal(left)) \(decimal(baseline)) Td \(text.hexadecimal) Tj ET\n"
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

  /// Lets people check whether their printer has scaled the page.
  private var ruler: String {
    let (left, bottom) = (Self.margin, Self.margin - 4)
    let text = PDFText(ascii: "100 mm: print at actual size")
    return "0.2 w\n" + line(from: (left, bottom), to: (left + 100, bottom))
      + line(from: (left, bottom - 1), to: (left, bottom + 1))
      + line(from: (left + 100, bottom - 1), to: (left + 100, bottom + 1))
      + self.text(text, "F", 3, left + 103, bottom - 1)
  }

  private func line(from: (x: Double, y: Double), to: (x: Double, y: Double)) -> String {
    "\(decimal(from.x)) \(decimal(from.y)) m \(decimal(to.x)) \(decimal(to.y)) l S\n"
  }
}

extension Side {
  fileprivate var word: String { rawValue.uppercased() }

  /// In multiples of the font size, for Helvetica-Bold (Adobe's metrics of the 14 standard fonts).
  fileprivate var wordWidth: Double {
    switch self {
    case .left: 0.611 + 0.667 + 0.611 + 0.611
    case .right: 0.722 + 0.278 + 0.778 + 0.722 + 0.611
    }
  }
}
