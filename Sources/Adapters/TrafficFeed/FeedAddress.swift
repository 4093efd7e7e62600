package import Domain

/// The source of a feed, in the form that people write.
package enum FeedAddress: Equatable, Sendable, CustomStringConvertible {
  /// A bridge, over WebSocket and TLS (RFC 6455): `wss://HOST[:PORT]/PATH`.
  case bridge(host: String, port: UInt16, path: String)
  /// A recording, which runs by its own clock: `file:PATH`.
  case recording(String)

  package struct Malformed: Failure, Equatable {
    package let text: String

    package var description: String {
      text.hasPrefix("ws://")
        ? "anybody on the way can change what ws:// carries: use wss://"
        : "a feed is wss://HOST[:PORT]/PATH or file:RECORDING"
    }
    package var exitStatus: ExitStatus { .usage }
  }

  /// The form that people write.
  package var description: String {
    switch self {
    case .bridge(let host, let port, let path):
      "wss://\(host.contains(":") ? "[\(host)]" : host)\(port == 443 ? "" : ":\(port)")\(path)"
    case .recording(let path): "file:\(path)"
    }
  }

  package init(_ text: String) throws(Malformed) {
    if text.hasPrefix("file:"), text.utf8.count > 5 {
      self = .recording(String(text.dropFirst(5)))
      return
    }
    // The characters of a request line: printable ASCII without spaces, and no part that is not sent.
    guard text.hasPrefix("wss://"), text.utf8.count <= 1024,
      text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") && $0 != UInt8(ascii: "@") })
    else { throw Malformed(text: text) }
    let rest = text.dropFirst(6)
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    let path = rest.dropFirst(authority.count)
    guard !path.hasPrefix("?") else { throw Malformed(text: text) }
    guard let bridge = try? HostPort(authority, usual: 443) else { throw Malformed(text: text) }
    self = .bridge(host: bridge.host, port: bridge.port, path: path.isEmpty ? "/" : String(path))
  }
}
