extension JSON {
  /// Why bytes are not a JSON value, and at which byte the error is.
  public struct SyntaxError: Error, Equatable, CustomStringConvertible {
    /// The offset of the wrong byte.
    public let offset: Int
    /// What was expected or found there: a phrase for people.
    public let expected: String

    public init(offset: Int, expected: String) {
      self.offset = offset
      self.expected = expected
    }

    public var description: String { "not JSON at byte \(offset): \(expected)" }
  }

  /// Parses one value, which only white space may follow.
  ///
  /// - Parameter maximumDepth: how deep arrays and objects may nest, so that input cannot exhaust the stack.
  public init(parsing bytes: some Sequence<UInt8>, maximumDepth: Int = 16) throws(SyntaxError) {
    var parser = JSONParser(bytes: Array(bytes))
    parser.skipSpace()
    self = try parser.value(depth: maximumDepth)
    parser.skipSpace()
    if parser.position < parser.bytes.count { throw parser.error("the end") }
  }
}

private struct JSONParser {
  let bytes: [UInt8]
  var position = 0

  init(bytes: [UInt8]) { self.bytes = bytes }

  func error(_ expected: String) -> JSON.SyntaxError {
    JSON.SyntaxError(offset: position, expected: "expected \(expected)")
  }

  var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  mutating func skipSpace() {
    while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { position += 1 }
  }

  mutating func take(_ byte: Unicode.Scalar) -> Bool {
    guard next == UInt8(ascii: byte) else { return false }
    position += 1
    return true
  }

  mutating func value(depth: Int) throws(JSON.SyntaxError) -> JSON {
    guard let byte = next else { throw error("a value") }
    switch Unicode.Scalar(byte) {
    case "{": return try object(depth: depth)
    case "[": return try array(depth: depth)
    case "\"": return .string(try string())
    case "t": return try word("true", .bool(true))
    case "f": return try word("false", .bool(false))
    case "n": return try word("null", .null)
    case "-", "0"..."9": return try number()
    default: throw error("a value")
    }
  }

  mutating func word(_ word: String, _ value: JSON) throws(JSON.SyntaxError) -> JSON {
    guard bytes[position...].starts(with: word.utf8) else { throw error(word) }
    position += word.utf8.count
    return value
  }

  mutating func object(depth: Int) throws(JSON.SyntaxError) -> JSON {
    guard depth > 0 else { throw error("less nesting") }
    position += 1
    var members: [JSON.Member] = []
    var names: Set<[UInt8]> = []
    /// There are usually so few names that comparing all of them is faster than hashing.
    func isRepeated(_ name: String) -> Bool {
      if members.count < 12 { return members.contains { identical($0.name, name) } }
      if names.isEmpty { names = Set(members.lazy.map { Array($0.name.utf8) }) }
      return !names.insert(Array(name.utf8)).inserted
    }
    skipSpace()
    if take("}") { return .object([]) }
    while true {
      skipSpace()
      guard next == 0x22 else { throw error("a name") }
      let start = position
      let name = try string()
      guard !isRepeated(name) else {
        position = start
        throw error("each name once")
      }
      skipSpace()
      guard take(":") else { throw error("':'") }
      skipSpace()
      members.append(JSON.Member(name, try value(depth: depth - 1)))
      skipSpace()
      if take("}") { return .object(members) }
      guard take(",") else { throw error("',' or '}'") }
    }
  }

  mutating func array(depth: Int) throws(JSON.SyntaxError) -> JSON {
    guard depth > 0 else { throw error("less nesting") }
    position += 1
    var values: [JSON] = []
    skipSpace()
    if take("]") { return .array([]) }
    while true {
      skipSpace()
      values.append(try value(depth: depth - 1))
      skipSpace()
      if take("]") { return .array(values) }
      guard take(",") else { throw error("',' or ']'") }
    }
  }

  mutating func string() throws(JSON.SyntaxError) -> String {
    position += 1
    let start = position
    var isASCII = true
    while let byte = next, byte != 0x22, byte != 0x5C, byte >= 0x20 {
      isASCII = isASCII && byte < 0x80
      position += 1
    }
    if next == 0x22 {
      // Without escapes, which are rare, the text is these bytes. ASCII, the usual case, is UTF-8 without a check.
      let content = bytes[start..<position]
      let valid = isASCII ? String(decoding: content, as: UTF8.self) : String(validating: content, as: UTF8.self)
      guard let text = valid else { throw error("UTF-8") }
      position += 1
      return text
    }
    var content = Array(bytes[start..<position])
    while let byte = next {
      switch byte {
      case 0x22:
        guard let text = String(validating: content, as: UTF8.self) else { throw error("UTF-8") }
        position += 1
        return text
      case 0x5C:
        position += 1
        try escape(into: &content)
      case 0..<0x20:
        throw error("an escaped control character")
      default:
        content.append(byte)
        position += 1
      }
    }
    throw error("'\"'")
  }

  mutating func escape(into content: inout [UInt8]) throws(JSON.SyntaxError) {
    guard let byte = next else { throw error("an escape") }
    position += 1
    switch Unicode.Scalar(byte) {
    case "\"", "\\", "/": content.append(byte)
    case "b": content.append(0x08)
    case "f": content.append(0x0C)
    case "n": content.append(0x0A)
    case "r": content.append(0x0D)
    case "t": content.append(0x09)
    case "u":
      var code = try hexadecimal()
      if code & 0xFC00 == 0xD800 {
        guard take("\\"), take("u") else { throw error("the second half of a surrogate pair") }
        let low = try hexadecimal()
        guard low & 0xFC00 == 0xDC00 else { throw error("the second half of a surrogate pair") }
        code = 0x10000 + (code & 0x3FF) << 10 + (low & 0x3FF)
      }
      guard let scalar = UnicodeScalar(code) else { throw error("a Unicode scalar") }
      content += Array(String(Character(scalar)).utf8)
    default: throw error("an escape")
    }
  }

  mutating func hexadecimal() throws(JSON.SyntaxError) -> UInt32 {
    var code: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = next.flatMap(hexadecimalDigit) else {
        throw error("four hexadecimal digits")
      }
      code = code << 4 | UInt32(digit)
      position += 1
    }
    return code
  }

  mutating func digits() -> Int {
    let start = position
    while let byte = next, (0x30...0x39).contains(byte) { position += 1 }
    return position - start
  }

  mutating func number() throws(JSON.SyntaxError) -> JSON {
    let start = position
    var isInteger = true
    _ = take("-")
    let leadingZero = next == 0x30
    let count = digits()
    guard count > 0 else { throw error("a digit") }
    guard !leadingZero || count == 1 else { throw error("no leading zero") }
    if take(".") {
      isInteger = false
      guard digits() > 0 else { throw error("a digit") }
    }
    if take("e") || take("E") {
      isInteger = false
      if !take("+") { _ = take("-") }
      guard digits() > 0 else { throw error("a digit") }
    }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    // `-0` is not an integer: some readers would drop its sign, and others would not.
    if isInteger, let value = Int64(text), value != 0 || bytes[start] != 0x2D { return .integer(value) }
    // A number too large for a Double is still JSON, and becomes infinite. No reader accepts that as a value. (Double
    // of a String makes a Substring too, but by generic code.)
    guard let value = Double(Substring(text)) else { throw error("a number") }
    return .number(value)
  }
}
