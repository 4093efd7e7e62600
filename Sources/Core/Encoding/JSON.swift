/// A JSON value (RFC 8259) whose objects keep the order of their members.
///
/// If two members have the same name, Foundation's decoder silently takes the last one, so two programs can read one
/// signed message differently. Here a repeated name is an error (as RFC 8725 demands for JWTs). So is everything that
/// RFC 8259 leaves open: lone surrogates, bytes after the value, deep nesting.
public enum JSON: Hashable, Sendable {
  case null
  case bool(Bool)
  /// A number without fraction or exponent that fits in 64 bits, and is not `-0`.
  case integer(Int64)
  /// Any other number. It is infinite if it is too large for a `Double`.
  case number(Double)
  case string(String)
  case array([JSON])
  case object([Member])

  /// A name and its value, in an object.
  public struct Member: Hashable, Sendable {
    public let name: String
    public let value: JSON

    public init(_ name: String, _ value: JSON) {
      self.name = name
      self.value = value
    }
  }

  /// The member with this name; nil if there is none, or if this is not an object.
  public subscript(name: String) -> JSON? {
    guard case .object(let members) = self else { return nil }
    return members.first { identical($0.name, name) }?.value
  }

  /// The value if it has this type, or else nil.
  public var string: String? { if case .string(let value) = self { value } else { nil } }
  public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
  public var array: [JSON]? { if case .array(let value) = self { value } else { nil } }
  public var object: [Member]? { if case .object(let value) = self { value } else { nil } }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
  public init(stringLiteral value: String) { self = .string(value) }
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  public init(integerLiteral value: Int64) { self = .integer(value) }
  public init(arrayLiteral elements: JSON...) { self = .array(elements) }
  public init(dictionaryLiteral elements: (String, JSON)...) {
    self = .object(elements.map { Member($0.0, $0.1) })
  }
  public init(nilLiteral: ()) { self = .null }

  /// A number with at most `places` decimals, such as metres and seconds in output; null if it is not finite. Zero has
  /// no sign.
  public static func rounded(_ value: Double?, places: Int) -> JSON {
    guard let value, value.isFinite else { return .null }
    var scale = 1.0
    for _ in 0..<places { scale *= 10 }
    let scaled = value * scale
    // Numbers this large have no decimals.
    return .number((scaled.isFinite ? scaled.rounded() / scale : value) + 0)
  }
}

/// Whether two texts are the same, scalar by scalar.
///
/// Swift's `==` treats canonically equivalent texts as equal: `HP\u{212A}E` with a Kelvin sign equals `HPKE`. Signed
/// text must not be compared that way (RFC 8259 8.3).
public func identical(_ a: String, _ b: String) -> Bool {
  a.utf8.count == b.utf8.count && a.utf8.elementsEqual(b.utf8)
}
