/// A host and a port in the syntax of URLs (RFC 3986 3.2.2 and 3.2.3): `HOST`, `HOST:PORT`, `[ADDRESS]` or
/// `[ADDRESS]:PORT`.
package struct HostPort: Hashable, Sendable, CustomStringConvertible {
  /// A name or an address, without brackets.
  package let host: String
  /// 1 to 65535.
  package let port: UInt16

  /// What is wrong with a text.
  package enum Flaw: Error {
    case host
    /// An IPv6 address without brackets, or brackets around something else.
    case brackets
    case portMissing
    case port
  }

  package init(host: String, port: UInt16) { (self.host, self.port) = (host, port) }

  /// - Parameter usual: the port for a text without one; nil if the text must have one.
  package init(_ text: Substring, usual: UInt16?) throws(Flaw) {
    var host = text
    if let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") {
      host = text[..<colon]
      let digits = text[text.index(after: colon)...]
      guard let number = UInt16(digits), number > 0, "\(number)" == digits else { throw .port }
      port = number
    } else if let usual {
      port = usual
    } else {
      throw .portMissing
    }
    let isAddress = host.hasPrefix("[") && host.hasSuffix("]") && host.utf8.count > 2
    if isAddress { host = host.dropFirst().dropLast() }
    guard isAddress == host.contains(":") else { throw .brackets }
    guard !host.isEmpty, host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"/?#@[]".utf8.contains($0) }) else {
      throw .host
    }
    self.host = String(host)
  }

  /// With brackets if they are needed.
  package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
