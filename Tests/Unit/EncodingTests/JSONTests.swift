import Encoding
import TestSupport
import Testing

@Suite("JSON") struct JSONTests {
  @Test("reads and writes every kind of value, members in their order")
  func roundTrip() throws {
    let text = #"{"z":[null,true,false,-7,0.25,"ä\"\\\n"],"a":{}}"#
    let value = try JSON(parsing: text.utf8)
    #expect(value["z"]?.array?[3] == .integer(-7))
    #expect(value["z"]?.array?[5].string == "ä\"\\\n")
    #expect(value.text == text)
  }

  @Test(
    "refuses what two readers could read in two ways",
    arguments: [
      #"{"a":1,"a":2}"#, #"{"a":1,"\u0061":2}"#, #"{"a":1} x"#, "01", "-", "1.", ".5", "1e", "+1", "nul", "", " ",
      "[1,]",
      #"{"a":1,}"#, #"{a:1}"#, "'a'", #""\x""#, "\"\n\"", #""\ud800""#, #""\ud800\u0041""#, #""\udc00""#, "[",
      "{\"a\"",
      "\u{FEFF}1", "NaN", #""\u00g0""#,
    ])
  func refuses(text: String) {
    #expect(throws: JSON.SyntaxError.self) { try JSON(parsing: text.utf8) }
  }

  @Test("refuses a repeated name also among so many that they are hashed", arguments: [2, 11, 12, 13, 40])
  func manyNames(count: Int) throws {
    let members = (0..<count).map { "\"m\($0)\":\($0)" }
    #expect(try JSON(parsing: "{\(members.joined(separator: ","))}".utf8).object?.count == count)
    for name in ["m0", "m\(count - 1)", "\\u006d\(count / 2)"] {
      let text = "{\((members + ["\"\(name)\":0"]).joined(separator: ","))}"
      #expect(throws: JSON.SyntaxError.self, "\(name)") { try JSON(parsing: text.utf8) }
    }
  }

  @Test("refuses every control character that is not escaped", arguments: 0..<0x20 as Range<UInt8>)
  func controls(byte: UInt8) throws {
    #expect(throws: JSON.SyntaxError.self) { try JSON(parsing: [0x22, byte, 0x22]) }
    #expect(try JSON(parsing: JSON.string(String(UnicodeScalar(byte))).bytes).string?.utf8.first == byte)
  }

  @Test("names are told apart that Unicode calls equivalent: a Kelvin sign is no K, and a composed letter no two")
  func equivalence() throws {
    for (name, other) in [("HPKE", "HP\u{212A}E"), ("\u{E4}", "a\u{308}")] {
      try #require(name == other, "equal to Swift")
      #expect(!identical(name, other) && identical(name, name))
      let value = try JSON(parsing: "{\"\(other)\":1}".utf8)
      #expect(value[name] == nil && value[other] == 1)
      #expect(try JSON(parsing: "{\"\(other)\":1,\"\(name)\":2}".utf8)[name] == 2)
    }
  }

  @Test("refuses bytes that are not UTF-8, overlong forms among them")
  func invalidUTF8() {
    for bytes: [UInt8] in [
      [0x22, 0xFF, 0x22], [0x22, 0xC0, 0xAF, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22], [0x22, 0xC3],
    ] {
      #expect(throws: JSON.SyntaxError.self) { try JSON(parsing: bytes) }
    }
  }

  @Test("says at which byte it stopped")
  func offset() {
    #expect(throws: JSON.SyntaxError(offset: 7, expected: "expected each name once")) {
      try JSON(parsing: #"{"a":1,"a":2}"#.utf8)
    }
  }

  @Test("nesting is limited, so that input cannot exhaust the stack")
  func depth() throws {
    let deep = String(repeating: "[", count: 100_000)
    #expect(throws: JSON.SyntaxError.self) { try JSON(parsing: deep.utf8) }
    _ = try JSON(parsing: (String(repeating: "[", count: 16) + String(repeating: "]", count: 16)).utf8)
    #expect(throws: JSON.SyntaxError.self) {
      try JSON(parsing: (String(repeating: "[", count: 17) + String(repeating: "]", count: 17)).utf8)
    }
  }

  @Test("surrogate pairs become one scalar, and numbers beyond 64 bits are not cut")
  func scalarsAndNumbers() throws {
    #expect(try JSON(parsing: #""\ud83d\ude97""#.utf8).string == "🚗")
    #expect(try JSON(parsing: "9223372036854775807".utf8) == .integer(.max))
    #expect(try JSON(parsing: "9223372036854775808".utf8) == .number(9_223_372_036_854_775_808))
    #expect(try JSON(parsing: "1.0".utf8).integer == nil)
    #expect(try JSON(parsing: "0".utf8) == .integer(0))
    #expect(try JSON(parsing: "-0".utf8).integer == nil)
  }

  @Test(
    "a number that is too large for this machine is JSON all the same: the text has one syntax, not one per machine",
    arguments: ["1e400", "-1E+400", String(repeating: "9", count: 5000)])
  func hugeNumbers(text: String) throws {
    let value = try JSON(parsing: #"{"x":\#(text)}"#.utf8)["x"]
    guard case .number(let number)? = value else {
      Issue.record("not a number")
      return
    }
    #expect(number.isInfinite)
  }

  @Test("control characters are written as escapes, those that steer a terminal included")
  func escapes() {
    #expect(JSON.string("\u{1B}[2J\u{9B}\u{7F}").text == #""\u001b[2J\u009b\u007f""#)
    // What ends a line for a program that reads line by line, or turns text around; a pair of units beyond U+FFFF.
    #expect(JSON.string("\u{2028}\u{85}\u{202E}\u{FEFF}\u{E0001}").text == #""\u2028\u0085\u202e\ufeff\udb40\udc01""#)
    let plain = "é—😀 \u{301}"
    #expect(JSON.string(plain).text == "\"\(plain)\"")
    #expect(JSON.rounded(0.4449, places: 2).text == "0.44")
    #expect(JSON.rounded(-0.001, places: 2).text == JSON.rounded(0, places: 2).text)
    #expect(JSON.rounded(.nan, places: 2).text == "null")
    #expect(JSON.rounded(1.7e308, places: 1) == .number(1.7e308))
  }

  @Test("any mutation of a valid text is read or refused, and what is read survives a round trip")
  func mutations() throws {
    let seed = Array(#"{"a":[1,-2.5e3,"\u00e4\n",{"b":null,"c":[true,false]}],"d":"𝄞"}"#.utf8)
    var generator = SplitMix(7)
    for _ in 0..<20_000 {
      var bytes = seed
      for _ in 0...Int(generator.next() % 4) {
        bytes[Int(generator.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: generator.next())
      }
      guard let value = try? JSON(parsing: bytes) else { continue }
      #expect(try JSON(parsing: value.bytes) == value)
    }
  }
}
