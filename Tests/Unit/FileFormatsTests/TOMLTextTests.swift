import FileFormats
import Testing

@Suite("writing TOML")
struct TOMLTextTests {
  @Test("any text can be quoted, and reads the same")
  func quoting() throws {
    let scalars = (0...0x2FF).compactMap(Unicode.Scalar.init) + ["\u{2028}", "\u{FEFF}", "\u{10FFFF}"]
    for scalar in scalars {
      let text = "x\(scalar)y"
      let quoted = TOMLText.quoted(text)
      #expect(!quoted.unicodeScalars.contains(where: TOMLText.isControl))
      let document = try TOMLDocument(parsing: Array("\(quoted) = \(quoted)".utf8), path: "t.toml")
      #expect(document.nodes[1].key.unicodeScalars.elementsEqual(text.unicodeScalars))
      #expect(document.nodes[1].value == .string(text))
    }
  }

  @Test(
    "a key is bare where TOML allows it",
    arguments: [("a-B_9", "a-B_9"), ("", "\"\""), ("a.b", "\"a.b\""), ("é", "\"é\"")])
  func keys(key: String, written: String) {
    #expect(TOMLText.key(key) == written)
  }

  @Test(
    "numbers are written as people write them",
    arguments: [(5.0, "5"), (1.25, "1.25"), (0.1, "0.1"), (1e300, "1e+300")])
  func numbers(number: Double, written: String) {
    #expect(TOMLText.number(number) == written)
  }
}
