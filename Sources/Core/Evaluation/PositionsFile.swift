package import Domain

/// Where a capture was taken, as measured by a person.
package struct SurveyedPosition: Sendable {
  /// The capture's file: its name or the end of its path, with or without the extension.
  package let capture: String
  /// The side of the vehicle on which the receiver was.
  package let side: Side
  /// The distance from that side's step, along the ground, metres.
  package let distance: Double
  /// The place on the ground, metres, on axes that the surveyor chose.
  package let place: (x: Double, y: Double)?
  /// Whether a person stood between the step and the receiver.
  package let hasBody: Bool
  /// How it was recorded, in the surveyor's words: a device, a pocket, a tape.
  package let method: String?
  /// The line in the file, from 1.
  package let line: Int
}

/// Where captures were taken: CSV (RFC 4180) with a header line, as spreadsheets and statistics programs write it.
///
/// `capture`, `side` and `distance_m` are required; `x_m` with `y_m`, `body` and `method` are optional.
package enum PositionsFile {
  /// What is wrong, and on which line.
  package struct Flaw: Error, Equatable {
    package let line: Int
    /// Lower case, without a full stop.
    package let message: String
  }

  private enum Column: String, CaseIterable {
    case capture, side
    case distance = "distance_m"
    case x = "x_m"
    case y = "y_m"
    case body, method
  }

  /// The log-distance law has no level at 0 m, and nobody hears a beacon at a kilometre.
  private static let distances = 0.01...1000.0
  private static let coordinates = -10_000.0...10_000.0

  /// - Returns: at least one position; no two name the same capture.
  package static func read(_ bytes: [UInt8]) throws(Flaw) -> [SurveyedPosition] {
    // Excel writes this byte order mark before UTF-8.
    let bytes = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
    var columns: [Column]?
    var positions: [SurveyedPosition] = []
    var lines: [String: Int] = [:]
    for (index, line) in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
      let line = line.last == 0x0D ? line.dropLast() : line
      if line.isEmpty { continue }
      let fields = try split(line, index + 1)
      // Spreadsheets keep a row of empty cells.
      if fields.allSatisfy({ $0.allSatisfy(\.isWhitespace) }) { continue }
      guard let known = columns else {
        columns = try Self.columns(fields, index + 1)
        continue
      }
      let position = try Self.position(fields, known, index + 1)
      if let earlier = lines.updateValue(index + 1, forKey: position.capture) {
        throw Flaw(line: index + 1, message: "capture: \"\(position.capture)\" is in line \(earlier) already")
      }
      positions.append(position)
    }
    guard columns != nil else { throw Flaw(line: 1, message: "the line of column names is missing") }
    guard !positions.isEmpty else { throw Flaw(line: 1, message: "there is no position below the column names") }
    return positions
  }

  /// Splits a line into fields. A quoted field may contain commas and doubled quotes, but no line break.
  private static func split(_ line: ArraySlice<UInt8>, _ number: Int) throws(Flaw) -> [String] {
    let (comma, quote) = (UInt8(ascii: ","), UInt8(ascii: "\""))
    var fields: [[UInt8]] = []
    var rest = line
    while true {
      var field: [UInt8] = []
      if rest.first == quote {
        rest.removeFirst()
        while true {
          guard let byte = rest.popFirst() else { throw Flaw(line: number, message: "a quote has no end in this line") }
          if byte != quote {
            field.append(byte)
          } else if rest.first == quote {
            field.append(rest.removeFirst())
          } else {
            break
          }
        }
      } else {
        field = Array(rest.prefix { $0 != comma })
        if field.contains(quote) {
          throw Flaw(line: number, message: "a quote is inside a field: put all of it in quotes")
        }
        rest.removeFirst(field.count)
      }
      fields.append(field)
      guard let next = rest.popFirst() else { break }
      guard next == comma else { throw Flaw(line: number, message: "expected a comma after the quote") }
    }
    var texts: [String] = []
    for field in fields {
      guard let text = String(validating: field, as: UTF8.self) else { throw Flaw(line: number, message: "not UTF-8") }
      guard !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
        throw Flaw(line: number, message: "there is a control character in it")
      }
      texts.append(text)
    }
    return texts
  }

  private static func columns(_ names: [String], _ line: Int) throws(Flaw) -> [Column] {
    var columns: [Column] = []
    for name in names {
      guard let column = Column(rawValue: name) else {
        if name.contains(";") { throw Flaw(line: line, message: "columns are separated by commas, not by semicolons") }
        let known = Column.allCases.map(\.rawValue)
        let hint =
          Spelling.nearest(to: name, among: known).map { "did you mean \"\($0)\"?" }
          ?? "expected \(known.joined(separator: ", "))"
        throw Flaw(line: line, message: "\"\(name)\": unknown column, \(hint)")
      }
      if columns.contains(column) { throw Flaw(line: line, message: "the column \"\(name)\" is there twice") }
      columns.append(column)
    }
    for column in [Column.capture, .side, .distance] where !columns.contains(column) {
      throw Flaw(line: line, message: "the column \"\(column.rawValue)\" is missing")
    }
    if columns.contains(.x) != columns.contains(.y) {
      throw Flaw(line: line, message: "\"x_m\" and \"y_m\" need each other")
    }
    return columns
  }

  private static func position(
    _ fields: [String], _ columns: [Column], _ line: Int
  ) throws(Flaw) -> SurveyedPosition {
    guard fields.count == columns.count else {
      throw Flaw(line: line, message: "expected \(columns.count) fields, found \(fields.count)")
    }
    func flaw(_ column: Column, _ expected: String) -> Flaw {
      Flaw(line: line, message: "\(column.rawValue): expected \(expected), found \"\(text(column))\"")
    }
    func text(_ column: Column) -> String { columns.firstIndex(of: column).map { fields[$0] } ?? "" }
    func number(_ column: Column, _ range: ClosedRange<Double>, _ what: String) throws(Flaw) -> Double {
      let field = text(column)
      // Digits, and at most one dot between them.
      let digits = field.hasPrefix("-") ? field.dropFirst() : field[...]
      let parts = digits.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
      let isNumber = parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }
      guard isNumber, let value = Double(field), range.contains(value) else { throw flaw(column, what) }
      return value
    }
    let capture = text(.capture)
    guard !capture.isEmpty else { throw Flaw(line: line, message: "capture is missing") }
    guard let side = Side(rawValue: text(.side)) else { throw flaw(.side, "left or right") }
    var place: (x: Double, y: Double)?
    if !text(.x).isEmpty || !text(.y).isEmpty {
      place = (
        try number(.x, coordinates, "metres, as 1.5 or -1.5"), try number(.y, coordinates, "metres, as 1.5 or -1.5")
      )
    }
    let body = text(.body)
    guard ["", "no", "yes"].contains(body) else { throw flaw(.body, "yes or no") }
    let method = text(.method)
    return SurveyedPosition(
      capture: capture, side: side, distance: try number(.distance, distances, "0.01 to 1000 metres, as 1.5"),
      place: place, hasBody: body == "yes", method: method.isEmpty ? nil : method, line: line)
  }
}
