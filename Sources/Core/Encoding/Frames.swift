/// Messages in a stream of bytes, as stepctl and its helper programs write them: two bytes with the length of the
/// message, the higher first, then the message, whose first byte says what it is.
///
/// Nothing that is received is trusted: whoever sends it may have been taken over by what it reads.
package struct Frames: Sendable {
  /// No frame can carry more bytes.
  package static let longest = 0xFFFF

  private let longest: Int
  private var received: [UInt8] = []

  /// - Parameter longest: bytes of the longest message that is accepted.
  package init(longest: Int = Frames.longest) {
    precondition((1...Frames.longest).contains(longest))
    self.longest = longest
  }

  /// A message with its length before it.
  package static func frame(_ message: [UInt8]) -> [UInt8] {
    precondition((1...longest).contains(message.count))
    return UInt16(message.count).bigEndianBytes + message
  }

  package mutating func append(_ bytes: some Sequence<UInt8>) { received += bytes }

  /// The next message; nil while it is not complete.
  ///
  /// - Throws: for a length that no message has. There is no way to go on after it.
  package mutating func next() throws(MalformedMessage) -> [UInt8]? {
    guard received.count >= 2 else { return nil }
    let count = Int(bigEndianBytes: received.prefix(2))
    guard (1...longest).contains(count) else { throw MalformedMessage() }
    guard received.count >= 2 + count else { return nil }
    defer { received.removeSubrange(..<(2 + count)) }
    return Array(received[2..<(2 + count)])
  }
}

/// What came is no message of ours: the two programs are of different versions, or one of them was taken over.
package struct MalformedMessage: Error, Equatable {
  package init() {}
}
