import Testing

@testable import FileFormats

@Suite("TOML 1.0")
struct TOMLDocumentTests {
  private func parse(_ bytes: [UInt8]) throws -> TOMLDocument { try TOMLDocument(parsing: bytes, path: "t.toml") }
  private func parse(_ text: String) throws -> TOMLDocument { try parse(Array(text.utf8)) }

  /// The value of the first key.
  private func value(_ text: String) throws -> TOMLValue { try #require(try parse(text).nodes.dropFirst().first).value }

  @Test(
    "values",
    arguments: [
      (#"a = "\t\u00e9\U0001F690\\""#, .string("\té🚐\\")), ("a = 'C:\\n'", .string("C:\\n")),
      ("a = \"\"\"\none\\\n   two\"\"\"", .string("onetwo")), ("a = '''\none\ntwo'''", .string("one\ntwo")),
      ("a = \"x\\u0000y\"", .string("x\0y")), ("a = +1_000", .integer(1000)),
      ("a = 0xdead_beef", .integer(0xDEAD_BEEF)),
      ("a = 0o17", .integer(15)), ("a = 0b101", .integer(5)), ("a = -9223372036854775808", .integer(.min)),
      ("a = 6.5e-3", .float(0.0065)), ("a = -inf", .float(-.infinity)), ("a = false", .boolean(false)),
      ("a = 1979-05-27T07:32:00Z", .dateOrTime), ("a = 1979-05-27", .dateOrTime), ("a = 07:32:00.5", .dateOrTime),
      (
        "a = [1, [\"x\", true], # comment\n 2,]",
        .array([.integer(1), .array([.string("x"), .boolean(true)]), .integer(2)])
      ),
      ("a = {}", .table), ("[[a]]", .array([.table])), ("\u{FEFF}a = 1", .integer(1)), ("a = 1\r\n", .integer(1)),
      ("\"\" = 1", .integer(1)), ("'a b' = 1", .integer(1)),
    ] as [(String, TOMLValue)])
  func values(text: String, expected: TOMLValue) throws {
    #expect(try value(text) == expected)
  }

  @Test("a document without keys is a table without keys", arguments: ["", "\n", "# comment", "\u{FEFF}"])
  func empty(text: String) throws {
    #expect(try parse(text).nodes.count == 1)
  }

  @Test("every node knows its line")
  func lines() throws {
    let document = try parse(
      """
      # comment
      a.b = 1
      c = [
        1,

        2]
      d = '''
      x
      '''
      [e.f]
      g = 1
      [e]
      [[h]]
      [[h]]
      i = {
      """.dropLast().description + "{ j = 1 }\n")
    func line(_ keys: String...) -> Int? {
      var node = document.nodes[0]
      for key in keys {
        let children = document.nodes[node.children]
        guard let next = Int(key).map({ Array(children)[$0] }) ?? children.first(where: { $0.key == key }) else {
          return nil
        }
        node = next
      }
      return node.line
    }
    #expect(line() == nil)
    #expect(line("a") == 2 && line("a", "b") == 2)
    #expect(line("c") == 3 && line("c", "0") == 4 && line("c", "1") == 6)
    #expect(line("d") == 7)
    #expect(line("e") == 12 && line("e", "f") == 10 && line("e", "f", "g") == 11)
    #expect(line("h", "0") == 13 && line("h", "1") == 14 && line("h", "1", "i", "j") == 15)
  }

  @Test(
    "every value knows where it is written, whatever stands before it",
    arguments: [
      "a = §1§", "a = §-1_000§ # 1", "\u{FEFF}a = §'x'§\r\n", "\"é🚐\" = §\"é\"§ # é",
      "# é\n\n'ü' . b = §true§", "a = { 'é' = 'é', b = §0x1F§ }", "a = ['é', §[ 1,\n2 # ]\n]§ ]",
      "a = §\"\"\"\né\\\n  \"\"\"§ # x", "a = §'''\r\n]\r\n'''§\r\n", "a = §1979-05-27 07:32:00Z§ # x",
      "a = §{ b = 1 }§ # }", "a = §6.5e-3§\t", "[a]\nb = §[]§", "[[a]]\nb = §[\r\n  \"x\",\r\n]§\r\n",
      String(repeating: "# ééééé\n", count: 20)
        + "\(String(repeating: "a", count: 40)) = §'\(String(repeating: "🚐", count: 40))'§",
    ])
  func places(marked: String) throws {
    let parts = marked.split(separator: "§", omittingEmptySubsequences: false)
    let bytes = Array(parts.joined().utf8)
    let places = try parse(bytes).nodes.compactMap(\.place)
    let texts = places.map { String(decoding: bytes[bytes.range(of: $0)], as: UTF8.self) }
    #expect(texts.contains(String(parts[1])), "\(texts)")
  }

  @Test(
    "what is not TOML is refused with its place",
    arguments: [
      (
        "a = 1\na = 2\n",
        "t.toml:2: not TOML, column 5: error while parsing key-value pair: cannot redefine existing integer 'a'"
      ),
      (
        "[a]\n[a]\n",
        "t.toml:2: not TOML, column 1: error while parsing table header: cannot redefine existing table 'a'"
      ),
      (
        "a.b = 1\n[a]\n",
        "t.toml:2: not TOML, column 1: error while parsing table header: cannot redefine existing table 'a'"
      ),
      ("a = \"x\n", "t.toml:1: not TOML, column 7: error while parsing string: "),
      ("a = 01", "t.toml:1: not TOML, column 7: error while parsing decimal integer: leading zeroes are prohibited"),
      ("a = 9223372036854775808", "t.toml:1: not TOML, column 24: error while parsing decimal integer: "),
      ("a = 1 b = 2", "t.toml:1: not TOML, column 7: "), ("a = 1\rb = 2", "t.toml:1: not TOML, column 7: "),
      ("a", "t.toml:1: not TOML, column 2: "), ("a =", "t.toml:1: not TOML, column 4: "),
      ("= 1", "t.toml:1: not TOML, column 1: "), ("a = {b = 1,}", "t.toml:1: not TOML, column 12: "),
      ("a = \"\\uD800\"", "t.toml:1: not TOML, column 12: "), ("é = 1", "t.toml:1: not TOML, column 1: "),
      ("[&", "t.toml:1: not TOML, column 2: "), ("a = \"\"\"\\\n§\"\"\"", nil),
      ("\"\\u001b[2J\" = 1\n\"\\u001b[2J\" = 1\n", "t.toml:2: not TOML, column 15: "),
    ] as [(String, String?)])
  func refused(text: String, expected: String?) throws {
    let message = complaint { _ = try parse(text) }
    if let expected {
      let message = try #require(message)
      #expect(message.hasPrefix(expected))
      #expect(!message.unicodeScalars.contains(where: TOMLText.isControl))
    } else {
      #expect(message == nil)
    }
  }

  @Test(
    "bytes that are no text are refused",
    arguments: [
      [0x00], Array("a = 1\0".utf8), Array("a = \"\0\"".utf8), Array("# \0".utf8), [0xFF, 0xFE, 0x61, 0x00],
      Array("a = \"".utf8) + [0xC3, 0x28, 0x22], Array("# ".utf8) + [0xFF],
      Array("a = \"".utf8) + [0xED, 0xA0, 0x80, 0x22],
      Array("a = \"".utf8) + [0xC0, 0x80, 0x22], Array("a = \"".utf8) + [0xF4, 0x90, 0x80, 0x80, 0x22], [0xEF, 0xBB],
      Array("a = \"\u{7F}\"".utf8),
    ] as [[UInt8]])
  func notText(bytes: [UInt8]) {
    #expect(complaint { _ = try parse(bytes) }?.hasPrefix("t.toml:1: not TOML, column ") == true)
  }

  @Test("depth and size are bounded, so that no file exhausts the stack")
  func bounds() throws {
    let deep = String(repeating: "a.", count: 500) + "a"
    #expect(try parse("[\(deep)]\n\(deep) = 1\n").nodes.count == 1003)
    // A mistake at the end frees all of it on another way.
    #expect(throws: ConfigurationError.self) { try parse("[\(deep)]\n\(deep) = 1\n!") }
    let long = "t.toml:2: not TOML, column 1025: the line is longer than 1024 bytes"
    #expect(complaint { _ = try parse("\n" + String(repeating: "a.", count: 30_000) + "a = 1") } == long)
    #expect(complaint { _ = try parse("\na = \"\(String(repeating: "x", count: 1019))\"") } == long)
    #expect(
      try parse("\na = \"\(String(repeating: "x", count: 1018))\"\n").nodes.count == 2)
    for opening in ["[", "[\n", "{a=", "[[", "\"", "'''\n", "[{a=[\n"] {
      #expect(throws: ConfigurationError.self) {
        try parse("a = " + String(repeating: opening, count: 60_000 / opening.utf8.count))
      }
    }
    let many = (0..<6000).map { "a\($0) = 1\n" }.joined()
    #expect(try parse(many).nodes.count == 6001)
  }
}
