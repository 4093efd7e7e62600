// The parts of Foundation's essentials that swift-argument-parser 1.8 uses: a protocol for errors, and an encoder with
// which a command describes itself. (stepctl searches this description for what a mistyped word may mean.) `make`
// compiles the programs against this module: the real one would add 4 MB and 2,000 protocol conformances, which the
// runtime searches at each start.

public protocol LocalizedError: Error {
  var errorDescription: String? { get }
}

public struct Data {
  fileprivate let text: String
}

extension String {
  public struct Encoding: Sendable {
    public static let utf8 = Encoding()
  }

  public init?(data: Data, encoding: Encoding) { self = data.text }
}

/// Writes objects, arrays, strings, whole numbers and booleans.
public final class JSONEncoder {
  /// Neither option changes the meaning of the output.
  public struct OutputFormatting: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static let prettyPrinted = OutputFormatting(rawValue: 1)
    public static let sortedKeys = OutputFormatting(rawValue: 2)
  }

  public var outputFormatting: OutputFormatting = []

  public init() {}

  public func encode(_ value: some Encodable) throws -> Data {
    let node = Node()
    try node.take(value)
    return Data(text: node.text)
  }
}

private final class Node: Encoder {
  private enum Value {
    case text(String)
    case list([Node])
    case object([(name: String, value: Node)])
  }

  private var value = Value.text("null")

  let codingPath: [any CodingKey] = []
  let userInfo: [CodingUserInfoKey: Any] = [:]

  func take(_ new: some Encodable) throws {
    switch new {
    case let text as String: value = .text(Self.quoted(text))
    case let bool as Bool: value = .text(bool ? "true" : "false")
    case let number as any BinaryInteger: value = .text("\(number)")
    default: try new.encode(to: self)
    }
  }

  func member(_ name: String) -> Node {
    let new = Node()
    if case .object(let members) = value { value = .object(members + [(name, new)]) }
    return new
  }

  func item() -> Node {
    let new = Node()
    if case .list(let items) = value { value = .list(items + [new]) }
    return new
  }

  var count: Int { if case .list(let items) = value { items.count } else { 0 } }

  var text: String {
    switch value {
    case .text(let text): text
    case .list(let items): "[\(items.map(\.text).joined(separator: ","))]"
    case .object(let members):
      "{\(members.map { "\(Self.quoted($0.name)):\($0.value.text)" }.joined(separator: ","))}"
    }
  }

  /// RFC 8259, section 7.
  private static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": quoted += "\\\(scalar)"
      case "\u{0}"..<"\u{20}":
        let digits = String(scalar.value, radix: 16)
        quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    value = .object([])
    return KeyedEncodingContainer(Members(node: self))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    value = .list([])
    return Items(node: self)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { Single(node: self) }
}

private struct Members<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let node: Node
  let codingPath: [any CodingKey] = []

  func encodeNil(forKey key: Key) { _ = node.member(key.stringValue) }
  func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws { try node.member(key.stringValue).take(value) }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type, forKey key: Key
  ) -> KeyedEncodingContainer<NestedKey> {
    node.member(key.stringValue).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    node.member(key.stringValue).unkeyedContainer()
  }

  func superEncoder() -> any Encoder { node.member("super") }
  func superEncoder(forKey key: Key) -> any Encoder { node.member(key.stringValue) }
}

private struct Items: UnkeyedEncodingContainer {
  let node: Node
  let codingPath: [any CodingKey] = []
  var count: Int { node.count }

  func encodeNil() { _ = node.item() }
  func encode<Value: Encodable>(_ value: Value) throws { try node.item().take(value) }

  func nestedContainer<NestedKey: CodingKey>(keyedBy type: NestedKey.Type) -> KeyedEncodingContainer<NestedKey> {
    node.item().container(keyedBy: type)
  }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { node.item().unkeyedContainer() }
  func superEncoder() -> any Encoder { node.item() }
}

private struct Single: SingleValueEncodingContainer {
  let node: Node
  let codingPath: [any CodingKey] = []

  func encodeNil() {}
  func encode<Value: Encodable>(_ value: Value) throws { try node.take(value) }
}
