package import Domain

/// The allowed keys of a table, by their names in the file.
package protocol TOMLKey: Hashable, CaseIterable, Sendable, RawRepresentable where RawValue == String {}

/// A table with known keys. It can be created only if the table in the file has no other keys.
package struct TOMLTable<Key: TOMLKey>: Sendable {
  package let document: TOMLDocument
  /// The keys that lead to this table, such as `servo.steps.left`; empty for the document's own table.
  private let name: String
  private let isArrayElement: Bool
  package let line: Int?
  /// Whether the table is written in braces.
  package let isInline: Bool
  private let entries: ArraySlice<TOMLDocument.Node>

  package init(_ document: TOMLDocument) throws(ConfigurationError) {
    try self.init(document, document.nodes[0], name: "", isArrayElement: false)
  }

  private init(
    _ document: TOMLDocument, _ node: TOMLDocument.Node, name: String, isArrayElement: Bool
  ) throws(ConfigurationError) {
    self.document = document
    self.name = name
    self.isArrayElement = isArrayElement
    line = node.line
    isInline = node.isInline
    entries = document.nodes[node.children]
    var unknown: TOMLDocument.Node?
    for child in entries where Key(rawValue: child.key) == nil && child.line ?? 0 < unknown?.line ?? .max {
      unknown = child
    }
    if let unknown {
      let known = Key.allCases.map(\.rawValue)
      let hint =
        Spelling.nearest(to: unknown.key, among: known).map { "did you mean \(TOMLText.quoted($0))?" }
        ?? "expected \(alternatives(known))"
      throw error(at: unknown.line, "\(TOMLText.key(unknown.key)): unknown key, \(hint)")
    }
  }

  /// A key's entry. A linear search, because entries are few, and the Swift runtime must look up each new type of
  /// dictionary.
  private func node(_ key: Key) -> TOMLDocument.Node? { entries.first { $0.key == key.rawValue } }

  /// The value of a key; nil if the key is absent.
  package func optional<Value>(_ key: Key, _ form: TOMLForm<Value>) throws(ConfigurationError) -> Value? {
    guard let node = node(key) else { return nil }
    guard let value = form.read(node.value) else {
      throw mismatch(key, node, expected: form.expectation, found: form.describe(node.value))
    }
    return value
  }

  package func required<Value>(_ key: Key, _ form: TOMLForm<Value>) throws(ConfigurationError) -> Value {
    guard let value = try optional(key, form) else { throw missing(key) }
    return value
  }

  /// `[key]`, if it is there.
  package func table<Inner: TOMLKey>(
    _ key: Key, _ keys: Inner.Type = Inner.self
  ) throws(ConfigurationError) -> TOMLTable<Inner>? {
    guard let node = node(key) else { return nil }
    return try inner(node, name: extended(by: key), mismatch: key)
  }

  package func requiredTable<Inner: TOMLKey>(
    _ key: Key, _ keys: Inner.Type = Inner.self
  ) throws(ConfigurationError) -> TOMLTable<Inner> {
    guard let table = try table(key, keys) else {
      throw ConfigurationError(document.path, "[\(extended(by: key))] is missing")
    }
    return table
  }

  /// All `[[key]]`, in the order of the file.
  package func tables<Inner: TOMLKey>(
    _ key: Key, _ keys: Inner.Type = Inner.self
  ) throws(ConfigurationError) -> [TOMLTable<Inner>] {
    guard let node = node(key) else { return [] }
    guard case .array = node.value else {
      throw mismatch(key, node, expected: "[[\(extended(by: key))]]", found: node.value.description)
    }
    var tables: [TOMLTable<Inner>] = []
    for element in document.nodes[node.children] {
      tables.append(try inner(element, name: extended(by: key), isArrayElement: true, mismatch: key))
    }
    return tables
  }

  /// All `[key.ID]`, each for the step with that id, in the order of the file.
  package func stepTables<Inner: TOMLKey>(
    _ key: Key, _ keys: Inner.Type = Inner.self
  ) throws(ConfigurationError) -> [(step: StepID, table: TOMLTable<Inner>)] {
    guard let node = node(key) else { return [] }
    guard case .table = node.value else {
      throw mismatch(key, node, expected: "a table", found: node.value.description)
    }
    var tables: [(step: StepID, table: TOMLTable<Inner>)] = []
    for child in document.nodes[node.children].sorted(by: { $0.line ?? 0 < $1.line ?? 0 }) {
      let name = "\(extended(by: key)).\(TOMLText.key(child.key))"
      let table: TOMLTable<Inner> = try inner(child, name: name, mismatch: key)
      guard let id = StepID(child.key) else {
        throw table.error(
          "expected the id of a step, \(TOMLForm.stepID.expectation), found \(TOMLText.quoted(child.key))")
      }
      tables.append((id, table))
    }
    return tables
  }

  package var path: TOMLForm<String> { .path(in: document) }

  package func has(_ key: Key) -> Bool { node(key) != nil }

  package func isTable(_ key: Key) -> Bool { node(key)?.value == .table }

  package func line(of key: Key) -> Int? { node(key)?.line ?? line }

  /// The place of a key's value.
  package func place(of key: Key) -> Range<TOMLDocument.Position>? { node(key)?.place }

  /// An error about a key's value: `vehicle.toml:7: [[steps]] side: …`.
  package func error(_ key: Key, _ message: String, hint: String? = nil) -> ConfigurationError {
    error(at: line(of: key), "\(TOMLText.key(key.rawValue)): \(message)", hint: hint)
  }

  /// An error about the table itself.
  package func error(_ message: String) -> ConfigurationError { error(at: line, message) }

  /// The error for a missing key: it names the table and its line.
  package func missing(_ key: Key, because reason: String = "") -> ConfigurationError {
    error(at: line, "\(TOMLText.key(key.rawValue)) is missing\(reason)")
  }

  private func error(at line: Int?, _ message: String, hint: String? = nil) -> ConfigurationError {
    let title = isArrayElement ? "[[\(name)]] " : name.isEmpty ? "" : "[\(name)] "
    return ConfigurationError(document.path, line: line, title + message, hint: hint)
  }

  private func mismatch(
    _ key: Key, _ node: TOMLDocument.Node, expected: String, found: String
  ) -> ConfigurationError {
    error(at: node.line, "\(TOMLText.key(key.rawValue)): expected \(expected), found \(found)")
  }

  private func extended(by key: Key) -> String {
    let last = TOMLText.key(key.rawValue)
    return name.isEmpty ? last : "\(name).\(last)"
  }

  private func inner<Inner: TOMLKey>(
    _ node: TOMLDocument.Node, name: String, isArrayElement: Bool = false, mismatch key: Key
  ) throws(ConfigurationError) -> TOMLTable<Inner> {
    guard case .table = node.value else {
      throw mismatch(key, node, expected: "a table", found: node.value.description)
    }
    return try TOMLTable<Inner>(document, node, name: name, isArrayElement: isArrayElement)
  }
}
