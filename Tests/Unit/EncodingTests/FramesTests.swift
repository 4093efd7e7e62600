import Encoding
import Testing

@Suite("Frames") struct FramesTests {
  static let messages: [[UInt8]] = [
    [0], [1, 2, 3], [UInt8](repeating: 7, count: 255), [UInt8](repeating: 8, count: 256),
    [UInt8](repeating: 9, count: 0xFFFF),
  ]

  @Test("messages arrive whole, whatever pieces they come in", arguments: [1, 2, 3, 7, 1000, 100_000])
  func pieces(size: Int) throws {
    var frames = Frames()
    var bytes = Self.messages.flatMap { Frames.frame($0) }[...]
    var found: [[UInt8]] = []
    while !bytes.isEmpty {
      frames.append(bytes.prefix(size))
      bytes = bytes.dropFirst(size)
      while let message = try frames.next() { found.append(message) }
    }
    #expect(found == Self.messages)
  }

  @Test("a length that no message has ends the conversation", arguments: [[0x00, 0x00], [0x04, 0x01], [0xFF, 0xFF]])
  func length(_ prefix: [UInt8]) {
    var frames = Frames(longest: 1024)
    frames.append(prefix)
    #expect(throws: MalformedMessage()) { try frames.next() }
    #expect(throws: MalformedMessage()) { try frames.next() }
  }

  @Test("a message that is not complete is waited for")
  func incomplete() throws {
    var frames = Frames(longest: 2)
    for byte: UInt8 in [0, 2, 0x41] {
      #expect(try frames.next() == nil)
      frames.append([byte])
    }
    #expect(try frames.next() == nil)
    frames.append([0x42])
    #expect(try frames.next() == [0x41, 0x42])
    #expect(try frames.next() == nil)
  }
}
