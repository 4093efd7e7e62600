/// Messages in a stream of bytes between stepctl and its helper programs. Each message follows its length (two bytes,
/// high byte first). The first byte of a message gives its kind.
///
/// Received data is not trusted: the data that the sender reads may have taken the sender over.
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

  /// A message, preceded by its length.
  package static func frame(_ message: [UInt8]) -> [UInt8] {
    precondition((1...longest).contains(message.count))
    return UInt16(message.count).bigEndianBytes + message
  }

  package mutating func append(_ bytes: some Sequence<UInt8>) { received += bytes }

  /// The next message; nil if it is not complete yet.
  ///
  /// - Throws: for a length that no message has. The stream cannot be continued after that.
  package mutating func next() throws(MalformedMessage) -> [UInt8]? {
    guard received.count >= 2 else { return nil }
    let count = Int(bigEndianBytes: received.prefix(2))
    guard (1...longest).contains(count) else { throw MalformedMessage() }
    guard received.count >= 2 + count else { return nil }
    defer { received.removeSubrange(..<(2 + count)) }
    return Array(received[2..<(2 + count)])
  }
}

/// The input is not one of our messages: the two programs differ in version, or one of them was taken over.
package struct MalformedMessage: Error, Equatable {
  package init() {}
}
