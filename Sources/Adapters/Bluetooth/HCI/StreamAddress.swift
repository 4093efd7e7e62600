/// Where a controller that speaks H4 over a stream listens.
package enum StreamAddress: Hashable, Sendable, CustomStringConvertible {
  /// A host name or address (IPv6 without its brackets), and a port.
  case tcp(host: String, port: UInt16)
  /// The path of a local socket.
  case unix(path: String)

  package var description: String {
    switch self {
    case .tcp(let host, let port): host.contains(":") ? "tcp:[\(host)]:\(port)" : "tcp:\(host):\(port)"
    case .unix(let path): "unix:\(path)"
    }
  }
}
