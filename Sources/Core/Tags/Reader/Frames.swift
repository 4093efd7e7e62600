/// The form in which messages pass between stepctl and `stepctl-nfc`: two bytes with the body's length, the higher first,
/// then the body, whose first byte says what it is.
package struct Frames: Sendable {
  /// No message is longer: the longest is a connection string, which libnfc limits to 1024 bytes with its NUL.
  package static let longestBody = 1024

  private var received: [UInt8] = []

  package init() {}

  package static func frame(_ body: [UInt8]) -> [UInt8] {
    precondition((1...longestBody).contains(body.count))
    return [UInt8(body.count >> 8), UInt8(body.count & 0xFF)] + body
  }

  package mutating func append(_ bytes: some Sequence<UInt8>) { received += bytes }

  /// The body of the next message; nil while it is not complete.
  ///
  /// - Throws: for a length that no message has.
  package mutating func next() throws(MalformedMessage) -> [UInt8]? {
    guard received.count >= 2 else { return nil }
    let count = Int(received[0]) << 8 | Int(received[1])
    guard (1...Self.longestBody).contains(count) else { throw MalformedMessage() }
    guard received.count >= 2 + count else { return nil }
    defer { received.removeSubrange(..<(2 + count)) }
    return Array(received[2..<(2 + count)])
  }
}

/// What came is no message of ours: the two programs are not of the same version, or one of them is not itself.
package struct MalformedMessage: Error, Equatable {
  package init() {}
}
