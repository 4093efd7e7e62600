import Encoding
import NDEF
import TestSupport
import Testing

@testable import Tags

@Suite("Type 2 layout") struct Type2LayoutTests {
  static let expected = Fixtures.json("tags/expected.json").object!

  @Test("reads every image as nfcpy does", arguments: expected)
  func images(image: JSON.Member) throws {
    let memory = Type2Memory(Fixtures.tag(image.name))
    guard let found = image.value["message"]!.string else {
      #expect(throws: NDEFError.unsupportedVersion(major: 2, minor: 0)) { try read(memory) }
      return
    }
    let layout = try read(memory)
    #expect(layout.message == hex(found))
    #expect(layout.capacity == Int(image.value["capacity"]!.integer!))
    #expect(layout.isWritable == image.value["writable"]!.bool!)
    guard !layout.message.isEmpty else { return }
    let message = try NDEFMessage(parsing: layout.message)
    #expect(
      try message.records.map { record in
        try JSON.string(NDEFURI(record)?.uri ?? NDEFText(record)?.text ?? typeName(record))
      } == image.value["records"]!.array!)
  }

  /// As ndeflib writes a type.
  private func typeName(_ record: NDEFRecord) -> String {
    (record.typeName == .wellKnown ? "urn:nfc:wkt:" : "") + String(decoding: record.type, as: UTF8.self)
  }

  @Test("reads as much as it needs and no more", arguments: expected.map(\.name), [1, 4, 60])
  func incremental(name: String, pagesPerCommand: Int) throws {
    let bytes = Fixtures.tag(name)
    guard let expected = try? read(Type2Memory(bytes)) else { return }
    var memory = Type2Memory()
    var commands = 0
    var last = 0
    while case .read(let pages) = try Type2Layout.read(memory) {
      for start in stride(from: pages.lowerBound, to: pages.upperBound, by: pagesPerCommand) {
        let end = min(start + pagesPerCommand, bytes.count / 4)
        memory.insert(bytes[start * 4..<end * 4], at: start)
        commands += 1
        last = max(last, end)
      }
    }
    #expect(try Type2Layout.read(memory) == .done(expected))
    if pagesPerCommand == 1 {
      let needed = (0..<last).filter { memory[$0] != nil }.count
      #expect(commands == needed, "each page once")
    }
  }

  @Test("a message of 79 bytes on an NTAG213 takes seven READs, or one FAST_READ")
  func commands() throws {
    var memory = Type2Memory(factory(.ntag213))
    memory = try write(message(bytes: 79), to: memory, chip: .ntag213).memory
    var asked: [Range<Int>] = []
    for size in [4, 60] {
      var known = Type2Memory()
      asked = []
      while case .read(let pages) = try Type2Layout.read(known) {
        for start in stride(from: pages.lowerBound, to: pages.upperBound, by: size) {
          asked.append(start..<start + size)
          for page in start..<min(start + size, 45) { known[page] = memory[page] }
        }
      }
      #expect(asked.count == (size == 4 ? 7 : 1))
    }
  }

  @Test(
    "tells apart why there is no message",
    arguments: [
      ("00000000", "03 00 fe", NDEFError.notFormatted),
      ("00000001", "03 00 fe", .notNDEF(container: [0, 0, 0, 1])),
      ("e2101200", "03 00 fe", .notNDEF(container: [0xE2, 0x10, 0x12, 0])),
      ("e1201200", "03 00 fe", .unsupportedVersion(major: 2, minor: 0)),
      ("e1031200", "03 00 fe", .unsupportedVersion(major: 0, minor: 3)),
      ("e1101280", "03 00 fe", .unreadable(access: 8)),
      ("e1101200", "fe 03 00", .noMessage),
      ("e1101200", "", .noMessage),
      ("e1100000", "03 00 fe", .noMessage),
      ("e1101200", "fd 02 03 00 fe", .noMessage),
      ("e1101200", "03 8f", .malformedTag("a block of 143 bytes, and 142 are left", offset: 16)),
      ("e1101200", "03 ff ffff", .malformedTag("a length of 65535 in three bytes", offset: 16)),
      ("e1100100", "00 00 00 00 00 00 00 03", .malformedTag("a block without a length", offset: 23)),
    ])
  func errors(container: String, data: String, error: NDEFError) {
    var bytes = [UInt8](repeating: 0, count: 180)
    bytes.replaceSubrange(12..<16, with: hex(container))
    bytes.replaceSubrange(16..<16 + hex(data).count, with: hex(data))
    #expect(throws: error) { try read(Type2Memory(bytes)) }
  }

  @Test(
    "reads what other readers take: a short length in three bytes, and behind a control block that says nothing",
    arguments: ["03ff 0009", "0102a00c 0309", "0203a00c30 0309", "0100 fdff0001aa 0309"])
  func tolerance(data: String) throws {
    var bytes = factory(.ntag213)
    let text = message(bytes: 9).bytes
    bytes.replaceSubrange(16..<16 + hex(data).count + 10, with: hex(data) + text + hex("fe"))
    #expect(try read(Type2Memory(bytes)).message == text)
  }

  @Test("skips NULL, proprietary and unknown blocks, and the bytes that control blocks except")
  func blocks() throws {
    var bytes = [UInt8](repeating: 0xEE, count: 180)
    bytes.replaceSubrange(12..<16, with: hex("e1101200"))
    // Reserved: 4 bytes at 3 * 16 + 2, and 2 lock bytes at 4 * 16, one of them at the end of the message.
    bytes.replaceSubrange(
      16..<50,
      with: hex("00 02 03 32 04 04 00 01 03 40 09 34 fd 02 0300 04 00 55 01 03 03 20 d1011c5502")
        + hex("61 62 63 64 65 66"))
    bytes.replaceSubrange(54..<64, with: Array("ghijklmnop".utf8))
    bytes.replaceSubrange(66..<78, with: Array("qrstuvwxyz".utf8) + [0x21, 0xFE])
    let layout = try read(Type2Memory(bytes))
    #expect(layout.message == hex("d1011c5502") + Array("abcdefghijklmnopqrstuvwxyz!".utf8))
    #expect(layout.capacity == 16 + 144 - 37 - 6 - 2)
  }

  @Test("a size of 0 in a control block stands for 256", arguments: [(hex("02"), 256), (hex("01"), 32)])
  func largestHole(tag: [UInt8], hole: Int) throws {
    var bytes = factory(.ntag216)
    // Behind 10 bytes of the message, from address 2 * 16 + 1 on.
    let text = message(bytes: 37).bytes
    let begin = tag + hex("03 21 00 04 0325") + Array(text.prefix(10))
    bytes.replaceSubrange(16..<33, with: begin)
    bytes.replaceSubrange(33 + hole..<61 + hole, with: text.dropFirst(10) + hex("fe"))
    let layout = try read(Type2Memory(bytes))
    #expect(layout.message == text)
    #expect(layout.capacity == 872 - 5 - hole - 4)
  }

  @Test("knows chips by their version")
  func versions() {
    #expect(Type2Chip(version: hex("0004040201000f03")) == .ntag213)
    #expect(Type2Chip(version: hex("0004040201001103")) == .ntag215)
    #expect(Type2Chip(version: hex("0004040201001303")) == .ntag216)
    #expect(Type2Chip(version: hex("0004030101000b03")) == .ultralightEV1Small)
    #expect(Type2Chip(version: hex("0004030201000e03")) == .ultralightEV1Large)
    #expect(Type2Chip(version: hex("0004040502021503")) == nil)
    #expect(Type2Chip(version: hex("0004040201000f")) == nil)
  }
}

/// A tag as the factory delivers it (NTAG213/215/216, rev. 3.2, 8.5.6), or an Ultralight that was formatted.
func factory(_ chip: Type2Chip) -> [UInt8] { SimulatedTag.factory(chip) }
