import CodeReading
import Encoding
import Testing

@Suite("What stepctl-qr says") struct DecoderReplyTests {
  static let replies =
    [DecoderReply.code([0, 255, 10]), .code([UInt8](repeating: 7, count: DecoderReply.longest - 1))]
    + PictureFlaw.allCases.map(DecoderReply.flaw) + [.end]

  @Test("every reply is read as it was said", arguments: replies)
  func roundTrip(reply: DecoderReply) throws {
    #expect(try DecoderReply(body: reply.body) == reply)
    #expect(reply.body.count <= DecoderReply.longest)
  }

  @Test("what is no reply is refused", arguments: ["", "x", "c", "ea", "f", "f\0", "f\u{7F}", "f\u{1}\u{1}"])
  func malformed(text: String) {
    #expect(throws: MalformedMessage()) { try DecoderReply(body: Array(text.utf8)) }
  }

  @Test("a code that is longer than any is refused")
  func tooLong() {
    let body = Array("c".utf8) + [UInt8](repeating: 7, count: DecoderReply.longest)
    #expect(throws: MalformedMessage()) { try DecoderReply(body: body) }
  }
}
