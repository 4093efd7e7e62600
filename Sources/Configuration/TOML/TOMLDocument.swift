import CTOML
import Glibc
import SystemIO

/// A parsed TOML 1.0 document and the file that it came from.
struct TOMLDocument: Sendable {
  /// A key with its value, or an element of an array.
  struct Node: Sendable {
    let key: String
    let value: TOMLValue
    /// Where the value, or the table's header, begins; nil for the document itself.
    let line: Int?
    /// The nodes in a table or an array.
    let children: Range<Int>
  }

  /// Configuration is written by hand, so that a larger file is another kind of file.
  static let maximumSize = 65_536

  let path: String
  /// The document's table is the first.
  let nodes: [Node]

  /// A path in the file as seen from the working folder.
  func resolve(_ path: String) -> String {
    let folder = Files.parent(of: self.path)
    return folder == "." ? path : Files.resolve(path, in: folder)
  }

  init(reading path: String) throws(ConfigurationError) {
    let bytes: [UInt8]
    do throws(SystemError) {
      bytes = try Files.read(path, limit: Self.maximumSize)
    } catch {
      throw error.code == EFBIG ? Self.tooLarge(path) : ConfigurationError(path, error)
    }
    try self.init(parsing: bytes, path: path)
  }

  init(parsing bytes: [UInt8], path: String) throws(ConfigurationError) {
    guard bytes.count <= Self.maximumSize else { throw Self.tooLarge(path) }
    let document = bytes.withUnsafeBytes { ctoml_parse($0.baseAddress?.assumingMemoryBound(to: CChar.self), $0.count) }
    defer { ctoml_free(document) }
    if let error = ctoml_get_error(document)?.pointee {
      throw ConfigurationError(
        path, line: Int(error.line), "not TOML, column \(error.column): \(Self.sentence(String(error.description)))")
    }

    var count = 0
    let parsed = UnsafeBufferPointer(start: ctoml_get_nodes(document, &count), count: count)
    var values = [TOMLValue](repeating: .table, count: count)
    // Children come after their parents: backwards, the elements of an array are known before it.
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
        key: String(node.key), value: value, line: node.line == 0 ? nil : Int(node.line), children: node.children)
    }
  }

  private static func tooLarge(_ path: String) -> ConfigurationError {
    ConfigurationError(path, "larger than \(maximumSize / 1024) KiB")
  }

  /// The parser's words, which begin with a capital and may repeat a key with whatever it holds.
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
}
