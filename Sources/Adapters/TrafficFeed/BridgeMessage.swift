package import Domain
package import Encoding
package import SystemIO

/// A message from a bridge's program. The program talks to the network, so its messages are not trusted.
package enum BridgeMessage: Equatable, Sendable {
  /// It accepts clients and publishers at this port.
  case listening(UInt16)
  /// Something that the person who runs the bridge may want to know.
  case note(String)
  /// The answer to `count`.
  case counts(BridgeCounts)
  /// It cannot start.
  case failed(Reason, String)

  package enum Reason: UInt8, CaseIterable, Sendable {
    /// A file does not contain the certificate, key or map that it should.
    case setup = 1
    /// The address is not there, or the port is in use; the text says which, and why.
    case port
    /// This user may not use the port; the text says which.
    case forbidden
  }

  /// Asks for the counts.
  package static let count = [UInt8(ascii: "q")]

  /// Announces that the next data in the form of a frame is lists of revoked certificates, as PEM.
  package static let list = [UInt8(ascii: "r")]

  /// Size of the longest text, bytes. A message must fit into a pipe at once (PIPE_BUF, pipe(7)).
  package static let longestText = 300

  package var body: [UInt8] {
    switch self {
    case .listening(let port): [UInt8(ascii: "l")] + port.bigEndianBytes
    case .note(let text): [UInt8(ascii: "n")] + text.utf8(upTo: Self.longestText)
    case .counts(let counts): [UInt8(ascii: "s")] + counts.values.flatMap { UInt64($0).bigEndianBytes }
    case .failed(let reason, let text): [UInt8(ascii: "x"), reason.rawValue] + text.utf8(upTo: Self.longestText)
    }
  }

  package init(body: [UInt8]) throws(MalformedMessage) {
    switch body.first {
    case UInt8(ascii: "l") where body.count == 3: self = .listening(UInt16(bigEndianBytes: body[1...]))
    case UInt8(ascii: "n") where body.count <= 1 + Self.longestText:
      self = .note(String(decoding: body[1...], as: UTF8.self))
    case UInt8(ascii: "s") where body.count == 1 + 8 * BridgeCounts.size:
      let values = stride(from: 1, to: body.count, by: 8).map { UInt64(bigEndianBytes: body[$0..<$0 + 8]) }
      guard values.allSatisfy({ $0 < 1 << 53 }) else { throw MalformedMessage() }
      self = .counts(BridgeCounts(values: values.map(Int.init)))
    case UInt8(ascii: "x") where (2...(2 + Self.longestText)).contains(body.count):
      guard let reason = Reason(rawValue: body[1]) else { throw MalformedMessage() }
      self = .failed(reason, String(decoding: body[2...], as: UTF8.self))
    default: throw MalformedMessage()
    }
  }
}

/// The totals of a bridge so far.
package struct BridgeCounts: Equatable, Sendable {
  /// The present connections.
  package var clients = 0
  package var publishers = 0
  /// Frames that were received, sent, and dropped because clients were too slow.
  package var received = 0
  package var sent = 0
  package var dropped = 0
  /// Connections that were refused, or ended because of the data that they sent.
  package var refused = 0

  package init() {}

  fileprivate static let size = 6

  fileprivate var values: [Int] { [clients, publishers, received, sent, dropped, refused] }

  fileprivate init(values: [Int]) {
    (clients, publishers, received) = (values[0], values[1], values[2])
    (sent, dropped, refused) = (values[3], values[4], values[5])
  }

  package var json: JSON {
    [
      "clients": .integer(Int64(clients)), "publishers": .integer(Int64(publishers)),
      "received": .integer(Int64(received)), "sent": .integer(Int64(sent)), "dropped": .integer(Int64(dropped)),
      "refused": .integer(Int64(refused)),
    ]
  }
}

/// Why there is no bridge.
package enum BridgeError: Failure, Equatable {
  case system(SystemError)
  case failed(BridgeMessage.Reason, String)
  /// The program that speaks WebSocket ended, or sent an impossible message.
  case gaveUp
  case noProgram

  package var description: String {
    switch self {
    case .system(let error): error.description
    case .failed(.setup, let text): "TLS cannot be set up with these certificates and this key\(text)"
    case .failed(_, let text): "cannot listen at \(text)"
    case .gaveUp: "stepctl-traffic, which speaks with clients, has ended"
    case .noProgram: FeedError.noProgram.description
    }
  }

  package var exitStatus: ExitStatus {
    switch self {
    case .system(let error): error.exitStatus
    case .failed(let reason, _):
      switch reason {
      case .setup: .configuration
      case .port: .unavailable
      case .forbidden: .noPermission
      }
    case .gaveUp, .noProgram: .unavailable
    }
  }
}
