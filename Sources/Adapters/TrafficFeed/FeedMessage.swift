package import Encoding
import Traffic

/// What stepctl-traffic says, a message each. It has spoken with the network, so nothing of it is trusted.
package enum FeedMessage: Equatable, Sendable {
  /// The bridge has taken the connection.
  case connected
  /// A part of a frame, of which more comes. Never empty: parts without end would never fill a frame.
  case part([UInt8])
  /// The rest of a frame: when it came, microseconds since 1970, and how many were left out before it, because they
  /// came faster than they were read.
  case frame(received: UInt64, dropped: UInt32, rest: [UInt8])
  /// The connection has ended, or there never was one.
  case ended(Reason, String)

  package enum Reason: UInt8, CaseIterable, Sendable {
    /// The bridge was not reached, or it did not take the connection; the text says what the library says.
    case refused = 1
    case closed
    /// A frame was not text, or longer than a frame may be.
    case binary
    case tooLong
    /// The program could not be set up: most often because a file holds no certificate or no key.
    case setup
  }

  /// Bytes of the longest part.
  package static let longestPart = 60_000

  /// A frame as messages.
  package static func messages(_ frame: [UInt8], received: UInt64, dropped: UInt32) -> [FeedMessage] {
    var messages: [FeedMessage] = []
    var rest = frame[...]
    while rest.count > longestPart {
      messages.append(.part(Array(rest.prefix(longestPart))))
      rest = rest.dropFirst(longestPart)
    }
    return messages + [.frame(received: received, dropped: dropped, rest: Array(rest))]
  }

  package var body: [UInt8] {
    switch self {
    case .connected: [UInt8(ascii: "c")]
    case .part(let part): [UInt8(ascii: "p")] + part
    case .frame(let received, let dropped, let rest):
      [UInt8(ascii: "f")] + received.bigEndianBytes + dropped.bigEndianBytes + rest
    case .ended(let reason, let text): [UInt8(ascii: "e"), reason.rawValue] + text.utf8(upTo: 200)
    }
  }

  package init(body: [UInt8]) throws(MalformedMessage) {
    switch body.first {
    case UInt8(ascii: "c") where body.count == 1: self = .connected
    case UInt8(ascii: "p") where (2...(1 + Self.longestPart)).contains(body.count): self = .part(Array(body[1...]))
    case UInt8(ascii: "f") where (13...(13 + Self.longestPart)).contains(body.count):
      let received = UInt64(bigEndianBytes: body[1..<9])
      // No clock shows a later time, and arithmetic with one would overflow.
      guard received < 1 << 53 else { throw MalformedMessage() }
      self = .frame(received: received, dropped: UInt32(bigEndianBytes: body[9..<13]), rest: Array(body[13...]))
    case UInt8(ascii: "e") where (2...202).contains(body.count):
      guard let reason = Reason(rawValue: body[1]) else { throw MalformedMessage() }
      self = .ended(reason, String(decoding: body[2...], as: UTF8.self))
    default: throw MalformedMessage()
    }
  }
}

/// Puts the parts of frames together.
package struct FrameAssembly: Sendable {
  private var parts: [UInt8] = []

  package init() {}

  /// - Throws: for more than a frame may have.
  package mutating func take(_ part: [UInt8]) throws(MalformedMessage) {
    guard parts.count + part.count <= FeedFrame.longest else { throw MalformedMessage() }
    parts += part
  }

  package mutating func finish(_ rest: [UInt8]) throws(MalformedMessage) -> [UInt8] {
    try take(rest)
    defer { parts = [] }
    return parts
  }
}
