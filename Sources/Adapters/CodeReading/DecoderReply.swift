/// What stepctl-qr says of a picture, or of one camera picture after another.
///
/// A byte for its kind, two for the length of what follows (big-endian), and that.
package enum DecoderReply: Equatable, Sendable {
  /// The content of a code that was not said before.
  case code([UInt8])
  /// Nothing more can be found out.
  case flaw(PictureFlaw)
  /// There are no more codes. Without it, stepctl-qr was ended.
  case end

  /// The most that a code holds: digits, at version 40-L (ISO/IEC 18004, 7.1).
  static let longestCode = 7089

  package var bytes: [UInt8] {
    let (kind, content): (Character, [UInt8]) =
      switch self {
      case .code(let content): ("c", content)
      case .flaw(let flaw): ("f", [flaw.rawValue])
      case .end: ("e", [])
      }
    return [kind.asciiValue!, UInt8(content.count >> 8), UInt8(content.count & 0xFF)] + content
  }
}

/// Takes replies out of a stream of bytes, of which nothing is trusted: a picture may have taken over who sends them.
package struct DecoderReplies {
  package struct Malformed: Error, Equatable {
    package init() {}
  }

  private var bytes: [UInt8] = []

  package init() {}

  package mutating func append(_ more: some Sequence<UInt8>) { bytes += more }

  /// The next reply; nil while it is not complete.
  package mutating func next() throws(Malformed) -> DecoderReply? {
    guard bytes.count >= 3 else { return nil }
    let count = Int(bytes[1]) << 8 | Int(bytes[2])
    guard count <= DecoderReply.longestCode else { throw Malformed() }
    guard bytes.count >= 3 + count else { return nil }
    let content = Array(bytes[3..<3 + count])
    let reply: DecoderReply? =
      switch (Character(Unicode.Scalar(bytes[0])), count) {
      case ("c", 1...): .code(content)
      case ("f", 1): PictureFlaw(rawValue: content[0]).map(DecoderReply.flaw)
      case ("e", 0): .end
      default: nil
      }
    guard let reply else { throw Malformed() }
    bytes.removeFirst(3 + count)
    return reply
  }
}
