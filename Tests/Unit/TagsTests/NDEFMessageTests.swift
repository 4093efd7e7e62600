import Encoding
import NDEF
import TestSupport
import Testing

@Suite("NDEF messages") struct NDEFMessageTests {
  static let android = Fixtures.json("ndef/android.json")
  static let ndeflib = Fixtures.json("ndef/ndeflib.json").array!

  @Test("a payload of 255 bytes has a length of one byte, a longer one of four", arguments: [254, 255, 256, 257])
  func lengths(count: Int) throws {
    let record = NDEFRecord(.media, type: hex("61"), payload: [UInt8](repeating: 7, count: count))
    let bytes = NDEFMessage([record]).bytes
    let header = count < 256 ? hex("d201") + [UInt8(count)] : hex("c201 0000 01") + [UInt8(count - 256)]
    #expect(bytes == header + hex("61") + record.payload)
    #expect(try NDEFMessage(parsing: bytes).records == [record])
    // The long form is right for any.
    let long = hex("c201 0000") + [UInt8(count >> 8), UInt8(count & 0xFF)] + bytes.suffix(count + 1)
    #expect(try NDEFMessage(parsing: long).records == [record])
  }

  @Test("refuses what Android's tests have malformed", arguments: android["malformed"]!.array!.map(\.string!))
  func malformed(bytes: String) {
    #expect { try NDEFMessage(parsing: hex(bytes)) } throws: {
      if case .malformedMessage = $0 as? NDEFError { true } else { false }
    }
  }

  @Test("reads what Android's tests have valid", arguments: android["valid"]!.array!.map(\.string!))
  func valid(bytes: String) throws {
    let message = try NDEFMessage(parsing: hex(bytes))
    #expect(try NDEFMessage(parsing: message.bytes) == message)
  }

  @Test("has all of Android's vectors")
  func count() {
    #expect(Self.android["malformed"]!.array!.count == 17)
    #expect(Self.android["valid"]!.array!.count == 28)
  }

  @Test("encodes and decodes as ndeflib does", arguments: ndeflib)
  func asNDEFLib(entry: JSON) throws {
    let bytes = hex(entry["bytes"]!.string!)
    let message = try NDEFMessage(parsing: bytes)
    let record = message.records[0]
    switch entry["kind"]!.string! {
    case "text":
      let text = NDEFText(entry["text"]!.string!, language: entry["language"]!.string!)
      #expect(try NDEFText(record) == text)
      if entry["encoding"] == "UTF-8" { #expect(NDEFMessage([text.record]).bytes == bytes) }
    case "uri":
      let uri = NDEFURI(entry["uri"]!.string!)
      #expect(try NDEFURI(record) == uri)
      #expect(NDEFMessage([uri.record]).bytes == bytes)
    case "several":
      #expect(try NDEFURI(record)?.uri == "tel:1")
      #expect(try NDEFText(message.records[1])?.text == "a")
      #expect(message.records[2] == NDEFRecord(.unknown, payload: Array("z".utf8)))
    default:
      #expect(record.payload == hex(entry["payload"]!.string!))
      #expect(record.id == Array(entry["id"]!.string!.utf8))
      let name = entry["type"]!.string!
      let expected: (NDEFRecord.TypeName, String) =
        switch name {
        case "": (.empty, "")
        case "unknown": (.unknown, "")
        case "urn:nfc:ext:android.com:pkg": (.external, "android.com:pkg")
        default: (name.hasPrefix("http") ? .absoluteURI : .media, name)
        }
      #expect(record.typeName == expected.0 && record.type == Array(expected.1.utf8))
    }
    #expect(message.bytes == bytes)
  }

  @Test("puts the chunks of a record together")
  func chunks() throws {
    let message = try NDEFMessage(
      parsing: hex("b40101 21 01 360002 0203 160001 04 100000 320102 21 0b0c 360001 0d 560001 0e"))
    #expect(
      message.records == [
        NDEFRecord(.external, type: [0x21], payload: [1, 2, 3, 4]), .empty,
        NDEFRecord(.media, type: [0x21], payload: [0x0B, 0x0C, 0x0D, 0x0E]),
      ])
  }

  @Test(
    "says at which byte it is malformed, and how",
    arguments: [
      ("", 0, "a record's header takes 1 bytes of 0"),
      ("d10105", 3, "a type takes 1 bytes of 0"),
      ("c10104ffffff 54", 7, "a payload takes 83886079 bytes of 0"),
      ("91010054 56000054", 4, "a chunk without a beginning"),
      ("91010054 d1010054", 4, "a second beginning"),
      ("91010054 51010054 00", 8, "1 more bytes behind the last record"),
      ("b1010054 51010054", 4, "a chunked record is not continued"),
      ("b1010054 76000054", 4, "the message ends within a chunked record"),
      ("b1010054 5e000000", 4, "a chunk with a type or an ID of its own"),
      ("b1010054 56010054", 4, "a chunk with a type or an ID of its own"),
      ("b00000 560000", 0, "an empty record that is not empty"),
      ("d00001 00", 0, "an empty record that is not empty"),
      ("d50100 00", 0, "an unknown record with a type"),
      ("560000", 0, "the first record does not begin a message"),
      ("d60000", 0, "a chunk without a beginning"),
    ])
  func offsets(bytes: String, offset: Int, reason: String) {
    #expect(throws: NDEFError.malformedMessage(reason, offset: offset)) { try NDEFMessage(parsing: hex(bytes)) }
  }

  @Test("reads the reserved type name as unknown")
  func reserved() throws {
    #expect(
      try NDEFMessage(parsing: hex("df010101 aa bb cc")).records == [NDEFRecord(.unknown, id: [0xBB], payload: [0xCC])])
  }

  @Test("an empty message is one empty record")
  func empty() throws {
    #expect(NDEFMessage([]).bytes == [0xD0, 0, 0])
    #expect(NDEFMessage([]).isEmpty)
    #expect(!NDEFMessage([NDEFText("").record]).isEmpty)
  }

  @Test("any records survive, whatever their lengths", arguments: [1, 2])
  func roundTrip(seed: UInt64) throws {
    var random = SplitMix(seed)
    func bytes(_ limit: Int) -> [UInt8] {
      let count = [0, 1, limit - 1, limit, Int.random(in: 0...limit, using: &random)].randomElement(using: &random)!
      return (0..<count).map { _ in .random(in: 0...255, using: &random) }
    }
    for _ in 0..<100 {
      let records = (0..<Int.random(in: 1...5, using: &random)).map { _ in
        switch Int.random(in: 0...5, using: &random) {
        case 0: NDEFRecord.empty
        case 5: NDEFRecord(.unknown, id: bytes(255), payload: bytes(300))
        case let name:
          NDEFRecord(
            NDEFRecord.TypeName(rawValue: UInt8(name))!, type: bytes(255), id: bytes(255),
            payload: bytes(name == 1 ? 256 : 700))
        }
      }
      let message = NDEFMessage(records)
      #expect(try NDEFMessage(parsing: message.bytes) == message)
      // Cut anywhere it is no message: that a torn tag is not read wrongly rests on this.
      let bytes = message.bytes
      for count in (0..<bytes.count).shuffled(using: &random).prefix(20) {
        #expect(throws: NDEFError.self) { try NDEFMessage(parsing: bytes.prefix(count)) }
      }
    }
  }
}

@Suite("Text and URI records") struct NDEFRecordTests {
  func text(_ payload: String) throws -> NDEFText? {
    try NDEFText(NDEFRecord(.wellKnown, type: Array("T".utf8), payload: hex(payload)))
  }

  @Test("reads UTF-16 of either order, big-endian without a mark")
  func utf16() throws {
    for payload in ["82 656e feff 00e4 d83d dec3", "82 656e fffe e400 3dd8 c3de", "82 656e 00e4 d83d dec3"] {
      #expect(try text(payload) == NDEFText("ä🛃", language: "en"))
    }
  }

  @Test(
    "refuses a text that is not what it says",
    arguments: [
      ("", "a text without a status byte"), ("42 656e 61", "a text with a reserved bit"),
      ("03 656e", "a text that ends within its language"), ("02 65ff 61", "a language that is not ASCII"),
      ("02 656e ff", "a text that is not UTF-8"), ("82 656e 00", "a text that is not UTF-16"),
      ("82 656e d83d 0061", "a text that is not UTF-16"),
    ])
  func malformedText(payload: String, reason: String) {
    #expect(throws: NDEFError.malformedRecord(reason)) { try text(payload) }
  }

  @Test("takes a reserved URI code for no prefix, and refuses control characters")
  func uri() throws {
    func uri(_ payload: String) throws -> String? {
      try NDEFURI(NDEFRecord(.wellKnown, type: Array("U".utf8), payload: hex(payload)))?.uri
    }
    #expect(try uri("24 613a62") == "a:b")
    #expect(try uri("ff 613a62") == "a:b")
    #expect(try uri("23 61") == "urn:nfc:a")
    for payload in ["", "04 61 00 00", "04 61 1b", "04 ff"] { #expect(throws: NDEFError.self) { try uri(payload) } }
  }

  @Test("says nothing of records of other types")
  func others() throws {
    let record = NDEFRecord(.external, type: Array("T".utf8), payload: [0xFF])
    #expect(try NDEFText(record) == nil)
    #expect(try NDEFURI(record) == nil)
  }
}
