package import Domain
import Encoding

/// The address of a fleet's server: `https://HOST[:PORT]`, and no other part of a URL.
package struct FleetAddress: Hashable, Sendable, CustomStringConvertible {
  /// In lower case, without a final slash and without port 443, so that each server has only one text.
  package let description: String

  package struct Malformed: Failure, Equatable {
    package let text: String

    package var exitStatus: ExitStatus { .usage }
    package var description: String {
      text.lowercased().hasPrefix("http://")
        ? "anybody on the way can change what http:// carries: use https://"
        : "a server's address is https://HOST or https://HOST:PORT"
    }
  }

  /// - Parameter text: `https://` is optional, and a final slash is allowed.
  package init(_ text: String) throws(Malformed) {
    var rest = Substring(text.lowercased())
    if rest.hasPrefix("https://") { rest = rest.dropFirst(8) }
    if rest.hasSuffix("/") { rest = rest.dropLast() }
    guard let server = try? HostPort(rest, usual: 443) else { throw Malformed(text: text) }
    let (host, isIPv6) = (server.host, server.host.contains(":"))
    let isName = host.utf8.allSatisfy { byte in
      byte.isASCIILowercase || byte.isASCIIDigit || "-.".utf8.contains(byte) || isIPv6 && byte == UInt8(ascii: ":")
    }
    guard isName, host.utf8.count <= 253, !host.hasPrefix("-") else { throw Malformed(text: text) }
    description = "https://\(isIPv6 ? "[\(host)]" : host)\(server.port == 443 ? "" : ":\(server.port)")"
  }

  /// Without `https://`, for people.
  package var host: String { String(description.dropFirst(8)) }

  /// - Parameter path: begins with a slash.
  package func url(_ path: String) -> String { description + path }

  /// Whether a URL is on this server. A login is never sent elsewhere, even if the server asks for it.
  func has(_ url: String) -> Bool { url.lowercased().hasPrefix(description + "/") && !url.contains("#") }
}
