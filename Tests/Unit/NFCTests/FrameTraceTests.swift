import Domain
import Encoding
import NDEF
import SystemIO
import Tags
import TestSupport
import Testing

@testable import NFC

@Suite("What is shown of a tag's frames") struct FrameTraceTests {
  /// A line for each command and each answer of a reader that works.
  private func lines(_ tag: any PlayedTag, _ body: (any TagField) throws -> Void) rethrows -> [String] {
    var lines: [String] = []
    try body(TracedField(PlayedField(tag)) { lines.append($0) })
    return lines
  }

  @Test("a tag that anybody can read is shown whole")
  func reading() throws {
    let tag = PlayedType4()
    tag.hold(TagFieldTests.message.bytes)
    let lines = try lines(tag) { _ = try $0.readTag(until: .now + .seconds(20)) }
    #expect(lines.first?.hasPrefix("< tag \(tag.target.uid) ATQA ") == true)
    #expect(lines.contains { $0.hasPrefix("> tag 00A4") })
    #expect(lines.contains { $0.hasPrefix("< tag ") && $0.contains(hexadecimal(TagFieldTests.message.bytes)) })
    #expect(!lines.contains { $0.contains("..") })
  }

  @Test("pages for messages are shown as they are written, and pages that may hold a password are not")
  func pages() {
    var trace = FrameTrace()
    let secret: [UInt8] = [0xC0, 0xFF, 0xEE, 0x99]
    // Without its version nobody knows what a page of a chip is for.
    #expect(trace.text(command: [0xA2, 0x10] + secret, isISO: false) == "A210 ..4..")
    _ = trace.text(command: [0x60], isISO: false)
    #expect(trace.text(answer: [0x00, 0x04, 0x04, 0x02, 0x01, 0x00, 0x0F, 0x03]) == "0004040201000F03")
    #expect(trace.text(command: [0xA2, 0x10] + secret, isISO: false) == "A210C0FFEE99")
    for page in Type2Chip.ntag213.pages - 4..<Type2Chip.ntag213.pages {
      let number = UInt8(page)
      #expect(trace.text(command: [0xA2, number] + secret, isISO: false) == "A2\(hexadecimal([number])) ..4..")
    }
    // PWD_AUTH, and the PACK that answers it.
    #expect(trace.text(command: [0x1B] + secret, isISO: false) == "1B ..4..")
    #expect(trace.text(answer: [0xAB, 0xCD]) == "..2..")
    // MIFARE Ultralight C, AUTHENTICATE.
    #expect(trace.text(command: [0xAF] + secret + secret, isISO: false) == "AF ..8..")
  }

  @Test("of a dynamic tag's message the query is hidden, in however many parts it is read")
  func dynamicMessage() {
    let uri = Array("stepctl:5f3c1c0e/left?e=EF963FF7828658A599F3041510671E88&c=94EED9EE65337086".utf8)
    for size in [1, 7, 16, 59, 240] {
      var trace = FrameTrace()
      _ = trace.text(command: [0x00, 0xA4, 0x00, 0x0C, 0x02, 0xE1, 0x04], isISO: true)
      _ = trace.text(answer: [0x90, 0x00])
      var shown = ""
      for start in stride(from: 0, to: uri.count, by: size) {
        let part = uri[start..<min(start + size, uri.count)]
        _ = trace.text(command: [0x00, 0xB0, 0x00, UInt8(start), UInt8(part.count)], isISO: true)
        shown += trace.text(answer: part + [0x90, 0x00])
      }
      let label = hexadecimal(Array("stepctl:5f3c1c0e/left?".utf8))
      #expect(shown.replacing(#/ ?\.\.\d+\.\. ?|9000/#, with: "") == label)
    }
  }

  @Test("an exchange with a key shows its commands' names and how they ended, whatever else they carry")
  func keys() {
    let secret = [UInt8](repeating: 0xA5, count: 32)
    for code: UInt8 in [0x71, 0x77, 0xAF, 0xC4, 0x5F, 0x51, 0x8D, 0xAD] {
      var trace = FrameTrace()
      let command = [0x90, code, 0x00, 0x00, 32] + secret + [0x00]
      #expect(trace.text(command: command, isISO: true) == "90\(hexadecimal([code]))0000 ..34..")
      #expect(trace.text(answer: secret + [0x91, 0x00]) == "..32.. 9100")
      // From then on also what would be public without a key: a MAC is at its end.
      #expect(trace.text(command: [0x90, 0xF5, 0x00, 0x00, 1, 2, 0], isISO: true) == "90F50000 ..3..")
      #expect(trace.text(answer: secret + [0x91, 0x00]) == "..32.. 9100")
      _ = trace.text(command: [0x00, 0xA4, 0x04, 0x0C], isISO: true)
      #expect(trace.text(command: [0x90, 0xF5, 0x00, 0x00, 1, 2, 0], isISO: true) == "90F50000010200")
    }
    var trace = FrameTrace()
    #expect(trace.text(command: [0x80, 0x20, 0x00, 0x00, 4] + secret[..<4], isISO: true) == "80200000 ..5..")
    for bytes in [[], [0x00], [0x90, 0x71]] as [[UInt8]] {
      #expect(!trace.text(command: bytes, isISO: true).contains("71"))
      _ = trace.text(answer: bytes)
    }
  }

  @Test("looks at an empty field are told once")
  func emptyField() throws {
    let tag = PlayedType4()
    var lines: [String] = []
    let played = PlayedField(tag)
    let field = TracedField(played) { lines.append($0) }
    _ = try field.select()
    played.remove(for: 5)
    for _ in 0..<5 { #expect(try field.select() == nil) }
    #expect(lines.count == 2 && lines.last == "< tag gone")
  }
}
