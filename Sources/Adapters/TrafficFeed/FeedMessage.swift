package import Encoding
import Traffic

/// A message from stepctl-traffic. The program talks to the network, so its messages are not trusted.
package enum FeedMessage: Equatable, Sendable {
  /// The bridge has accepted the connection.
  case connected
  /// A part of a frame, with more to follow. Never empty: endless empty parts would never fill a frame.
  case part([UInt8])
  /// The rest of a frame: its arrival time, microseconds since 1970, and how many frames were dropped before it because
  /// they came faster than they were read.
  case frame(received: UInt64, dropped: UInt32, rest: [UInt8])
  /// The connection has ended, or was never made.
  case ended(Reason, String)

  package enum Reason: UInt8, CaseIterable, Sendable {
    /// The bridge was not reached, or it did not accept the connection; the text is from the library.
    case refused = 1
    case closed
    /// A frame was not text, or longer than a frame may be.
    case binary
    case tooLong
    /// The program could not be set up: usually because a file contains no certificate or no key.
    case setup
  }

  /// Size of the longest part, bytes.
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
      // No clock shows a later time, and arithmetic with a later time would overflow.
      guard received < 1 << 53 else { throw MalformedMessage() }
      self = .frame(received: received, dropped: UInt32(bigEndianBytes: body[9..<13]), rest: Array(body[13...]))
    case UInt8(ascii: "e") where (2...202).contains(body.count):
      guard let reason = Reason(rawValue: body[1]) else { throw MalformedMessage() }
      self = .ended(reason, String(decoding: body[2...], as: UTF8.self))
    default: throw MalformedMessage()
    }
  }
}

/// Assembles frames from their parts.
package struct FrameAssembly: Sendable {
  private var parts: [UInt8] = []

  package init() {}

  /// - Throws: if the frame gets too long.
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
