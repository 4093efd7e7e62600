import Testing

@testable import CodeReading

@Suite("What stepctl-qr says") struct DecoderReplyTests {
  @Test("every reply is read as it was said, however it is cut into pieces", arguments: [1, 2, 7, 10_000])
  func roundTrip(piece: Int) throws {
    let said =
      [DecoderReply.code([0, 255, 10]), .code([UInt8](repeating: 7, count: DecoderReply.longestCode))]
      + PictureFlaw.allCases.map(DecoderReply.flaw) + [.end]
    let bytes = said.flatMap(\.bytes)
    var replies = DecoderReplies()
    var heard: [DecoderReply] = []
    for start in stride(from: 0, to: bytes.count, by: piece) {
      replies.append(bytes[start..<min(start + piece, bytes.count)])
      while let reply = try replies.next() { heard.append(reply) }
    }
    #expect(heard == said)
  }

  @Test(
    "what is no reply is refused",
    arguments: [
      "x\0\0", "c\0\0", "e\0\u{1}a", "f\0\0", "f\0\u{1}\0", "f\0\u{1}\u{7F}", "f\0\u{2}\u{1}\u{1}", "c\u{7F}\u{7F}",
    ])
  func malformed(text: String) {
    var replies = DecoderReplies()
    replies.append(text.utf8)
    #expect(throws: DecoderReplies.Malformed.self) { try replies.next() }
  }

  @Test("an incomplete reply is waited for")
  func incomplete() throws {
    var replies = DecoderReplies()
    replies.append("c\0\u{2}a".utf8)
    #expect(try replies.next() == nil)
    replies.append("b".utf8)
    #expect(try replies.next() == .code(Array("ab".utf8)))
  }
}
