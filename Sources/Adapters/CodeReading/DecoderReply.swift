package import Encoding

/// A reply of stepctl-qr about a picture, or about one camera picture after another. Each is a message of `Frames`.
package enum DecoderReply: Equatable, Sendable {
  /// The content of a code that was not reported before.
  case code([UInt8])
  /// Nothing more can be found.
  case flaw(PictureFlaw)
  /// There are no more codes. If this is missing, stepctl-qr was killed.
  case end

  /// Size of the longest reply, bytes: a code holds at most 7089 digits, in version 40-L (ISO/IEC 18004, 7.1).
  package static let longest = 1 + 7089

  package var body: [UInt8] {
    switch self {
    case .code(let content): [UInt8(ascii: "c")] + content
    case .flaw(let flaw): [UInt8(ascii: "f"), flaw.rawValue]
    case .end: [UInt8(ascii: "e")]
    }
  }

  package init(body: [UInt8]) throws(MalformedMessage) {
    let content = body.dropFirst()
    switch (body.first, content.count) {
    case (UInt8(ascii: "c"), 1..<Self.longest): self = .code(Array(content))
    case (UInt8(ascii: "f"), 1):
      guard let flaw = PictureFlaw(rawValue: content[1]) else { throw MalformedMessage() }
      self = .flaw(flaw)
    case (UInt8(ascii: "e"), 0): self = .end
    default: throw MalformedMessage()
    }
  }
}
