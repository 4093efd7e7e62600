import CTOML
import SystemIO

/// A parsed TOML 1.0 document and its file.
package struct TOMLDocument: Sendable {
  /// A key with its value, or an element of an array.
  package struct Node: Sendable {
    package let key: String
    package let value: TOMLValue
    /// The place of the value, or of the header of a table that has one. Nil for the document itself.
    package let place: Range<Position>?
    /// Whether it is a table in braces.
    package let isInline: Bool
    /// The nodes in a table or an array.
    package let children: Range<Int>

    package var line: Int? { place?.lowerBound.line }
  }

  /// A place in the text. Lines and columns start at 1; a column is a code point.
  package struct Position: Comparable, Sendable {
    package let line: Int
    package let column: Int

    package static func < (a: Position, b: Position) -> Bool { (a.line, a.column) < (b.line, b.column) }
  }

  /// People write configuration by hand, so a larger file is not a configuration.
  package static let maximumSize = 65_536

  package let path: String
  /// The first node is the document's own table.
  package let nodes: [Node]

  /// An error about a key, such as `["policy", "static"]`, with its line; without a line if the file has no such key.
  package func error(at key: [String], _ message: String) -> ConfigurationError {
    var node = nodes[0]
    for name in key {
      guard let next = nodes[node.children].first(where: { $0.key == name }) else {
        return ConfigurationError(path, message)
      }
      node = next
    }
    return ConfigurationError(path, line: node.line, message)
  }

  /// Converts a path in the file to a path relative to the working folder.
  package func resolve(_ path: String) -> String {
    let folder = Files.parent(of: self.path)
    return folder == "." ? path : Files.resolve(path, in: folder)
  }

  package init(reading path: String) throws {
    try self.init(parsing: Files.readRegular(path), path: path)
  }

  package init(parsing bytes: [UInt8], path: String) throws(ConfigurationError) {
    guard bytes.count <= Self.maximumSize else {
      throw ConfigurationError(path, "larger than \(Self.maximumSize / 1024) KiB")
    }
    let document = bytes.withUnsafeBytes { ctoml_parse($0.baseAddress?.assumingMemoryBound(to: CChar.self), $0.count) }
    defer { ctoml_free(document) }
    if let error = ctoml_get_error(document)?.pointee {
      throw ConfigurationError(
        path, line: Int(error.place.line),
        "not TOML, column \(error.place.column): \(Self.sentence(String(error.description)))")
    }

    var count = 0
    let parsed = UnsafeBufferPointer(start: ctoml_get_nodes(document, &count), count: count)
    var values = [TOMLValue](repeating: .table, count: count)
    // Children come after their parents. In reverse order, the elements of an array are known before the array.
    for (index, node) in parsed.enumerated().reversed() {
      values[index] =
        switch node.kind {
        case CTOML_STRING: .string(String(node.string))
        case CTOML_INTEGER: .integer(node.integer)
        case CTOML_FLOAT: .float(node.real)
        case CTOML_BOOLEAN: .boolean(node.integer != 0)
        case CTOML_ARRAY: .array(Array(values[node.children]))
        case CTOML_TABLE: .table
        default: .dateOrTime
        }
    }
    self.path = path
    nodes = zip(parsed, values).map { node, value in
      Node(
        key: String(node.key), value: value, place: node.begin.line == 0 ? nil : node.place, isInline: node.is_inline,
        children: node.children)
    }
  }

  /// The parser's message, which begins with a capital and may repeat any character of a key.
  private static func sentence(_ description: String) -> String {
    let scalars = description.unicodeScalars.map { TOMLText.isControl($0) ? "\u{FFFD}" : $0 }
    let text = String(String.UnicodeScalarView(scalars))
    return text.prefix(1).lowercased() + text.dropFirst()
  }
}

extension String {
  fileprivate init(_ text: ctoml_text) {
    self.init(decoding: UnsafeRawBufferPointer(start: text.bytes, count: text.count), as: UTF8.self)
  }
}

extension ctoml_node {
  fileprivate var children: Range<Int> { first_child..<first_child + child_count }

  fileprivate var place: Range<TOMLDocument.Position> {
    let begin = TOMLDocument.Position(line: Int(begin.line), column: Int(begin.column))
    return begin..<max(begin, TOMLDocument.Position(line: Int(end.line), column: Int(end.column)))
  }
}

/// A value in a TOML document.
package enum TOMLValue: Equatable, Sendable {
  case string(String)
  case integer(Int64)
  case float(Double)
  case boolean(Bool)
  case dateOrTime
  case array([TOMLValue])
  /// A `TOMLTable` reads its content.
  case table

  /// The value as shown in an error: short and on one line.
  package var description: String {
    switch self {
    case .string(let text):
      text.count <= 40 ? TOMLText.quoted(text) : TOMLText.quoted(text.prefix(40)) + "…"
    case .integer(let value): String(value)
    case .float(let value): TOMLText.number(value)
    case .boolean(let value): String(value)
    case .dateOrTime: "a date or time"
    case .array(let values): values.isEmpty ? "an empty array" : "an array"
    case .table: "a table"
    }
  }
}
